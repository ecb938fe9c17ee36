"""A result of any kind as files for machines: JSON, JSON lines, Parquet, JUnit XML, SARIF."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from ragwitness.core.errors import ExitCode, import_extra
from ragwitness.core.files import replace_file
from ragwitness.core.registry import Listing, Registry
from ragwitness.report import formatting as fmt
from ragwitness.report.result_type import ResultType, TestCase, plain

_STRICT: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
SUMMARY = b"ragwitness"
"""Key of the result's head among the metadata of a Parquet file."""

# XML 1.0, production 2; no escape makes another character legal.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000
_GROUP = 10_000  # rows of a Parquet file written together


def _json(kind: ResultType[Any, Any], result: Any, conditions: Sequence[Any]) -> Iterator[str]:  # noqa: ARG001
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


def _jsonl(kind: ResultType[Any, Any], result: Any, conditions: Sequence[Any]) -> Iterator[str]:  # noqa: ARG001
    """Yield one line per row of a result."""
    # One that holds NaN is written as null, as in the JSON.
    return (json.dumps(plain(row), **_STRICT) + "\n" for row in kind.rows(result))


def require_parquet() -> ModuleType:
    """Return pyarrow.

    Raises:
        MissingExtraError: It is not installed.
    """
    import_extra("pyarrow.parquet", "Writing Parquet", "data")
    return import_extra("pyarrow", "Writing Parquet", "data")  # type: ignore[no-any-return]


def _parquet(kind: ResultType[Any, Any], result: Any, conditions: Sequence[Any]) -> bytes:  # noqa: ARG001
    """Return one row per row of a result, with the names and the nesting of the JSON.

    The types do not depend on the values: a column without any is still a column of numbers.
    A missing value is null, never NaN.

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
        return arrow.struct([(name, _arrow_type(arrow, inner)) for name, inner in type_.items()])
    plain_types = {str: arrow.string, int: arrow.int64, float: arrow.float64, bool: arrow.bool_}
    return plain_types[type_]()


def _sound(value: Any) -> Any:
    """Replace half surrogate pairs, which no UTF-8 can hold, all the way down."""
    if isinstance(value, dict):
        return {key: _sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def junit_xml(kind: ResultType[Any, Any], result: Any, conditions: Sequence[Any] = ()) -> str:
    """Return a result as JUnit XML; without conditions nothing fails.

    Args:
        kind: Of the result.
        result: The result.
        conditions: Those of ``--fail-on``.
    """
    # Pass 1: what the report says and how each case ended.
    report = kind.report(result)
    cases = [
        *kind.tested(result, conditions),
        *(TestCase(test.name, "skipped", f"left out: {test.why}") for test in report.left_out),
    ]
    root = ET.Element("testsuites", name="ragwitness")
    suite = ET.SubElement(root, "testsuite", name=_clean(report.target or report.kind))
    if started := getattr(result, "started", ""):
        suite.set("timestamp", _clean(started))
    # Pass 2: how it was asked, so that a CI server's archive can be read without the run folder.
    properties = ET.SubElement(suite, "properties")
    named = {
        **(kind.properties(result) if kind.properties else {}),
        "fail-on": ", ".join(map(str, conditions)) or "nothing",
        **dict(report.settings),
    }
    for name, value in named.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    # Pass 3: the cases; what passed says its figures as well, because a pass is also a finding.
    for test in cases:
        case = ET.SubElement(suite, "testcase", classname=_clean(f"ragwitness.{report.method}"))
        case.set("name", _clean(test.name))
        if test.state == "failed":
            failure = ET.SubElement(case, "failure", type=test.type, message=_clean(test.message))
            failure.text = _lines(test.text)
        elif test.state == "skipped":
            ET.SubElement(case, "skipped", message=_clean(test.message))
        else:
            output = "\n".join(filter(None, (_clean(test.message), _lines(test.text))))
            ET.SubElement(case, "system-out").text = output
    if report.warnings:
        ET.SubElement(suite, "system-out").text = "\n".join(map(_clean, report.warnings))
    # Pass 4: the counts, on the suite and on the root: readers differ in where they look.
    counts = {
        "tests": len(cases),
        "failures": sum(test.state == "failed" for test in cases),
        "errors": 0,
        "skipped": sum(test.state == "skipped" for test in cases),
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
    return _FORBIDDEN.sub("", fmt.visible(text, _LONGEST))


# SARIF 2.1.0 (OASIS, errata 01), which code-scanning pages read.
#
# Only what failed is a result there: GitHub makes an alert of every result, passed ones included.
# An undecided case is a notification of the run.

_SARIF = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_BASE = "DOCUMENTS"
_LONGEST_NAME = 200


def sarif_log(kind: ResultType[Any, Any], result: Any, conditions: Sequence[Any] = ()) -> str:
    """Return a result as a SARIF log with case run; without conditions nothing fails.

    Args:
        kind: Of the result.
        result: The result.
        conditions: Those of ``--fail-on``.
    """
    # Pass 1: the same cases as in JUnit. Each kind of failure has a rule.
    report, cases = kind.report(result), kind.tested(result, conditions)
    failed = [case for case in cases if case.state == "failed"]
    rules = sorted({case.type for case in failed})
    # Pass 2: what the run itself has to say, which no alert shows.
    undecided = sum(case.state == "skipped" for case in cases)
    notes = [(_clean(warning), "warning") for warning in report.warnings]
    if undecided:
        notes.append((f"{undecided:,} of {len(cases):,} cases are inconclusive.", "note"))
    left_out = (f"Left out: {case.name}: {case.why}" for case in report.left_out)
    notes += [(_clean(line), "warning") for line in left_out]
    ruling = kind.rule(result, conditions)
    invocation: dict[str, Any] = {
        # It ran to its end, whatever it found; what it found is the exit code.
        "executionSuccessful": True,
        "exitCode": int(ruling.code),
        "exitCodeDescription": _clean(ruling.why or ExitCode(ruling.code).name.lower()),
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": _unlinked(text)}} for text, level in notes
        ],
    }
    if (started := _utc(getattr(result, "started", ""))) is not None:
        invocation["startTimeUtc"] = started
    # Pass 3: the log.
    settings = {_clean(name): _clean(value) for name, value in report.settings}
    about = f"Failures of a {kind.words}: ragwitness {kind.verb} --fail-on"
    run = {
        "tool": {
            "driver": {
                "name": "Ragwitness",
                "version": _clean(report.version) or "unknown",
                "rules": [
                    {
                        "id": f"{kind.name}/{name}",
                        "shortDescription": {"text": f"{kind.words}: {name}"},
                        "fullDescription": {"text": f"{about} {name}".removesuffix(" fail-on")},
                        "defaultConfiguration": {"level": "error"},
                        "properties": {"tags": ["security", "privacy"], "security-severity": "7.0"},
                    }
                    for name in rules
                ],
            }
        },
        # Logs of different verbs stand side by side on a code-scanning page.
        "automationDetails": {"id": f"ragwitness/{kind.name}/"},
        "originalUriBaseIds": {
            _BASE: {"description": {"text": "Not a folder: the ids of documents."}}
        },
        "invocations": [invocation],
        "results": [
            {
                "ruleId": f"{kind.name}/{case.type}",
                "ruleIndex": rules.index(case.type),
                "level": "error",
                "message": {"text": _unlinked(f"{_clean(case.name)}: {_clean(case.message)}")},
                "locations": [_place(report.target if case.type == "fail-on" else case.name)],
                "partialFingerprints": {"primaryLocationLineHash": _fingerprint(kind, case)},
            }
            for case in failed
        ],
        "properties": {
            "target": _clean(report.target),
            "method": _clean(report.method),
            **settings,
        },
    }
    log = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, **_STRICT) + "\n"


def _place(name: str) -> dict[str, Any]:
    """Say where something failed; a document is no file, and its id stands for it."""
    name_shown = _clean(name)[:_LONGEST_NAME] or "unnamed"
    where = {"uri": quote(name_shown, safe="", errors="replace"), "uriBaseId": _BASE}
    return {
        "physicalLocation": {"artifactLocation": where, "region": {"startLine": 1}},
        "logicalLocations": [{"name": name_shown, "kind": "document"}],
    }


def _fingerprint(kind: ResultType[Any, Any], one: TestCase) -> str:
    """Name a finding, so that the next run's is known as the same."""
    text = json.dumps([kind.name, one.type, one.name])
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]}:1"


def _unlinked(text: str) -> str:
    """Escape brackets: `[text](address)` in a message is a link, and untrusted text has none."""
    return text.replace("[", "\\[").replace("]", "\\]")


def _utc(stored: str) -> str | None:
    """Return a stored time of day as SARIF has it; None where it is none."""
    try:
        return f"{datetime.fromisoformat(stored).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return None


# The table of formats: a verb with a result has an option for each, in this order.


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a result.

    Attributes:
        content: From the kind, the result and the conditions of ``--fail-on`` to the file.
        check: Raises where the format cannot be had, before anything is spent.
    """

    content: Callable[[ResultType[Any, Any], Any, Sequence[Any]], str | bytes | Iterable[str]]
    check: Callable[[], object] | None = None


FORMATS = Registry(
    "format",
    {
        "json": Listing(Format(_json), "Also write the result to this JSON file."),
        "jsonl": Listing(Format(_jsonl), "Also write this JSONL file, one line for each document."),
        "parquet": Listing(
            Format(_parquet, require_parquet),
            "Also write this Parquet file; needs the extra [data].",
        ),
        "junit": Listing(
            Format(junit_xml), "Also write this JUnit XML file, which CI systems show."
        ),
        "sarif": Listing(
            Format(sarif_log), "Also write this SARIF file, which code-scanning pages show."
        ),
    },
    group="ragwitness.formats",
    fits=lambda format_: callable(getattr(format_, "content", None)),
    needs="It must be a ragwitness.report.files.Format.",
)
"""By the name of the option; every verb with a result has an option for each."""


def write(
    form: str, kind: ResultType[Any, Any], result: Any, path: Path, conditions: Sequence[Any] = ()
) -> None:
    """Write a result in one of the ``FORMATS``.

    Raises:
        InputError: The file cannot be written, or a plug-in fails.
        MissingExtraError: A package for the format is not installed.
    """
    chosen = FORMATS.load(form)
    replace_file(path, FORMATS.guard(form, lambda: chosen.content(kind, result, conditions)))
