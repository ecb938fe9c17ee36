"""Results of collusion and verify: files of before they were kinds open, and lose nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.report.document import table_rows
from ragwitness.report.result_registry import open_result, parse_result
from tests.support.reports import junit_of, terminal_of

_KINDS = Path(__file__).parents[2] / "golden" / "stored" / "kinds"
_NAMES = {
    "bound": "collusion",
    "calibrate": "collusion",
    "estimate": "coalition",
    "verify": "verification",
}


def _missing(stored: Any, now: Any, place: str = "") -> list[str]:
    """Places of a stored file whose value is another, or is gone; what said nothing may go."""
    if isinstance(stored, dict) and isinstance(now, dict):
        return [
            one
            for key, value in stored.items()
            for one in _missing(value, now.get(key), f"{place}.{key}")
        ]
    if isinstance(stored, list) and len(stored) == len(now):
        pairs = enumerate(zip(stored, now, strict=True))
        return [one for at, pair in pairs for one in _missing(*pair, f"{place}[{at}]")]
    return [] if stored == now else [place]


@pytest.mark.parametrize("name", _NAMES)
def test_a_file_of_before_opens_and_is_stored_with_all_that_it_held(name: str) -> None:
    kind, result = open_result(_KINDS / name)
    assert kind.name == _NAMES[name]
    stored = json.loads((_KINDS / name / "result.json").read_text())
    now = json.loads(json.dumps(kind.stored(result), allow_nan=False))
    # An earlier version compared with accounts; what it said of that is not kept.
    removed = {".comparison.trimmed", ".comparison.likeness_p", ".curve", ".room"}
    removed |= {".opaque", ".limits.opaque"}
    assert set(_missing(stored, now)) <= removed
    assert parse_result(now) == (kind, result)


def test_what_stands_in_the_tables_is_what_a_reader_is_told() -> None:
    shown = terminal_of(open_result(_KINDS / "bound")[1])
    assert "The label does not hold" in shown
    _, result = open_result(_KINDS / "estimate")
    assert "Not judged: an earlier version" in terminal_of(result)
    rows = table_rows(result.report())
    assert {"row": "cores", "column": "group", "value": "4"} in rows


def test_every_check_of_a_verdict_is_a_test_case() -> None:
    kind, verdict = open_result(_KINDS / "verify")
    xml = junit_of(verdict)
    assert all(f'name="{check.name}"' in xml for check in verdict.checks)
    assert "PASS" in terminal_of(verdict)
    with pytest.raises(InputError, match="none for this kind of result"):
        kind.conditions(["in"])


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("bound", {"exact": "much"}, "bounds.exact"),
        ("calibrate", {"plans": [{}]}, "plans.0"),
        ("estimate", {"estimates": {"pairs": {}}}, "found.estimates.0"),
        ("verify", {"outcome": "perhaps"}, "outcome"),
    ],
)
def test_a_broken_file_is_refused_by_the_field(
    name: str, change: dict[str, Any], place: str
) -> None:
    stored = json.loads((_KINDS / name / "result.json").read_text())
    with pytest.raises(InputError, match=f"malformed at {place}"):
        parse_result(stored | change)
