"""Documents from a file, a folder, standard input or a pasted text, read row by row.

What cannot be used is named with its place and reason and left out; only input from which
nothing can be used, or which would mean something else than the user thinks, is an error.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from ragwitness.errors import InputError
from ragwitness.types import Document

# Readers of the formats documents come in: each yields a document, or why there is none.

TABLES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
PROSE = (".txt", ".md")
_TEXT_FIELDS = ("text", "document")
_MAGIC = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive (or .docx, .xlsx)",
    b"\x1f\x8b": "gzip data",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Split: TypeAlias = Literal["paragraphs"] | None
Row: TypeAlias = tuple[str, Document | str]
"""Where it stood, and the document or the reason why there is none."""
_Line: TypeAlias = tuple[int, str | None]
"""Line number with its text, None where the line is over the limit."""


def _too_large(max_row: int) -> str:
    return f"the document is over the size limit of one document, {max_row:,} bytes"


class Fields(NamedTuple):
    """Names of the fields, or columns, of the text (None for the usual ones) and of the group."""

    text: str | None = None
    group: str | None = None


class _UnusableRowError(Exception):
    """Why one row cannot be used."""


def check_size(name: object, size: int, max_bytes: int) -> None:
    """Raise InputError where ``size`` is over ``max_bytes``."""
    if size > max_bytes:
        raise InputError(
            f"{name} is larger than {max_bytes / 1024**2:,.0f} MiB.",
            "Split it and audit the parts, e.g.: split -C 256m --additional-suffix=.jsonl FILE",
        )


def read_folder(folder: Path, max_bytes: int, max_row: int) -> Iterator[Row]:
    """Yield one document per ``.txt`` or ``.md`` file below ``folder``, in order of its path."""
    seen = sorted(
        path
        for path in folder.rglob("*")
        if not path.is_dir()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    found = [path for path in seen if path.suffix.lower() in PROSE and path.exists()]
    others = Counter(p.suffix.lower() or "other" if p.exists() else "broken" for p in seen)
    for kind in sorted(others.keys() - {*PROSE}):
        yield str(folder), f"{others[kind]} {kind} files: only .txt and .md are read"
    total = 0
    for path in found:
        try:
            size = path.stat().st_size
            total += size
            check_size(folder, total, max_bytes)
            if size > max_row:
                yield str(path), _too_large(max_row)
                continue
            text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
        except OSError as error:
            yield str(path), f"cannot be read: {error.strerror or error}"
            continue
        yield str(path), Document(path.relative_to(folder).as_posix(), text.strip())


def read_file(
    stream: BinaryIO, name: str, fields: Fields, split: Split, limits: tuple[int, int]
) -> Iterator[Row]:
    """Yield the documents of one file; its format follows from its suffix, else its first byte.

    Raises:
        InputError: The file is empty, binary, too large, or a table without a text column.
    """
    # 1. The beginning tells the format, and what is not text at all.
    max_bytes, max_row = limits
    head = stream.read(4096)
    if not head.endswith(b"\n"):
        head += stream.readline(max_row + 1)
    _check_head(name, head)
    suffix = Path(name).suffix.lower()
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if suffix == ".json" and start == b"[":
        hint = f"Make it one object per line: jq -c '.[]' {name} > {Path(name).stem}.jsonl"
        raise InputError(f"{name} is one JSON array.", hint)
    sniffed = "jsonl" if start == b"{" and suffix not in PROSE else "text"
    kind = TABLES.get(suffix, sniffed)
    # 2. Line by line: no input is ever held whole.
    lines = _lines(head, stream, name, max_bytes, max_row)
    if kind == "jsonl":
        return _read_jsonl(lines, name, fields, max_row)
    if kind == "csv":
        return _read_csv(lines, name, fields, max_row)
    return _read_text(lines, name, split, max_row)


def _check_head(name: str, head: bytes) -> None:
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{name} is empty.", "Give a file with text in it.")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{name} is {kind}.", "Export it as plain text in UTF-8 first.")
    if b"\0" in head:
        raise InputError(f"{name} is binary, not text.", "Give text in UTF-8.")


def _lines(
    head: bytes, stream: BinaryIO, name: str, max_bytes: int, max_row: int
) -> Iterator[_Line]:
    """Yield numbered lines; bytes that are not UTF-8 become surrogates, refused per row later."""
    total, number, over = 0, 0, False
    part = bytearray()
    # ``readline`` is bounded, so a line without end never fills the memory
    rest = iter(lambda: stream.readline(max_row + 1), b"")
    for piece in itertools.chain(head.splitlines(keepends=True), rest):
        total += len(piece)
        check_size(name, total, max_bytes)
        over = over or len(part) + len(piece) > max_row
        part = bytearray() if over else part + piece
        if piece.endswith(b"\n"):
            number += 1
            yield number, None if over else _decode(part, number)
            part, over = bytearray(), False
    if part or over:
        yield number + 1, None if over else _decode(part, number + 1)


def _decode(line: bytearray, number: int) -> str:
    text = line.decode("utf-8", "surrogateescape")
    return text.removeprefix("\ufeff") if number == 1 else text


def _read_jsonl(lines: Iterable[_Line], name: str, fields: Fields, max_row: int) -> Iterator[Row]:
    for number, line in lines:
        if line is None:
            yield f"{name}:{number}", _too_large(max_row)
        elif line.strip():
            yield f"{name}:{number}", _from_json(line, number, fields)


def _from_json(line: str, number: int, fields: Fields) -> Document | str:
    try:
        row = json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        return f"invalid JSON ({error.msg} at column {error.colno})"
    except _UnusableRowError as reason:
        return str(reason)
    except (ValueError, RecursionError):
        return "invalid JSON (a number too long, or nested too deeply)"
    if not isinstance(row, dict):
        return "the row is not an object"
    return _from_row(row, number, fields)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON in which no key stands twice: the last would hide the others."""
    if len(found := dict(pairs)) < len(pairs):
        raise _UnusableRowError("a key stands twice in it")
    return found


def _read_csv(lines: Iterable[_Line], name: str, fields: Fields, max_row: int) -> Iterator[Row]:
    rows = iter(lines)
    header = next(rows)[1] or ""
    suffix = Path(name).suffix.lower()
    delimiter = "\t" if suffix == ".tsv" else max(",;", key=header.count)
    try:
        columns = [column.strip() for column in next(csv.reader([header], delimiter=delimiter))]
    except csv.Error as error:
        why = f"{name}: the names of its columns cannot be read ({error})."
        raise InputError(why, "Save it as CSV again, with usual ends of lines.") from None
    wanted = (fields.text,) if fields.text else _TEXT_FIELDS
    if fields.group and fields.group not in columns:
        raise InputError(f"{name} has no column {fields.group!r}.", "Correct --group-field.")
    if not set(wanted) & set(columns):
        raise InputError(
            f"{name} has no column {' or '.join(map(repr, wanted))}; "
            f"it has {', '.join(map(repr, columns[:12]))}.",
            "Name the column that holds the text with --text-field.",
        )
    if twice := [repr(column) for column, n in Counter(columns).items() if column and n > 1]:
        why = f"{name} has more than one column {', '.join(twice[:12])}."
        raise InputError(why, "Give each column a name of its own.")
    ends = max(at for at, column in enumerate(columns, 1) if column)
    text = min(columns.index(one) for one in wanted if one in columns)
    # the module's limit is global and lower than ours: raised, never lowered
    csv.field_size_limit(max(csv.field_size_limit(), max_row))
    over = False

    def told() -> Iterator[str]:
        nonlocal over
        for _, line in rows:
            over = over or line is None
            yield line or "\n"

    reader = csv.reader(told(), delimiter=delimiter, strict=True)
    while True:
        number, over = reader.line_num + 2, False
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                why = f"{name}:{number}: a quotation mark is never closed."
                raise InputError(why, "Close it; within a quoted cell a mark is doubled.") from None
            yield f"{name}:{number}", f"invalid CSV ({error}), up to line {reader.line_num + 1}"
            continue
        # In a row too long or too short this may be the rest of a text without quotation marks.
        rest = cells[ends if len(cells) >= ends else text + 1 :]
        if over:
            yield f"{name}:{number}", _too_large(max_row)
        elif any(_holds_rows(cell, columns, delimiter) for cell in cells):
            yield f"{name}:{number}", "holds whole rows: a quotation mark is closed too late"
        elif len(cells) > len(columns) or any(map(str.strip, rest)):
            why = f"has {len(cells)} cells under {ends} columns: a text with {delimiter!r} in it"
            yield f"{name}:{number}", f"{why} needs quotation marks"
        elif cells:
            row = dict(zip(columns, cells, strict=False))
            yield f"{name}:{number}", _from_row(row, number, fields)


def _holds_rows(cell: str, columns: list[str], delimiter: str) -> bool:
    """Whether each of several lines within a cell is a row: as many cells, an id of one word."""
    at = columns.index("id") if "id" in columns else 0
    rows = list(csv.reader(cell.splitlines()[1:-1], delimiter=delimiter))
    whole = (len(row) == len(columns) and len(row[at].split()) == 1 for row in rows)
    return len(rows) > 1 and all(whole)


def _from_row(row: Mapping[str, object], number: int, fields: Fields) -> Document | str:
    names = (fields.text,) if fields.text else _TEXT_FIELDS
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None:
        return f"no field {' or '.join(map(repr, names))}"
    text = row[name]
    if not isinstance(text, str):
        return f"the field {name!r} is not a string"
    try:
        known = _identity(row.get("id"), number), text.strip(), _member(row.get("member"))
        return Document(*known, _group(row, fields.group))
    except _UnusableRowError as reason:
        return str(reason)


def _identity(value: object, number: int) -> str:
    if value is None or value == "":
        return f"line-{number}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _UnusableRowError("the id is neither a string nor a whole number")
    return str(value)


def _group(row: Mapping[str, object], name: str | None) -> str | None:
    value = row.get(name) if name else None
    if name and (value is None or isinstance(value, dict | list) or not str(value).strip()):
        raise _UnusableRowError(f"no group in the field {name!r}")
    return None if value is None else str(value).strip()


def _member(value: object) -> bool | None:
    if value is None or value == "":
        return None
    known = _TRUTH.get(str(value).strip().lower())
    if known is None:
        raise _UnusableRowError(f"the field 'member' is {str(value)[:40]!r}, not true or false")
    return known


def _read_text(lines: Iterable[_Line], name: str, split: Split, max_row: int) -> Iterator[Row]:
    for start, text in _blocks(lines, split, max_row):
        where = f"{name}:{start}"
        identity = f"{Path(name).name}:{start}" if split else Path(name).name
        if text is None:
            hint = "" if split else "; split it into paragraphs"
            yield where, _too_large(max_row) + hint
        else:
            yield where, Document(identity, text)


def _blocks(lines: Iterable[_Line], split: Split, max_row: int) -> Iterator[tuple[int, str | None]]:
    """Yield first line and text of each block; None as text where it is over the limit."""
    block: list[str] = []
    start, size = 1, 0
    for number, line in itertools.chain(lines, [(0, "")]):
        blank = line is not None and not line.strip()
        if number == 0 or (split and blank):
            if size > max_row:
                yield start, None
            elif block:
                yield start, "".join(block).strip()
            block, size = [], 0
        elif block or size or not blank:
            start = start if block or size else number
            length = max_row + 1 if line is None else len(line.encode("utf-8", "surrogateescape"))
            size += length
            if size <= max_row and line is not None:
                block.append(line)
            else:
                block = []


_MAX_BYTES = 512 * 1024**2
_MAX_ROW_BYTES = 1_000_000

# A mistyped path must not become the document that is audited.
_FEWEST_WORDS = 8
_LONGEST_PATH = 256
_LIKE_A_PATH = re.compile(r"\s*(?:~|\.{0,2})[/\\].*|.*\.[a-z][a-z0-9]{0,6}\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row or file that was left out: ``file:line``, or the file, and the reason in one line."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """What could be used and what could not."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """One sentence for the reader of a result, where something could not be used."""
        if not (lost := len(self.skipped)):
            return ()
        why = f"{self.skipped[0].where}: {self.skipped[0].why}" + ("; and so on" * (lost > 1))
        rows = lost + len(self.documents)
        return (f"{lost} of {rows} rows cannot be used and were left out ({why}).",)


def load_documents(
    source: str | Path,
    *,
    text_field: str | None = None,
    group_field: str | None = None,
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
        group_field: Name of the field that holds the group; a row without one cannot be used.
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
        fields, limits = Fields(text_field, group_field), (max_bytes, max_row_bytes)
        return _collect(_rows(source, name, fields, split, limits), name)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{name} cannot be read: {why}.", "Check its permissions.") from error


def _rows(
    source: str | Path, name: str, fields: Fields, split: Split, limits: tuple[int, int]
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
            yield from read_file(stream, name, fields, split, limits)


def _collect(rows: Iterable[Row], name: str) -> LoadedDocuments:
    documents: list[Document] = []
    skipped: list[Skipped] = []
    seen: dict[str, tuple[str, bytes]] = {}
    for where, row in rows:
        if isinstance(row, str):
            skipped.append(Skipped(where, row))
            continue
        # What is left out is named; an id that comes twice would mix two documents up.
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
        return f"the {name} holds NUL bytes (binary)"
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
    """Whether a source that is not a file is a pasted text rather than a mistyped path."""
    like_a_path = len(source) < _LONGEST_PATH and _LIKE_A_PATH.fullmatch(source)
    return len(source.split()) >= _FEWEST_WORDS and not like_a_path
