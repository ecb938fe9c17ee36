"""Examples of the task that canaries hide in: a document, a question about it, its answer."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragwitness.core.errors import InputError
from ragwitness.crypto.hashing import text_digest

_NAMES = {
    "document": ("document", "context", "text"),
    "query": ("query", "question"),
    "answer": ("answer", "reference"),
    "source": ("source_document", "story", "meeting"),
    "kind": ("class",),
}
_FORM = 'Each line is a JSON object such as {"id": "a", "document": "…", "question": "…"}.'


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a document-grounded task.

    Attributes:
        id: Unique within its collection.
        document: The retrieved text d.
        query: The question q.
        answer: The reference answer y; empty where there is none.
        source: What d is a part of, such as a story or a meeting; empty where d is whole.
        kind: Class of documents that d belongs to; empty where there are none.
    """

    id: str
    document: str
    query: str
    answer: str = ""
    source: str = ""
    kind: str = ""


def document_key(text: str) -> str:
    """Return what makes two documents one: SHA-256 of the text without case and spacing, in hex."""
    plain = " ".join(text.casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def near_key(text: str) -> str:
    """Return what near-copies share: letters and digits alone, in one case; else the whole text."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in plain if char.isalnum()) or text


def document_groups(examples: Sequence[Example]) -> dict[str, str]:
    """Return, by id, a key that examples of one document share.

    Texts that differ in case, spacing and punctuation alone are one document, and so are parts of
    one source; both may link several examples. The key of a group is that of one of its texts.
    """
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for one in examples:
        # "near" and "source" sort behind every hex digit: the root is a text's key in any order.
        of_source = [f"source {one.source}"] if one.source else []
        for name in (f"near {near_key(one.document)}", *of_source):
            text, other = root(document_key(one.document)), root(name)
            parent[max(text, other)] = min(text, other)
    return {one.id: root(document_key(one.document)) for one in examples}


def examples_digest(examples: Sequence[Example]) -> str:
    """Return SHA-256 of examples in their order, in hex."""
    # A class is hashed where there is one: digests of before stay as they are.
    return text_digest(
        part
        for one in examples
        for part in (one.id, one.document, one.query, one.answer, one.source, one.kind or None)
        if part is not None
    )


def read_examples(path: Path) -> tuple[Example, ...]:
    """Read examples from JSON lines.

    The document stands under ``document``, ``context`` or ``text``, the question under ``query`` or
    ``question``, its answer, where there is one, under ``answer`` or ``reference``, the name of
    what the document is a part of under ``source_document``, ``story`` or ``meeting``, and its
    class under ``class``.

    Raises:
        InputError: The file cannot be read, holds none, or a line is no example or repeats an id.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # with or without a byte-order mark
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}.", _FORM) from error
    found = tuple(_rows(text, path))
    if not found:
        raise InputError(f"{path} holds no example.", _FORM)
    return found


def _rows(text: str, path: Path) -> Iterator[Example]:
    seen: set[str] = set()
    # Not splitlines: a text may hold separators that JSON does not escape.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        one = _example(line, where, number)
        if one.id in seen:
            raise InputError(f"{where}: the id {one.id!r} is there twice.", "Ids must be unique.")
        seen.add(one.id)
        yield one


def _example(line: str, where: str, number: int) -> Example:
    try:
        row = json.loads(line)
        given = {name: _first(row, names) for name, names in _NAMES.items()}
        name = row.get("id", f"line-{number}")
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{where} is no example.", _FORM) from None
    for part in ("document", "query"):
        if not given[part].strip():
            raise InputError(f"{where} has no {part}.", _FORM)
    try:
        "".join(given.values()).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half a surrogate pair: that is no text.") from None
    return Example(str(name), **given)


def _first(row: dict[str, object], names: Sequence[str]) -> str:
    found = next((row[name] for name in names if row.get(name) is not None), "")
    if not isinstance(found, str):
        raise TypeError(names[0])
    return found
