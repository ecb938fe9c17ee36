"""The page on several machines: its commands share a run and conclude it, as they stand there."""

from __future__ import annotations

import json
import re
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
def test_a_prepared_run_is_shared_and_merged(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": d.id, "text": d.text} for d in load_sample(60)[:4]]
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (block,) = [one for one in blocks("docs/scale.md", "") if "--prepare" in one]
    prepare, work, merge = (shlex.split(line, comments=True) for line in block.splitlines())
    target = ["lab:docs.jsonl" if word == "TARGET" else word for word in prepare]
    assert typed([*target, "--known-out", "docs.jsonl", "--yes"], monkeypatch) == 2  # both at once
    outside = [{"id": d.id, "text": d.text} for d in load_sample(60)[4:8]]
    Path("outside.jsonl").write_text("\n".join(map(json.dumps, outside)), encoding="utf-8")
    more = ["--known-out", "outside.jsonl", "--method", "rag-mia", "--yes"]
    assert typed([*target, *more], monkeypatch) == 0
    assert not Path("RUN/result.json").exists()
    assert typed(merge, monkeypatch) != 0  # names the shards that are not finished
    assert work[-1] == "1/4"
    for part in ("1/4", "2/4", "3/4", "4/4"):  # "... and 2/4, 3/4, 4/4 elsewhere"
        assert typed([*work[:-1], part], monkeypatch) == 0
    assert typed(merge, monkeypatch) == 0
    assert len(json.loads(Path("RUN/result.json").read_text())["documents"]) == 4


def test_the_scripts_call_the_same_verbs() -> None:
    (array,) = blocks("docs/scale.md", "bash")
    (job,) = blocks("docs/scale.md", "yaml")
    for script, parts in ((array, "$SLURM_ARRAY_TASK_ID/16"), (job, "16")):
        assert re.search(r"ragwitness run work RUN --shard", script)
        assert parts in script
