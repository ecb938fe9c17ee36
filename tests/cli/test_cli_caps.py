"""Caps on the command line: hard, remembered, shown, and raised to go on."""

import json
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample
from tests.support.rough import rough


@pytest.fixture
def call(monkeypatch, capfd, tmp_path: Path):
    rows = [{"id": d.id, "text": d.text} for d in load_sample()[:30]]
    files = {}
    for name, part in (("docs", rows[:6]), ("known", rows[6:30])):
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text("".join(json.dumps(row) + "\n" for row in part))
    monkeypatch.chdir(tmp_path)

    def call(verb: str, url: str, *more: object) -> tuple[int, str, dict]:
        arguments = [verb, url, "--documents", files["docs"], "--known-out", files["known"]]
        arguments += ["--yes"]
        arguments += ["--method", "rag-mia", "--json", "out.json", *more]
        monkeypatch.setattr(sys, "argv", ["ragwitness", *map(str, arguments)])
        code = 0
        try:
            run()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        written = Path("out.json")
        return code, out + err, json.loads(written.read_text()) if written.exists() else {}

    return call


def _verdicts(result: dict) -> list[tuple]:
    names = ("id", "verdict", "score", "p_value", "q_value", "queries")
    return [tuple(row[name] for name in names) for row in result["documents"]]


PRICES = ("--price-in", "1", "--price-out", "5")


@pytest.mark.slow
def test_a_capped_audit_says_so_and_goes_on_under_a_higher_cap(call) -> None:
    with rough() as server:
        url = f"{server.url}#m"
        code, text, capped = call("audit", "--yes", url, "--max-queries", 28, *PRICES)
        assert code == 0, text
        assert len(server.prompts) <= 28
        spent = capped["summary"]["spent"]
        assert spent["queries"] == len(server.prompts)
        assert spent["stopped_by"] == "query"
        assert 0 < spent["unasked"] < 30
        assert spent["cost"] > 0
        reasons = [row["reason"] for row in capped["documents"] if row["score"] is None]
        # Documents in question and known ones are asked about in one random order.
        assert set(reasons) <= {"query cap reached"}
        assert len(reasons) <= spent["unasked"]
        assert "higher --max-queries" in text.replace("\n", " ").replace("│ ", "")
        assert "of 28 queries" in text
        (folder,) = Path("ragwitness-runs").iterdir()
        assert "28 queries" in (folder / "report.html").read_text()

        code, text, whole = call("audit", "--yes", url, "--max-queries", 100, "--concurrency", 2)
        assert list(Path("ragwitness-runs").iterdir()) == [folder]
        assert whole["summary"]["spent"]["stopped_by"] is None
        assert all(row["score"] is not None for row in whole["documents"])
        assert len(server.prompts) == whole["summary"]["spent"]["queries"]
        assert len(server.prompts) == len(set(server.prompts)) == 31
        before = len(server.prompts)
        code, text, again = call("audit", "--yes", url, "--max-queries", 1, "--run", folder)
        assert code == 0, text
        assert len(server.prompts) == before  # kept answers cost nothing
        assert _verdicts(again) == _verdicts(whole)


def test_a_cap_too_small_for_the_first_question_is_one_line(call) -> None:
    with rough() as server:
        code, text, _ = call("audit", "--yes", f"{server.url}#m", "--max-tokens", 10)
    assert code == 1
    assert server.prompts == []
    assert "token cap reached" in text
    assert "--max-tokens" in text


def test_an_owner_that_reaches_a_cap_can_go_on(call) -> None:
    with rough() as server:
        url = f"{server.url}#m"
        code, text, _ = call("audit", "--collection", url, "--max-queries", 1)
        assert code == 1
        assert "query cap reached" in text
        code, text, found = call("audit", "--collection", url, "--max-queries", 29)
        assert code == 0, text
        assert found["spent"]["stopped_by"] == "query"
        assert len(server.prompts) <= 29
        assert "higher --max-queries resumes" in text
        code, text, found = call("audit", "--collection", url)
        assert found["spent"]["stopped_by"] is None
        assert found["spent"]["queries"] == len(server.prompts)
        assert len(list(Path("ragwitness-runs").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("audit",), ("audit", "--collection")])
def test_a_dry_run_sends_nothing_and_shows_what_is_kept(call, verb: tuple[str, ...]) -> None:
    with rough() as server:
        url = f"{server.url}#m"
        code, text, data = call(*verb, url, "--dry-run", *PRICES)
        assert code == 0, text
        assert server.prompts == []
        assert not data
        assert not Path("ragwitness-runs").exists()
        assert "Nothing was sent." in text
        assert "rag-mia" in text
        assert "cost: at most" in text
        call(*verb, url, "--max-queries", 25)
        before = len(server.prompts)
        code, text, _ = call(*verb, url, "--dry-run")
        assert len(server.prompts) == before
        assert "answers kept" in text
        assert f"spent so far: {before} queries" in text.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-cost", "1"), "--price-in and --price-out"),
        (("--max-queries", "0"), "--max-queries must be above 0"),
        (("--price-in", "1"), "Give --price-in and --price-out"),
        (("--concurrency", "0"), "--concurrency"),
    ],
)
def test_unusable_caps_are_refused_before_anything_is_sent(call, options, said) -> None:
    with rough() as server:
        code, text, _ = call("audit", "--yes", f"{server.url}#m", *options)
    assert code == 2
    assert said in text
    assert server.prompts == []
