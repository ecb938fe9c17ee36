"""Documents from a file, a folder, standard input or a pasted text.

What cannot be used is named with its place and reason and left out; only input from which
nothing can be used, or which would mean something else than the user thinks, is an error.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TextIO, TypeAlias

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, LeftOut
from ragwitness.text.formats import (
    SAMPLE,
    UnreadableError,
    encoding_of,
    extract_text,
    not_in,
)

TABLES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
PROSE = (".txt", ".text", ".md", ".markdown", ".rst")
_ASIDE = re.compile(r"\..*|~\$.*|thumbs\.db|desktop\.ini|__macosx", re.IGNORECASE)
"""Names of what systems and editors leave beside documents: nobody's document, and not named."""

_MAX_BYTES = 512 * 1024**2
_MOST_CHARACTERS = 1_000_000
_NAMED = 5  # files that one sentence names
_SHOWN = 40  # of those left out, in a terminal; a result names all

Split: TypeAlias = Literal["paragraphs"] | None


class _Note(NamedTuple):
    """What a reader must know of a file that was read; it goes on from its name."""

    text: str


Row: TypeAlias = tuple[str, int, Document | str | _Note]
"""File and line (0: all of it), and the document, the reason why there is none, or a note."""


class _Reading(NamedTuple):
    """How files are read; see :func:`load_documents`."""

    fields: Fields
    split: Split
    encoding: str | None
    max_bytes: int
    most: int


def check_size(name: object, size: int, max_bytes: int) -> None:
    """Raise InputError where ``size`` is over ``max_bytes``."""
    if size > max_bytes:
        raise InputError(
            f"{name} is larger than {max_bytes / 1024**2:,.0f} MiB.",
            "Split it and audit the parts, e.g.: split -C 256m --additional-suffix=.jsonl FILE",
        )


def _folder(folder: Path, how: _Reading) -> Iterator[Row]:
    """Yield the documents of every file below a folder, in order of their paths."""
    closed: list[OSError] = []
    paths = []
    for at, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not _ASIDE.fullmatch(name)]
        # A link to a folder is not followed: it may lead back, or anywhere.
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        paths += [os.path.join(at, name) for name in (*files, *links) if not _ASIDE.fullmatch(name)]

    def below(path: str) -> str:
        return os.path.relpath(path, folder).replace(os.sep, "/")

    for error in closed:
        yield f"{folder.name}/{below(error.filename)}", 0, f"cannot be read: {error.strerror}"
    for path in sorted(paths, key=lambda path: path.split(os.sep)):
        identity = below(path)
        place = f"{folder.name}/{identity}" if folder.name else identity
        try:
            if not os.path.isfile(path):
                yield place, 0, "is a link that leads to no file, or no file at all"
                continue
            with open(path, "rb") as stream:
                yield from _file(stream, place, identity, how, in_folder=True)
        except UnreadableError as error:
            yield place, 0, error.why
        except OSError as error:
            yield place, 0, f"cannot be read: {error.strerror or error}"


def _file(
    stream: BinaryIO, place: str, identity: str, how: _Reading, *, in_folder: bool = False
) -> Iterator[Row]:
    """Yield the documents of one file, whose content and ending tell what it is.

    Raises:
        UnreadableError: It is empty, binary, damaged, or in a format that is not read.
    """
    rows = 0
    for row in _contents(stream, place, identity, how, in_folder=in_folder):
        rows += not isinstance(row[2], _Note)
        yield row
    if not rows:
        raise UnreadableError("holds no document", "Give a file with text in it.")


def _contents(
    stream: BinaryIO, place: str, identity: str, how: _Reading, *, in_folder: bool
) -> Iterator[Row]:
    suffix = Path(place).suffix.lower()
    # 1. A format of its own: one document, or its paragraphs.
    if (extract := extract_text(stream, suffix, how.encoding, how.most)) is not None:
        if extract.note:
            yield place, 0, _Note(extract.note)
        yield from _prose(io.StringIO(extract.text), place, identity, how)
        return
    # 2. Plain text: its beginning tells the encoding, and whether it is rows of JSON.
    sample = stream.read(SAMPLE)
    if not sample.removeprefix(codecs.BOM_UTF8).strip():
        raise UnreadableError("is empty", "Give a file with text in it.")
    encoding, note = encoding_of(sample, how.encoding, whole=len(sample) < SAMPLE)
    if in_folder and suffix not in {*PROSE, *TABLES}:
        ends = f"ends in {suffix}" if suffix else "has no ending"
        endings = ", ".join((*PROSE, *TABLES))
        raise UnreadableError(
            f"{ends}, and plain texts are read that end in {endings}", "Rename it."
        )
    start = sample[:400].decode(encoding, "ignore").removeprefix("\ufeff").lstrip()[:1]
    if suffix == ".json" and start == "[":
        hint = f"Make it one object per line: jq -c '.[]' {place} > {Path(place).stem}.jsonl"
        raise UnreadableError("is one JSON array", hint)
    if note:
        yield place, 0, _Note(note)
    # 3. Line by line: no plain text is ever held whole. What is no UTF-8 becomes surrogates, which
    # are refused with their row; another encoding is right for the whole file, or for none of it.
    stream.seek(0)
    errors = "surrogateescape" if encoding.startswith("utf-8") else "strict"
    sniffed = "jsonl" if start == "{" and suffix not in PROSE else "text"
    kind = TABLES.get(suffix, sniffed)
    with io.TextIOWrapper(stream, encoding, errors, newline="\n") as text:
        if kind == "text":
            yield from _prose(text, place, identity, how)
            return
        lines = _lines(text, how.most)
        rows = (
            read_jsonl(lines, how.fields, how.most)
            if kind == "jsonl"
            else read_csv(lines, how.fields, how.most, by_tabs=suffix == ".tsv")
        )
        for number, row in rows:
            if in_folder and isinstance(row, Document):  # two tables may use the same ids
                row = replace(row, id=f"{identity}:{row.id}")
            yield place, number, row


def _lines(text: TextIO, most: int) -> Iterator[Line]:
    """Yield numbered lines."""
    number, part, over = 0, "", False
    # ``readline`` is bounded, so a line without end never fills the memory
    while piece := _piece(text, most + 1):
        over = over or len(part) + len(piece) > most
        part = "" if over else part + piece
        if piece.endswith("\n"):
            number += 1
            yield number, None if over else part
            part, over = "", False
    if part or over:
        yield number + 1, None if over else part


def _piece(text: TextIO, most: int, *, whole: bool = False) -> str:
    try:
        return text.read(most) if whole else text.readline(most)
    except UnicodeDecodeError:
        raise not_in(text.encoding) from None


def _prose(text: TextIO, place: str, identity: str, how: _Reading) -> Iterator[Row]:
    if how.split:
        for start, block in _paragraphs(_lines(text, how.most), how.most):
            row = Document(f"{identity}:{start}", block) if block else too_large(how.most)
            yield place, start, row
    elif len(whole := _piece(text, how.most + 1, whole=True)) > how.most:
        yield place, 0, too_large(how.most) + "; split it into paragraphs (--paragraphs)"
    else:
        yield place, 0, Document(identity, whole.strip())


def _paragraphs(lines: Iterable[Line], most: int) -> Iterator[tuple[int, str]]:
    """Yield first line and text of each block; an empty text where it is over the limit."""
    block: list[str] = []
    start, size = 1, 0
    for number, line in itertools.chain(lines, [(0, "")]):
        if line is None or line.strip():
            start = start if size else number
            size += most + 1 if line is None else len(line)
            block = block if size <= most else []
            block.append(line or "")
        elif size:
            yield start, "".join(block).strip() if size <= most else ""
            block, size = [], 0


# A mistyped path must not become the document that is audited.
_FEWEST_WORDS = 8
_LONGEST_PATH = 256
_LIKE_A_PATH = re.compile(r"\s*(?:~|\.{0,2})[/\\].*|.*\.[a-z][a-z0-9]{0,6}\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """What could be used and what could not.

    Attributes:
        documents: In the order in which they stand there.
        left_out: Every file and row that is not among them, by the name under which it was given.
        notes: What a reader must know of files that are, in sentences.
    """

    documents: tuple[Document, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines for whoever gave the source: each file that was left out, and the notes."""
        lines = [f"left out: {one.name}: {one.why}" for one in self.left_out[:_SHOWN]]
        if (more := len(self.left_out) - _SHOWN) > 0:
            lines.append(f"left out: {more:,} more files or rows")
        return (*lines, *self.notes)


def load_documents(
    source: str | Path,
    *,
    text_field: str | None = None,
    group_field: str | None = None,
    split: Split = None,
    encoding: str | None = None,
    max_bytes: int = _MAX_BYTES,
    max_characters: int = _MOST_CHARACTERS,
) -> LoadedDocuments:
    """Load documents.

    Args:
        source: A file in one of the formats of ``docs/documents.md`` (a table has the fields
            ``text`` or ``document``, optional ``id`` and ``member``), a folder of those, ``"-"``
            for standard input, or the text itself: at least 8 words that do not look like a path.
        text_field: Name of the field that holds the text.
        group_field: Name of the field that holds the group; a row without one cannot be used.
        split: ``"paragraphs"`` makes every block between blank lines of a text a document of its
            own; otherwise a file is one document.
        encoding: Of texts that are not in UTF-8; None to recognise it.
        max_bytes: Limit of one file, and of all texts together.
        max_characters: Limit of one document.

    Raises:
        InputError: The source is missing, unreadable, over ``max_bytes``, or holds no usable
            document; or there is no such encoding.
    """
    name = _shown(source)
    try:
        "".encode(encoding or "utf-8")
        fields = Fields(text_field, group_field)
        how = _Reading(fields, split, encoding, max_bytes, max_characters)
        return _collect(_rows(source, name, how), name, max_bytes)
    except LookupError:
        why = f"There is no encoding of texts that is called {encoding!r}."
        raise InputError(why, "Examples: windows-1252, utf-16-le, gb18030, shift_jis.") from None
    except UnreadableError as error:
        raise InputError(f"{name} {error.why}.", error.hint) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{name} cannot be read: {why}.", "Check its permissions.") from error


def _rows(source: str | Path, name: str, how: _Reading) -> Iterator[Row]:
    path = None if source == "-" else _existing(source)
    if source != "-" and path is None:
        yield "pasted text", 0, Document("pasted", str(source).strip())
    elif path is None:
        data = sys.stdin.buffer.read(how.max_bytes + 1)
        check_size(name, len(data), how.max_bytes)
        yield from _file(io.BytesIO(data), name, name, how)
    elif path.is_dir():
        yield from _folder(path, how)
    else:
        check_size(name, path.stat().st_size, how.max_bytes)
        with path.open("rb") as stream:
            yield from _file(stream, path.name, path.name, how)


def _collect(rows: Iterable[Row], name: str, max_bytes: int) -> LoadedDocuments:
    documents: list[Document] = []
    left_out: list[LeftOut] = []
    notes: dict[str, list[str]] = {}
    seen: dict[str, tuple[str, bytes]] = {}
    size = 0
    for file, line, row in rows:
        place = LeftOut(_sayable(file), "", line)
        if isinstance(row, _Note):
            notes.setdefault(row.text, []).append(place.name)
            continue
        # What is left out is named; an id that comes twice would mix two documents up.
        why = (
            row
            if isinstance(row, str)
            else _flaw(row.id, "id") or _flaw(row.text, "text") or _repeats(row, place.name, seen)
        )
        if why:
            left_out.append(replace(place, why=why))
        elif isinstance(row, Document):
            documents.append(row)
            check_size(name, size := size + len(row.text), max_bytes)
    if not documents:
        raise _nothing(name, left_out)
    told = (f"{_listed(names)}: {note}." for note, names in notes.items())
    return LoadedDocuments(tuple(documents), tuple(left_out), tuple(told))


def _sayable(name: str) -> str:
    """Return a name that every file can hold: not all names of files are text."""
    return name.encode(errors="backslashreplace").decode()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more files" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


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


def _nothing(name: str, left_out: list[LeftOut]) -> InputError:
    if not left_out:
        return InputError(
            f"{name} holds no document.",
            "Give a file with text in it, or a folder of files; docs/documents.md lists which.",
        )
    reasons = "; ".join(f"{one.name}: {one.why}" for one in left_out[:_NAMED])
    more = f" (and {len(left_out) - _NAMED:,} more)" if len(left_out) > _NAMED else ""
    return InputError(
        f"{name} holds no usable document: {reasons}{more}.",
        "docs/documents.md lists what is read; --text-field names the field of a table's texts.",
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
        "Give a file, a folder of files, or a text of 8 words or more (- reads a text of any length"
        " from standard input).",
    )


def _is_text(source: str) -> bool:
    """Whether a source that is not a file is a pasted text rather than a mistyped path."""
    like_a_path = len(source) < _LONGEST_PATH and _LIKE_A_PATH.fullmatch(source)
    return len(source.split()) >= _FEWEST_WORDS and not like_a_path


# Documents that are rows of a table: JSON lines and CSV, read row by row.


_TEXT_FIELDS = ("text", "document")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

TableRow: TypeAlias = tuple[int, Document | str]
"""Number of its line, and the document or the reason why there is none."""
Line: TypeAlias = tuple[int, str | None]
"""Line number with its text, None where the line is over the limit."""


def too_large(most: int) -> str:
    """Say that a document has more characters than one may have."""
    return f"the document is over the size limit of one document, {most:,} characters"


class Fields(NamedTuple):
    """Names of the fields, or columns, of the text (None for the usual ones) and of the group."""

    text: str | None = None
    group: str | None = None


class _UnusableRowError(Exception):
    """Why one row cannot be used."""


def read_jsonl(lines: Iterable[Line], fields: Fields, max_row: int) -> Iterator[TableRow]:
    """Yield the rows of JSON lines."""
    for number, line in lines:
        if line is None:
            yield number, too_large(max_row)
        elif line.strip():
            yield number, _from_json(line, number, fields)


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


def read_csv(
    lines: Iterable[Line], fields: Fields, max_row: int, *, by_tabs: bool
) -> Iterator[TableRow]:
    """Yield the rows of a table whose first line names its columns.

    Raises:
        UnreadableError: It has no text column, two of one name, or an open quotation mark.
    """
    rows = iter(lines)
    header = next(rows)[1] or ""
    delimiter = "\t" if by_tabs else max(",;", key=header.count)
    try:
        columns = [column.strip() for column in next(csv.reader([header], delimiter=delimiter))]
    except csv.Error as error:
        why = f"has names of columns that cannot be read ({error})"
        raise UnreadableError(why, "Save it as CSV again, with usual ends of lines.") from None
    wanted = (fields.text,) if fields.text else _TEXT_FIELDS
    if fields.group and fields.group not in columns:
        raise UnreadableError(f"has no column {fields.group!r}", "Correct --group-field.")
    if not set(wanted) & set(columns):
        raise UnreadableError(
            f"has no column {' or '.join(map(repr, wanted))}; "
            f"it has {', '.join(map(repr, columns[:12]))}",
            "Name the column that holds the text with --text-field.",
        )
    if twice := [repr(column) for column, n in Counter(columns).items() if column and n > 1]:
        why = f"has more than one column {', '.join(twice[:12])}"
        raise UnreadableError(why, "Give each column a name of its own.")
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
                why = f"has a quotation mark in line {number} that is never closed"
                hint = "Close it; within a quoted cell a mark is doubled."
                raise UnreadableError(why, hint) from None
            yield number, f"invalid CSV ({error}), up to line {reader.line_num + 1}"
            continue
        # In a row too long or too short this may be the rest of a text without quotation marks.
        rest = cells[ends if len(cells) >= ends else text + 1 :]
        if over:
            yield number, too_large(max_row)
        elif any(_holds_rows(cell, columns, delimiter) for cell in cells):
            yield number, "holds whole rows: a quotation mark is closed too late"
        elif len(cells) > len(columns) or any(map(str.strip, rest)):
            why = f"has {len(cells)} cells under {ends} columns: a text with {delimiter!r} in it"
            yield number, f"{why} needs quotation marks"
        elif cells:
            row = dict(zip(columns, cells, strict=False))
            yield number, _from_row(row, number, fields)


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
