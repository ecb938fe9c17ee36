"""Every kind of result: stored, opened, shown, written and judged by one path; broken ones refused.

A kind that is added to the registry is covered here once a run of it stands in ``tests/golden``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.run_files import RESULT
from ragwitness.report.files import FORMATS
from ragwitness.report.result_registry import (
    RESULT_TYPES,
    open_result,
    parse_result,
    result_type_named,
)
from ragwitness.web.pages import run_page
from ragwitness.web.runs import find_runs
from tests.support.markup import check
from tests.support.reports import junit_of, page_of, terminal_of, write

_STORED = Path(__file__).parents[2] / "golden" / "stored"


def _examples() -> dict[str, Path]:
    """One stored run of every kind."""
    found: dict[str, Path] = {}
    for path in sorted(_STORED.rglob(RESULT)):
        kind, _ = open_result(path.parent)
        found.setdefault(kind.name, path.parent)
    return found


EXAMPLES = _examples()


def test_every_kind_has_an_example() -> None:
    assert set(EXAMPLES) == set(RESULT_TYPES)


@pytest.mark.parametrize("name", RESULT_TYPES)
def test_a_result_comes_back_as_it_was_stored(name: str) -> None:
    kind, result = open_result(EXAMPLES[name])
    text = json.dumps(kind.stored(result), allow_nan=False)
    again, back = parse_result(json.loads(text))
    assert again is kind
    assert json.dumps(kind.stored(back)) == text
    assert json.loads(text)["kind"] == name


@pytest.mark.parametrize("name", RESULT_TYPES)
def test_a_result_is_shown_and_written_in_every_form(name: str, tmp_path: Path) -> None:
    kind, result = open_result(EXAMPLES[name])
    check(page_of(result))
    shown = terminal_of(result)
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert "<testsuite" in junit_of(result)
    for form in FORMATS:
        if form == "parquet":
            pytest.importorskip("pyarrow")
        write(form, result, tmp_path / form)
        assert (tmp_path / form).stat().st_size or not kind.rows(result)
    rows = [json.loads(line) for line in (tmp_path / "jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == len(kind.rows(result))
    # What a document has no windows for is left out of its row.
    optional = {"windows", "share", "e_value", "e_level", "by"}
    for row in rows:
        assert list(row) == [name for name in kind.columns if name in row]
        assert kind.columns.keys() - row.keys() <= optional
    (run,) = find_runs([EXAMPLES[name]])
    check(run_page(run))
    assert kind.rule(result, ()).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULT_TYPES)
def test_report_shows_every_kind(name: str, tmp_path: Path) -> None:
    written = tmp_path / "page.html"
    arguments = ["report", EXAMPLES[name], "--html", written, "--jsonl", tmp_path / "rows.jsonl"]
    code = "from ragwitness.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check(written.read_text(encoding="utf-8"))


def _change(data: dict[str, Any], name: str) -> bytes:
    """Broken forms of a stored result."""
    whole = json.dumps(data).encode()
    cut = {"cut early": whole[:20], "cut half": whole[: len(whole) // 2], "cut late": whole[:-1]}
    wrong = {key: 7 if isinstance(value, list | dict) else [] for key, value in data.items()}
    forms = {
        **cut,
        "empty": b"",
        "a list": b"[]",
        "no JSON": b"no JSON",
        "of a version to come": json.dumps({**data, "version": 99}).encode(),
        "of an unknown kind": json.dumps({**data, "kind": "poem"}).encode(),
        "of wrong types": json.dumps({**wrong, "kind": data["kind"], "version": 1}).encode(),
        "of another kind": json.dumps({**data, "kind": _another(data["kind"])}).encode(),
        "of no version": json.dumps({**data, "version": "one"}).encode(),
    }
    return forms[name]


def _another(kind: str) -> str:
    return "leak" if kind != "leak" else "audit"


@pytest.mark.parametrize(
    "how",
    [
        "cut early",
        "cut half",
        "cut late",
        "empty",
        "a list",
        "no JSON",
        "of a version to come",
        "of an unknown kind",
        "of wrong types",
        "of another kind",
        "of no version",
    ],
)
@pytest.mark.parametrize("name", RESULT_TYPES)
def test_a_broken_result_is_refused_in_one_line_and_stays(
    name: str, how: str, tmp_path: Path
) -> None:
    kind, result = open_result(EXAMPLES[name])
    broken = _change(kind.stored(result), how)
    (tmp_path / RESULT).write_bytes(broken)
    with pytest.raises(InputError) as caught:
        open_result(tmp_path)
    assert "\n" not in caught.value.message
    assert RESULT in caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == [tmp_path / RESULT]
    assert (tmp_path / RESULT).read_bytes() == broken
    if how == "of a version to come":
        assert "newer" in caught.value.message


def test_conditions_that_are_not_known_are_named() -> None:
    for name in RESULT_TYPES:
        with pytest.raises(InputError):
            result_type_named(name).conditions(["no such condition"])
