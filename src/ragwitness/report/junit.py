"""The result as JUnit XML, which CI systems show: one test case per document.

A document fails where it is among those that met a condition of ``--fail-on``, is skipped where
the audit says neither in nor out, and passes otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from ragwitness.report import gate, view, wording
from ragwitness.report.gate import Condition
from ragwitness.report.writing import write_text
from ragwitness.runs.result import AuditResult
from ragwitness.types import Decision, Verdict

__all__ = ["junit_xml", "write_junit"]

# XML 1.0, production 2; no escape makes another character legal.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000


def write_junit(result: AuditResult, path: Path, conditions: Sequence[Condition] = ()) -> None:
    """Write :func:`junit_xml` to ``path``.

    Raises:
        InputError: The file cannot be written.
    """
    write_text(path, junit_xml(result, conditions))


def junit_xml(result: AuditResult, conditions: Sequence[Condition] = ()) -> str:
    """Return the result as JUnit XML; without conditions no document fails.

    Args:
        result: The audit.
        conditions: Those of ``--fail-on``.
    """
    failing = gate.met(result, conditions)
    root = ET.Element("testsuites", name="ragwitness")
    suite = ET.SubElement(root, "testsuite", name=_clean(result.target))
    suite.set("timestamp", _clean(result.started))
    _properties(suite, result, conditions)
    for verdict in result.verdicts:
        _case(suite, verdict, result.method, failing)
    if result.warnings:
        ET.SubElement(suite, "system-out").text = "\n".join(map(_clean, result.warnings))
    counts = {
        "tests": len(result.verdicts),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for element in (root, suite):
        for name, count in counts.items():
            element.set(name, str(count))
        if math.isfinite(result.seconds):
            element.set("time", f"{result.seconds:.3f}")
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _properties(suite: ET.Element, result: AuditResult, conditions: Sequence[Condition]) -> None:
    properties = ET.SubElement(suite, "properties")
    named = {
        "alpha": f"{result.alpha:g}",
        "queries": str(result.queries),
        "calibration": result.calibration.note,
        "fail-on": ", ".join(map(str, conditions)) or "nothing",
        "ragwitness": result.ragwitness,
    }
    for name, value in {**named, **result.settings}.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))


def _case(suite: ET.Element, verdict: Verdict, method: str, failing: Sequence[Condition]) -> None:
    case = ET.SubElement(suite, "testcase", classname=_clean(f"ragwitness.{method}"))
    case.set("name", _clean(verdict.document))
    row = view.row(verdict)
    noun = "query" if verdict.queries == 1 else "queries"
    figures = f"p {row.p}, q {row.q}, score {row.score}, {row.queries} {noun}"
    met = ", ".join(str(condition) for condition in failing if condition.concerns(verdict))
    if met:
        message = _clean(f"{row.label}: {figures}; --fail-on {met}")
        failure = ET.SubElement(case, "failure", type=verdict.decision.value, message=message)
        failure.text = _evidence(row)
    elif verdict.decision is Decision.INCONCLUSIVE:
        message = _clean(f"{row.reason or row.label} ({figures})")
        ET.SubElement(case, "skipped", message=message)
    else:
        said = [f"{row.label}: {figures}", _evidence(row)]
        ET.SubElement(case, "system-out").text = "\n".join(filter(None, said))


def _evidence(row: view.Row) -> str:
    """Return why, and the deciding words with their probabilities: system / without database."""
    words = (f"{w.before} {w.word}: {w.target} / {w.baseline}" for w in row.words)
    return "\n".join(_clean(line) for line in (row.reason, *words) if line)


def _clean(text: str) -> str:
    """Return text that XML can hold, unseen characters named; ElementTree escapes it."""
    return _FORBIDDEN.sub("", wording.visible(text, _LONGEST))
