"""Documents from a file, a folder, standard input or a pasted text, read row by row.

What cannot be used is named with its place and reason and left out; only input from which
nothing can be used, or which would mean something else than the user thinks, is an error.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.text.rows import Row, Split, check_size, read_file, read_folder
from ragwitness.types import Document

__all__ = ["LoadedDocuments", "Skipped", "load_documents"]

_MAX_BYTES = 512 * 1024**2
_MAX_ROW_BYTES = 1_000_000

# A mistyped path must not become the document that is audited.
_FEWEST_WORDS = 8
_LONGEST_PATH = 256
_LIKE_A_PATH = re.compile(r"\s*(?:~|\.{0,2})[/\\].*|.*\.[a-z][a-z0-9]{0,6}\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row or file that was left out.

    Attributes:
        where: ``file:line``, or the file.
        why: The reason, in one line.
    """

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """What could be used and what could not."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...]


def load_documents(
    source: str | Path,
    *,
    text_field: str | None = None,
    split: Split = None,
    max_bytes: int = _MAX_BYTES,
    max_row_bytes: int = _MAX_ROW_BYTES,
) -> LoadedDocuments:
    """Load documents.

    Args:
        source: A ``.jsonl`` or ``.csv`` file (fields ``text`` or ``document``, optional ``id``
            and ``member``), a ``.txt`` or ``.md`` file, a folder of those two, ``"-"`` for
            standard input, or the text itself: at least 8 words that do not look like a path.
        text_field: Name of the field that holds the text.
        split: ``"paragraphs"`` makes every block between blank lines of a plain text a
            document of its own; otherwise a file is one document.
        max_bytes: Limit of the whole input.
        max_row_bytes: Limit of one document.

    Raises:
        InputError: The source is missing, unreadable, binary, over ``max_bytes``, or holds
            no usable document.
    """
    name = _shown(source)
    try:
        return _collect(_rows(source, name, text_field, split, (max_bytes, max_row_bytes)), name)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{name} cannot be read: {why}.", "Check its permissions.") from error


def _rows(
    source: str | Path, name: str, text_field: str | None, split: Split, limits: tuple[int, int]
) -> Iterator[Row]:
    max_bytes, max_row = limits
    path = None if source == "-" else _existing(source)
    if source != "-" and path is None:
        yield "pasted text", Document("pasted", str(source).strip())
    elif path is not None and path.is_dir():
        yield from read_folder(path, max_bytes, max_row)
    else:
        if path is not None:
            check_size(name, path.stat().st_size, max_bytes)
        with nullcontext(sys.stdin.buffer) if path is None else path.open("rb") as stream:
            yield from read_file(
                stream,
                name,
                text_field=text_field,
                split=split,
                max_bytes=max_bytes,
                max_row=max_row,
            )


def _collect(rows: Iterable[Row], name: str) -> LoadedDocuments:
    documents: list[Document] = []
    skipped: list[Skipped] = []
    seen: dict[str, tuple[str, bytes]] = {}
    for where, row in rows:
        if isinstance(row, str):
            skipped.append(Skipped(where, row))
            continue
        why = _flaw(row.id, "id") or _flaw(row.text, "text") or _repeats(row, where, seen)
        if why:
            skipped.append(Skipped(where, why))
        else:
            documents.append(row)
    if not documents:
        raise _nothing(name, skipped)
    return LoadedDocuments(tuple(documents), tuple(skipped))


def _flaw(text: str, name: str) -> str | None:
    if not text.strip():
        return f"the {name} is empty"
    if "\0" in text:
        return f"the {name} holds NUL bytes (binary), or a line over the size limit"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"the {name} is not valid UTF-8"
    return None


def _repeats(row: Document, where: str, seen: dict[str, tuple[str, bytes]]) -> str | None:
    digest = hashlib.sha256(row.text.encode()).digest()
    first, known = seen.setdefault(row.id, (where, digest))
    if first is where:
        return None
    same = "the same" if known == digest else "another"
    return f"repeats the id {row.id[:80]!r} of {first} with {same} text"


def _nothing(name: str, skipped: list[Skipped]) -> InputError:
    if not skipped:
        return InputError(
            f"{name} holds no document.",
            "Give a file with text in it, or a folder of .txt or .md files.",
        )
    more = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
    return InputError(
        f"{name} holds no usable document: {skipped[0].where}: {skipped[0].why}{more}.",
        'A row needs text, e.g. {"id": "a1", "text": "..."}; name its field with --text-field.',
    )


def _shown(source: str | Path) -> str:
    if source == "-":
        return "standard input"
    text = str(source)
    return text if len(text) <= 200 else f"{text[:80]}...{text[-40:]}"


def _existing(source: str | Path) -> Path | None:
    """Return the path, or None where ``source`` is itself a text."""
    path = Path(source)
    try:
        if path.exists() and str(source):
            return path
    except (OSError, ValueError):
        pass  # too long for a path, or not one at all
    if isinstance(source, str) and _is_text(source):
        return None
    if not str(source).strip():
        raise InputError("The documents are an empty text.", "Give a file, a folder or a text.")
    raise InputError(
        f"{_shown(source)} does not exist.",
        "Give a .jsonl, .csv or .txt file, a folder of .txt files, or a text of 8 words or more "
        "(- reads a text of any length from standard input).",
    )


def _is_text(source: str) -> bool:
    """Whether a source that is no file is a pasted text rather than a mistyped path."""
    like_a_path = len(source) < _LONGEST_PATH and _LIKE_A_PATH.fullmatch(source)
    return len(source.split()) >= _FEWEST_WORDS and not like_a_path
