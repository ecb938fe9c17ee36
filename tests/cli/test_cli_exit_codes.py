"""How commands end: --fail-on, the files beside the report, and what is refused beforehand."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import Decision, Verdict
from ragwitness.report.result_registry import to_json
from tests.support.reports import write
from tests.unit.report.fake_results import fake_result

_GOOD = '{"id": "a", "text": "one two three four five six seven eight nine ten eleven twelve"}\n'
_NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write("json", fake_result(200), folder / "result.json")
    return folder


@pytest.fixture
def undecided(tmp_path: Path) -> Path:
    verdicts = tuple(Verdict(f"d{i}", Decision.INCONCLUSIVE, 0.5, 0.1, 3) for i in range(5))
    folder = tmp_path / "undecided"
    folder.mkdir()
    result = replace(fake_result(0), verdicts=verdicts)
    write("json", result, folder / "result.json")
    return folder


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ([], ExitCode.PASS),
        (["in"], ExitCode.FAILED),
        (["in:200"], ExitCode.PASS),
        (["in:90%", "unscorable"], ExitCode.FAILED),
    ],
)
def test_a_finished_run_exits_as_its_conditions_say(command, finished, conditions, code) -> None:
    options = [part for condition in conditions for part in ("--fail-on", condition)]
    found, text = command("report", finished, *options)
    assert found == code
    assert ("--fail-on" in text) == bool(conditions)


def test_a_run_that_decided_nothing_is_4_only_where_it_is_asked(command, undecided) -> None:
    assert command("report", undecided)[0] == ExitCode.PASS
    code, text = command("report", undecided, "--fail-on", "in")
    assert code == ExitCode.INCONCLUSIVE
    assert "no document is said to be in or out" in text
    assert command("report", undecided, "--fail-on", "inconclusive")[0] == ExitCode.FAILED


def test_report_writes_every_format_of_a_finished_run(command, finished, tmp_path) -> None:
    out = tmp_path / "new" / "out"
    code, _ = command(
        "report", finished, "--fail-on", "in", "--junit", f"{out}.xml", "--jsonl", f"{out}.jsonl",
        "--json", f"{out}.json",
    )  # fmt: skip
    assert code == ExitCode.FAILED
    data = to_json(fake_result(200))
    assert json.loads(Path(f"{out}.json").read_text()) == data
    lines = Path(f"{out}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == data["documents"]
    root = ET.parse(f"{out}.xml").getroot()  # noqa: S314
    assert root.get("failures") == str(data["summary"]["counts"]["in"])


def test_report_writes_parquet(command, finished, tmp_path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    assert command("report", finished, "--parquet", tmp_path / "out.parquet")[0] == 0
    rows = table.read_table(tmp_path / "out.parquet").to_pylist()
    empty = dict.fromkeys(rows[0])
    assert rows == [empty | row for row in to_json(fake_result(200))["documents"]]


def test_parquet_without_its_extra_is_named_before_anything_is_sent(
    command, tmp_path, monkeypatch
) -> None:
    (tmp_path / "good.jsonl").write_text(_GOOD)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, text = command(
        "audit", "--yes", _NOBODY, "--documents", "good.jsonl", "--parquet", "p.parquet"
    )
    assert code == ExitCode.USAGE
    assert "pip install 'ragwitness[data]'" in text


@pytest.mark.parametrize("verb", [("audit",), ("audit", "--collection")])
def test_unknown_conditions_are_named_before_anything_is_sent(command, tmp_path, verb) -> None:
    (tmp_path / "good.jsonl").write_text(_GOOD)
    given = ["--documents", "good.jsonl", "--known-out", "good.jsonl"]
    code, text = command(*verb, _NOBODY, *given, "--fail-on", "leaked")
    assert code == ExitCode.USAGE
    assert "'leaked'" in text
    assert "inconclusive" in text


@pytest.mark.parametrize(
    "paths",
    [
        ["--json", "same", "--jsonl", "./same"],
        ["--jsonl", "good.jsonl"],
        ["--jsonl", "run/answers.jsonl"],
        ["--junit", "run/report.html"],
        ["--junit", "run"],
        ["--parquet", "good.jsonl/x"],
    ],
    ids=["twice", "the documents", "the journal", "the report", "a folder", "no folder"],
)
def test_files_that_would_be_lost_are_named_before_anything_is_sent(
    command, tmp_path, paths
) -> None:
    (tmp_path / "good.jsonl").write_text(_GOOD)
    (tmp_path / "run").mkdir()
    code, text = command(
        "audit", "--yes", _NOBODY, "--documents", "good.jsonl", "--run", "run", *paths
    )
    assert code == ExitCode.USAGE
    assert "would replace" in text or "Cannot write" in text
    assert (tmp_path / "good.jsonl").read_text() == _GOOD


def test_report_does_not_replace_the_run(command, finished) -> None:
    before = (finished / "result.json").read_bytes()
    code, text = command("report", finished, "--junit", finished / "result.json")
    assert code == ExitCode.USAGE
    assert "would replace" in text
    assert (finished / "result.json").read_bytes() == before


def test_an_interrupted_audit_exits_with_130_and_says_how_to_resume(
    command, tmp_path, monkeypatch
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "good.jsonl").write_text(_GOOD)
    monkeypatch.setattr("ragwitness.targets.resolve.open_target", interrupted)
    code, text = command("audit", "--yes", _NOBODY, "--documents", "good.jsonl", "--run", "run")
    assert code == ExitCode.INTERRUPTED
    assert "resume" in text


def test_help_lists_every_exit_code(command) -> None:
    code, text = command("--help")
    assert code == 0
    listed = re.sub(r"\s+", " ", text.partition("Exit codes:")[2])
    assert re.findall(r"(?:^|; )\s*(\d+) ", listed) == [str(int(code)) for code in ExitCode]
