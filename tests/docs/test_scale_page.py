"""The page on more than one process: its bulk questions are written and answered from a file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample
from tests.support.pages import blocks


def typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        run()
    return int(stop.value.code or 0)


@pytest.mark.slow
def test_questions_are_written_in_bulk_and_read_back(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = load_sample(60)
    for name, part in (("docs", texts[:6]), ("known", texts[6:30]), ("corpus", texts[:3])):
        rows = (json.dumps({"id": one.id, "text": one.text}) + "\n" for one in part)
        Path(f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    (block,) = [one for one in blocks("docs/scale.md", "") if "--questions-to" in one]
    write, read = map(shlex.split, block.splitlines())
    assert typed([*write, "--yes"], monkeypatch) == 0
    asked = [json.loads(line) for line in Path("questions.jsonl").read_text("utf-8").splitlines()]
    assert len({row["custom_id"] for row in asked}) == len(asked) >= 30
    # Whoever answers leaves every mask empty: nobody is called in.
    reply = {"choices": [{"message": {"content": "I do not know."}, "finish_reason": "stop"}]}
    done = [
        {"custom_id": row["custom_id"], "response": {"status_code": 200, "body": reply}}
        for row in asked
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in done), "utf-8")
    assert typed([*read, "--json", "result.json", "--yes"], monkeypatch) == 0
    found = json.loads(Path("result.json").read_text("utf-8"))["documents"]
    assert {row["verdict"] for row in found} == {"inconclusive"}
