"""Documents from a file, a folder, standard input or a pasted text.

A file or row that cannot be used is named with its reason and left out. Input without any usable
document, or with another meaning than the user thinks, is an error.
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
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TextIO, TypeAlias

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, LeftOut
from ragwitness.text.formats import (
    SAMPLE,
    UnreadableError,
    encoding_of,
    not_in,
)
from ragwitness.text.worker import extract_apart

TABLES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
PROSE = (".txt", ".text", ".md", ".markdown", ".rst")
_ASIDE = re.compile(r"\..*|~\$.*|thumbs\.db|desktop\.ini|__macosx", re.IGNORECASE)
"""Names of files that systems and editors put beside documents; skipped without a remark."""

_MAX_BYTES = 512 * 1024**2  # of one file, and of all texts together
_MAX_CHARACTERS = 1_000_000  # of one document
_NAMED = 5  # files that one sentence names
_SHOWN = 40  # of those left out, in a terminal; a result names all

Split: TypeAlias = Literal["paragraphs"] | None


class _Note(NamedTuple):
    """A remark on a file that was read; the file's name begins the sentence."""

    text: str


Row: TypeAlias = tuple[str, int, Document | str | _Note]
"""File and line (0: all of it), and the document, the reason why there is none, or a note."""


class Fields(NamedTuple):
    """Names of the fields, or columns, of the text (None for the usual ones) and of the group."""

    text: str | None = None
    group: str | None = None


class _Reading(NamedTuple):
    """How files are read; see :func:`load_documents`."""

    fields: Fields
    split: Split
    encoding: str | None


def _check_size(name: object, size: int) -> None:
    if size > _MAX_BYTES:
        raise InputError(
            f"{name} is larger than {_MAX_BYTES / 1024**2:,.0f} MiB.",
            "Split it and audit the parts, e.g.: split -C 256m --additional-suffix=.jsonl FILE",
        )


def _folder(folder: Path, how: _Reading) -> Iterator[Row]:
    """Yield the documents of every file below a folder, in order of their paths."""
    # 1. Every path below the folder, and the folders that cannot be opened.
    closed: list[OSError] = []
    paths = []
    for at, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not _ASIDE.fullmatch(name)]
        # A link to a folder is not followed: it may lead back, or anywhere.
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        paths += [os.path.join(at, name) for name in (*files, *links) if not _ASIDE.fullmatch(name)]

    def name_of(path: str) -> tuple[str, str]:
        """The name below the folder, and the name with it."""
        identity = os.path.relpath(path, folder).replace(os.sep, "/")
        return identity, f"{folder.name}/{identity}" if folder.name else identity

    # 2. A row for each folder and file, with its documents or the reason.
    for error in closed:
        yield name_of(error.filename)[1], 0, f"cannot be read: {error.strerror}"
    for path in sorted(paths, key=lambda path: path.split(os.sep)):
        identity, name = name_of(path)
        try:
            if not os.path.isfile(path):
                yield name, 0, "is a link that leads to no file, or no file at all"
                continue
            with open(path, "rb") as stream:
                yield from _file(stream, name, identity, how, in_folder=True)
        except UnreadableError as error:
            yield name, 0, error.why
        except OSError as error:
            yield name, 0, f"cannot be read: {error.strerror or error}"


def _file(
    stream: BinaryIO, place: str, identity: str, how: _Reading, *, in_folder: bool = False
) -> Iterator[Row]:
    """Yield the documents of one file, whose content and ending tell what it is.

    Raises:
        UnreadableError: It is empty, binary, damaged, or in a format that is not read.
    """
    # A note is no document.
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
    # 1. No plain text: one document, or its paragraphs.
    if (extract := extract_apart(stream, suffix, how.encoding, _MAX_CHARACTERS)) is not None:
        if extract.note:
            yield place, 0, _Note(extract.note)
        yield from _prose(io.StringIO(extract.text), place, identity, how)
        return
    # 2. Plain text: its beginning shows the encoding, and whether it is rows of JSON.
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
    # 3. Line by line: no plain text is ever held whole. Bytes outside UTF-8 become surrogates, and
    # their row is refused; another encoding is right for the whole file, or for none of it.
    stream.seek(0)
    errors = "surrogateescape" if encoding.startswith("utf-8") else "strict"
    sniffed = "jsonl" if start == "{" and suffix not in PROSE else "text"
    kind = TABLES.get(suffix, sniffed)
    # A line may end as on an old Macintosh.
    with io.TextIOWrapper(stream, encoding, errors, newline="") as text:
        try:
            if kind == "text":
                yield from _prose(text, place, identity, how)
                return
            read = read_jsonl if kind == "jsonl" else read_csv
            for number, row in read(_lines(text), how.fields):
                if in_folder and isinstance(row, Document):  # two tables may use the same ids
                    row = replace(row, id=f"{identity}:{row.id}")
                yield place, number, row
        except UnicodeDecodeError:
            raise not_in(encoding) from None


def _lines(text: TextIO) -> Iterator[Line]:
    """Yield numbered lines."""
    number, line = 0, ""
    # ``readline`` is bounded, so a line without end never fills the memory
    while piece := text.readline(_MAX_CHARACTERS + 1):
        line = (line + piece)[: _MAX_CHARACTERS + 1]
        if piece.endswith(("\n", "\r")):
            number += 1
            yield number, line if len(line) <= _MAX_CHARACTERS else None
            line = ""
    if line:
        yield number + 1, line if len(line) <= _MAX_CHARACTERS else None


def _prose(text: TextIO, place: str, identity: str, how: _Reading) -> Iterator[Row]:
    if how.split:
        for start, block in _paragraphs(_lines(text)):
            yield place, start, Document(f"{identity}:{start}", block) if block else _TOO_LARGE
    elif len(content := text.read(_MAX_CHARACTERS + 1)) > _MAX_CHARACTERS:
        yield place, 0, _TOO_LARGE + "; split it into paragraphs (--paragraphs)"
    else:
        yield place, 0, Document(identity, content.strip())


def _paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Yield first line and text of each block; an empty text where it is over the limit."""
    for blank, group in itertools.groupby(lines, lambda line: bool(line[1] and line[1].isspace())):
        if not blank:
            numbers, texts = zip(*group, strict=True)
            over = None in texts or sum(map(len, texts)) > _MAX_CHARACTERS
            yield numbers[0], "" if over else "".join(texts).strip()


# A mistyped path must not become the document that is audited.
_FEWEST_WORDS = 8
_LONGEST_PATH = 256
_LIKE_A_PATH = re.compile(r"\s*(?:~|\.{0,2})[/\\].*|.*\.[a-z][a-z0-9]{0,6}\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """The usable documents, and the files and rows that were left out.

    Attributes:
        documents: In the order of the source.
        left_out: Every file and row without a document, by name and with the reason.
        notes: Remarks on files with documents, in sentences.
    """

    documents: tuple[Document, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines for the user: each file that was left out, and the notes."""
        # The terminal shows the first files; a result names all.
        lines = [f"left out: {file.name}: {file.why}" for file in self.left_out[:_SHOWN]]
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
) -> LoadedDocuments:
    """Load documents.

    Args:
        source: A file in one of the formats of ``docs/documents.md`` (a table has the fields
            ``text`` or ``document``, optional ``id`` and ``member``), or a folder of those. Or
            ``"-"`` for standard input, or the text itself: at least 8 words, unlike a path.
        text_field: Name of the field that holds the text.
        group_field: Name of the field that holds the group; a row without one cannot be used.
        split: ``"paragraphs"`` makes a document of every block between blank lines of a text;
            otherwise a file is one document.
        encoding: Of texts that are not in UTF-8; None to recognise it.

    Raises:
        InputError: The source is missing, unreadable, too large, or holds no usable document; or
            there is no such encoding.
    """
    name = _shown(source)
    try:
        "".encode(encoding or "utf-8")
        how = _Reading(Fields(text_field, group_field), split, encoding)
        return _collect(_rows(source, name, how), name)
    except LookupError:
        raise InputError(
            f"There is no encoding of texts that is called {encoding!r}.",
            "Examples: windows-1252, utf-16-le, gb18030, shift_jis.",
        ) from None
    except UnreadableError as error:
        raise InputError(f"{name} {error.why}.", error.hint) from error
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}."
        raise InputError(message, "Check its permissions.") from error


def _rows(source: str | Path, name: str, how: _Reading) -> Iterator[Row]:
    if source == "-":
        data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        _check_size(name, len(data))
        yield from _file(io.BytesIO(data), name, name, how)
    elif (path := _existing(source)) is None:
        yield "pasted text", 0, Document("pasted", str(source).strip())
    elif path.is_dir():
        yield from _folder(path, how)
    else:
        _check_size(name, path.stat().st_size)
        with path.open("rb") as stream:
            yield from _file(stream, path.name, path.name, how)


def _collect(rows: Iterable[Row], name: str) -> LoadedDocuments:
    documents: list[Document] = []
    left_out: list[LeftOut] = []
    notes: dict[str, list[str]] = {}
    first: dict[str, tuple[str, bytes]] = {}
    size = 0
    for file, line, row in rows:
        # Some names of files are no text.
        place = LeftOut(file.encode(errors="backslashreplace").decode(), "", line)
        if isinstance(row, _Note):
            notes.setdefault(row.text, []).append(place.name)
            continue
        # A second document with the same id would mix two documents up.
        flaw = (
            row
            if isinstance(row, str)
            else _flaw(row.id, "id") or _flaw(row.text, "text") or _repeats(row, place.name, first)
        )
        if flaw:
            left_out.append(replace(place, why=flaw))
        elif isinstance(row, Document):
            documents.append(row)
            _check_size(name, size := size + len(row.text))
    if not documents:
        raise _nothing(name, left_out)
    # Notes of the same kind are one sentence.
    sentences = (f"{_listed(names)}: {note}." for note, names in notes.items())
    return LoadedDocuments(tuple(documents), tuple(left_out), tuple(sentences))


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


def _repeats(row: Document, place: str, first: dict[str, tuple[str, bytes]]) -> str | None:
    digest = hashlib.sha256(row.text.encode()).digest()
    earlier, earlier_digest = first.setdefault(row.id, (place, digest))
    if earlier is place:
        return None
    same = "the same" if earlier_digest == digest else "another"
    return f"repeats the id {row.id[:80]!r} of {earlier} with {same} text"


def _nothing(name: str, left_out: list[LeftOut]) -> InputError:
    if not left_out:
        return InputError(
            f"{name} holds no document.",
            "Give a file with text in it, or a folder of files; docs/documents.md lists which.",
        )
    reasons = "; ".join(f"{file.name}: {file.why}" for file in left_out[:_NAMED])
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
    # A path wins over a text of the same words.
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
_TOO_LARGE = f"the document is over the size limit of one document, {_MAX_CHARACTERS:,} characters"

TableRow: TypeAlias = tuple[int, Document | str]
"""Number of its line, and the document or the reason why there is none."""
Line: TypeAlias = tuple[int, str | None]
"""Line number with its text, None where the line is over the limit."""


class _UnusableRowError(Exception):
    """Why one row cannot be used."""


def read_jsonl(lines: Iterable[Line], fields: Fields) -> Iterator[TableRow]:
    """Yield the rows of JSON lines."""
    for number, line in lines:
        if line is None:
            yield number, _TOO_LARGE
        elif line.strip():
            yield number, _from_json(line, number, fields)


def _from_json(line: str, number: int, fields: Fields) -> Document | str:
    try:
        row = json.loads(line, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        return f"invalid JSON ({error.msg} at column {error.colno})"
    except _UnusableRowError as reason:
        return str(reason)
    except (ValueError, RecursionError):
        return "invalid JSON (a number too long, or nested too deeply)"
    if not isinstance(row, dict):
        return "the row is not an object"
    return _from_row(row, number, fields)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON with different keys: of two equal ones the last would hide the first."""
    if len(row := dict(pairs)) < len(pairs):
        raise _UnusableRowError("a key stands twice in it")
    return row


def read_csv(lines: Iterable[Line], fields: Fields) -> Iterator[TableRow]:
    """Yield the rows of a table whose first line names its columns.

    Raises:
        UnreadableError: It has no text column, two of one name, or an open quotation mark.
    """
    # 1. The first line: delimiter and columns.
    rows = iter(lines)
    offset, header = next(rows)
    # Excel's own line names the delimiter; else it is the one that gives a column of texts.
    if given := re.fullmatch(r'\ufeff?"?sep=(.)"?\s*', header or "", re.IGNORECASE):
        offset, header = next(rows, (2, ""))
    header = header or ""
    delimiters = given[1] if given else _DELIMITERS
    names = set(_text_fields(fields))
    by_fit = (
        (len(names & {*(cells := _cells(header, mark))}), len(cells), mark) for mark in delimiters
    )
    *_, delimiter = max(by_fit, key=lambda fit: fit[:2])
    columns = _columns(header, delimiter, fields)
    # The text may be cut at a delimiter: no cell with content may follow it without a name.
    last = max(number for number, column in enumerate(columns, 1) if column)
    text = min(columns.index(name) for name in _text_fields(fields) if name in columns)
    # the module's limit is global and lower than ours: raised, never lowered
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CHARACTERS))
    # 2. The lines for the CSV reader; one over the limit spoils its row.
    over, raw = False, list[str]()

    def texts() -> Iterator[str]:
        nonlocal over
        for _, line in rows:
            over = over or line is None
            raw.append(line or "\n")
            yield raw[-1]

    # 3. Row by row, each with the number of its first line.
    reader = csv.reader(texts(), delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        number, over = reader.line_num + 1 + offset, False
        raw.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                raise UnreadableError(
                    f"has a quotation mark in line {number} that is never closed",
                    "Close it; within a quoted cell a mark is doubled.",
                ) from None
            # Some programs write \\" for a quotation mark within a cell.
            cells = _escaped(raw, delimiter) if any('\\"' in cell for cell in raw) else []
            if len(cells) != len(columns):
                yield number, f"invalid CSV ({error}), up to line {reader.line_num + offset}"
                continue
        # In a row too long or too short this may be the rest of a text without quotation marks.
        rest = cells[last if len(cells) >= last else text + 1 :]
        if over:
            yield number, _TOO_LARGE
        elif len(cells) > len(columns) or any(map(str.strip, rest)):
            yield (
                number,
                f"has {len(cells)} cells under {last} columns: a text with {delimiter!r} in it"
                " needs quotation marks",
            )
        elif cells:
            yield number, _from_row(dict(zip(columns, cells, strict=False)), number, fields)


def _escaped(lines: list[str], delimiter: str) -> list[str]:
    """The cells of one row that has a backslash before quotation marks; none if it fails."""
    reader = csv.reader(lines, delimiter=delimiter, escapechar="\\", doublequote=False, strict=True)
    with suppress(csv.Error):
        rows = list(reader)
        return rows[0] if len(rows) == 1 else []
    return []


_DELIMITERS = ",;\t|"


def _cells(header: str, delimiter: str) -> list[str]:
    """The names in a line; none where it cannot be read."""
    with suppress(csv.Error, StopIteration):
        names = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True))
        usual = ("id", "member", *_TEXT_FIELDS)
        return [low if (low := name.strip().lower()) in usual else name.strip() for name in names]
    return []


def _columns(header: str, delimiter: str, fields: Fields) -> list[str]:
    """Return the names in the first line of a table."""
    columns = _cells(header, delimiter)
    names = _text_fields(fields)
    if fields.group and fields.group not in columns:
        raise UnreadableError(f"has no column {fields.group!r}", "Correct --group-field.")
    if not set(names) & set(columns):
        raise UnreadableError(
            f"has no column {' or '.join(map(repr, names))}; "
            f"it has {', '.join(map(repr, columns[:12]))}",
            "Name the column that holds the text with --text-field.",
        )
    if twice := [repr(column) for column, n in Counter(columns).items() if column and n > 1]:
        raise UnreadableError(
            f"has more than one column {', '.join(twice[:12])}",
            "Give each column a different name.",
        )
    return columns


def _text_fields(fields: Fields) -> tuple[str, ...]:
    return (fields.text,) if fields.text else _TEXT_FIELDS


def _from_row(row: Mapping[str, object], number: int, fields: Fields) -> Document | str:
    names = _text_fields(fields)
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None:
        return f"no field {' or '.join(map(repr, names))}"
    text = row[name]
    if not isinstance(text, str):
        return f"the field {name!r} is not a string"
    try:
        identity, member = _identity(row.get("id"), number), _member(row.get("member"))
        return Document(identity, text.strip(), member, _group(row, fields.group))
    except _UnusableRowError as reason:
        return str(reason)


def _identity(value: object, number: int) -> str:
    if value is None or value == "":
        return f"line-{number}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _UnusableRowError("the id is neither a string nor a whole number")
    return str(value)


def _group(row: Mapping[str, object], name: str | None) -> str | None:
    if name is None:
        return None
    value = row.get(name)
    if value is None or isinstance(value, dict | list) or not str(value).strip():
        raise _UnusableRowError(f"no group in the field {name!r}")
    return str(value).strip()


def _member(value: object) -> bool | None:
    if value is None or value == "":
        return None
    if (truth := _TRUTH.get(str(value).strip().lower())) is None:
        raise _UnusableRowError(f"the field 'member' is {str(value)[:40]!r}, not true or false")
    return truth
