"""The page on canaries: its commands run as they stand there, and it names what there is."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.canary.families import Family
from ragwitness.canary.probe import WAYS
from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "canary.md").read_text(encoding="utf-8")


def _answer_everything() -> None:
    """What a service would answer that says the canary whenever it is asked to."""
    rows = [json.loads(line) for line in Path("audit/send/traces.jsonl").read_text().splitlines()]
    said = [{"id": row["id"], "answer": f"FINAL: {row['canary']}, yes"} for row in rows]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))


@pytest.mark.slow
def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    documents = load_sample()[:40]
    rows = [{"id": d.id, "document": d.text, "question": "What is said?"} for d in documents]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("corpus.jsonl").write_text(json.dumps({"text": documents[0].text}) + "\n")
    block = re.search(r"^```\n(ragwitness.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert block
    for line in block[1].splitlines():
        if "--answers" in line:
            _answer_everything()
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert not stop.value.code, line
    said = capfd.readouterr().out
    assert f"exact: {3 * 42} queries" in said  # of four examples one is spare
    assert "the canary is there" in said
    assert "draw: is the one committed to" in said
    votes = Path("audit/send/feedback.jsonl").read_text().splitlines()
    assert {json.loads(line)["vote"] for line in votes} == {"up", "down"}


@pytest.mark.slow
def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.canary_audit import model_of
    from tests.support.canary_model import serving

    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": d.id, "document": d.text, "question": "What is said?"} for d in load_sample()[:30]
    ]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = re.search(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert code
    before, after = code[1].split("probe = ")
    exec(compile(before, "docs/canary.md", "exec"), {})  # noqa: S102, our own page
    with serving(model_of(Path("canaries"), violating=True)) as url:
        there = "import ragwitness as rw\nprobe = " + after.replace("http://127.0.0.1:8000/v1", url)
        exec(compile(there, "docs/canary.md", "exec"), {})  # noqa: S102, our own page


def test_every_way_and_family_is_on_the_page() -> None:
    for name in (*WAYS, *Family):
        assert re.search(rf"[`( ]{name}[`) ]", _PAGE), name
    assert (_DOCS / "design" / "canary.md").exists()
