"""A result of any kind as files for machines: JSON, JSON lines, Parquet, JUnit XML."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

from ragwitness.errors import MissingExtraError
from ragwitness.kit.files import replace_file
from ragwitness.results import wording as say
from ragwitness.results.kind import Kind, plain

_STRICT: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
SUMMARY = b"ragwitness"
"""Key of the result's head among the metadata of a Parquet file."""

# XML 1.0, production 2; no escape makes another character legal.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000
_GROUP = 10_000  # rows of a Parquet file written together


def _json(kind: Kind[Any, Any], result: Any, conditions: Sequence[Any]) -> Iterator[str]:  # noqa: ARG001
    """Yield a result as it is stored; its rows, of which there may be many, a line each."""
    if not kind.stored_rows or kind.head is None:
        yield json.dumps(kind.stored(result), indent=1, **_STRICT) + "\n"
        return
    yield f'{{\n "kind": "{kind.name}",\n "version": {kind.version},\n "{kind.stored_rows}": ['
    before = "\n  "
    for row in kind.rows(result):
        yield before + json.dumps(row, **_STRICT)
        before = ",\n  "
    yield "\n ]," + json.dumps({"summary": kind.head(result)}, indent=1, **_STRICT)[1:] + "\n"


def _jsonl(kind: Kind[Any, Any], result: Any, conditions: Sequence[Any]) -> Iterator[str]:  # noqa: ARG001
    """Yield one line per row of a result."""
    # One that holds NaN is written as null, as in the JSON.
    return (json.dumps(plain(row), **_STRICT) + "\n" for row in kind.rows(result))


def require_parquet() -> ModuleType:
    """Return pyarrow.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Writing Parquet", "data") from error
    return pyarrow  # type: ignore[no-any-return]


def _parquet(kind: Kind[Any, Any], result: Any, conditions: Sequence[Any]) -> bytes:  # noqa: ARG001
    """Return one row per row of a result, with the names and the nesting of the JSON.

    The types do not depend on the values: a column without any is still a column of numbers.
    What there is not is null, never NaN.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow = require_parquet()
    # The head goes into the file's metadata, so that a table without its run folder still says what
    # it is.
    head = kind.head(result) if kind.head else kind.stored(result)
    first = next(iter(kind.columns))
    # The schema follows from the kind, never from the rows: two files of one kind can always be
    # joined.
    schema = arrow.schema(
        [
            arrow.field(name, _arrow_type(arrow, type_), nullable=name != first)
            for name, type_ in kind.columns.items()
        ],
        {SUMMARY: json.dumps(head, allow_nan=False).encode()},
    )
    # In memory first, then in one step to disk: a file is there whole or not at all. The rows go
    # there group by group, compressed.
    file, rows = io.BytesIO(), iter(kind.rows(result))
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        while group := [_sound(plain(row)) for row in islice(rows, _GROUP)]:
            writer.write_table(arrow.Table.from_pylist(group, schema))
    return file.getvalue()


def _arrow_type(arrow: ModuleType, type_: Any) -> Any:
    # The kind's notation: a list holds its element, a mapping its fields.
    if isinstance(type_, list):
        return arrow.list_(_arrow_type(arrow, type_[0]))
    if isinstance(type_, Mapping):
        return arrow.struct([(name, _arrow_type(arrow, one)) for name, one in type_.items()])
    known = {str: arrow.string, int: arrow.int64, float: arrow.float64, bool: arrow.bool_}
    return known[type_]()


def _sound(value: Any) -> Any:
    """Replace half surrogate pairs, which no UTF-8 can hold, all the way down."""
    if isinstance(value, dict):
        return {key: _sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def junit_xml(kind: Kind[Any, Any], result: Any, conditions: Sequence[Any] = ()) -> str:
    """Return a result as JUnit XML; without conditions nothing fails.

    Args:
        kind: Of the result.
        result: The result.
        conditions: Those of ``--fail-on``.
    """
    # Pass 1: what the report says and how each case ended.
    sheet, cases = kind.sheet(result), kind.tested(result, conditions)
    root = ET.Element("testsuites", name="ragwitness")
    suite = ET.SubElement(root, "testsuite", name=_clean(sheet.target or sheet.kind))
    if started := getattr(result, "started", ""):
        suite.set("timestamp", _clean(started))
    # Pass 2: how it was asked, so that a CI server's archive can be read without the run folder.
    properties = ET.SubElement(suite, "properties")
    named = {
        **(kind.properties(result) if kind.properties else {}),
        "fail-on": ", ".join(map(str, conditions)) or "nothing",
        **dict(sheet.settings),
    }
    for name, value in named.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    # Pass 3: the cases; what passed says its figures as well, because a pass is also a finding.
    for one in cases:
        case = ET.SubElement(suite, "testcase", classname=_clean(f"ragwitness.{sheet.method}"))
        case.set("name", _clean(one.name))
        if one.state == "failed":
            failure = ET.SubElement(case, "failure", type=one.type, message=_clean(one.message))
            failure.text = _lines(one.text)
        elif one.state == "skipped":
            ET.SubElement(case, "skipped", message=_clean(one.message))
        else:
            said = "\n".join(filter(None, (_clean(one.message), _lines(one.text))))
            ET.SubElement(case, "system-out").text = said
    if sheet.warnings:
        ET.SubElement(suite, "system-out").text = "\n".join(map(_clean, sheet.warnings))
    # Pass 4: the counts, on the suite and on the root: readers differ in where they look.
    counts = {
        "tests": len(cases),
        "failures": sum(one.state == "failed" for one in cases),
        "errors": 0,
        "skipped": sum(one.state == "skipped" for one in cases),
    }
    seconds = plain(getattr(result, "seconds", None))
    for element in (root, suite):
        for name, count in counts.items():
            element.set(name, str(count))
        if seconds is not None:
            element.set("time", f"{seconds:.3f}")
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _lines(text: str) -> str:
    return "\n".join(_clean(line) for line in text.split("\n"))


def _clean(text: str) -> str:
    """Return text that XML can hold, unseen characters named; ElementTree escapes it."""
    return _FORBIDDEN.sub("", say.visible(text, _LONGEST))


# The table of formats: a verb with a result has an option for each, in this order.


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a result.

    Attributes:
        help: Of the option that asks for it.
        content: From the kind, the result and the conditions of ``--fail-on`` to the file.
        check: Raises where the format cannot be had, before anything is spent.
    """

    help: str
    content: Callable[[Kind[Any, Any], Any, Sequence[Any]], str | bytes | Iterable[str]]
    check: Callable[[], object] | None = None


FORMATS: Mapping[str, Format] = {
    "json": Format("Also write the result to this JSON file.", _json),
    "jsonl": Format("Also write this JSONL file, one line for each document.", _jsonl),
    "parquet": Format(
        "Also write this Parquet file; needs the extra [data].", _parquet, require_parquet
    ),
    "junit": Format("Also write this JUnit XML file, which CI systems show.", junit_xml),
}
"""By the name of the option; a format that is added here is an option of every such verb."""


def write(
    form: str, kind: Kind[Any, Any], result: Any, path: Path, conditions: Sequence[Any] = ()
) -> None:
    """Write a result in one of the ``FORMATS``.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: A package for the format is not installed.
    """
    replace_file(path, FORMATS[form].content(kind, result, conditions))
