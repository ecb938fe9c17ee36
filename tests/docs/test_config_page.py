"""The page on configuration files: its files are read and its commands parsed as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragwitness.membership.method_registry import configure
from ragwitness.runner.task_runtime import key_values, per_method
from ragwitness.text.sample import load_sample
from tests.cli.surface import verbs
from tests.support.rough import rough

_PAGE = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
_VERBS = dict(verbs())


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    return [text for named, text in found if named == kind]


def parsed(line: str) -> dict[str, Any]:
    words = line.split()
    assert words[0] == "ragwitness"
    return dict(_VERBS[words[1]].make_context(words[1], words[2:]).params)


def test_the_commands_mean_what_the_page_says(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(blocks("toml")[0])
    dry, plain, more = (parsed(line) for line in blocks("")[0].splitlines())
    assert dry["dry_run"]
    assert plain["max_queries"] == 5000
    assert plain["fail_on"] == ["in:3", "unscorable:5%"]
    assert configure(plain["method"], key_values(plain["options"])).masks == 12
    assert more["max_queries"] == 10000
    assert configure(more["method"], key_values(more["options"])).masks == 15


@pytest.mark.parametrize("verb", ["evaluate", "plan"])
def test_each_audit_has_its_table(verb, tmp_path) -> None:
    file = tmp_path / "run.toml"
    text = blocks("toml")[1]
    if verb == "plan":
        text = text.replace("corpus =", "documents =").replace("audits =", "method =")
        text = re.sub(r"control.*\n", "", text)
    file.write_text(text)
    found = parsed(f"ragwitness {verb} --config {file}")
    chosen = per_method(found["options"])
    assert configure("s-rag", chosen["s-rag"]).turns == 5
    assert configure("mba", chosen["mba"]).masks == 12
    if verb == "evaluate":
        assert found["control"] is False
        assert found["corpus"] == str(tmp_path / "corpus.jsonl")


@pytest.mark.slow
def test_the_python_example_runs(tmp_path) -> None:
    rows = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[:4]]
    (tmp_path / "mine.jsonl").write_text("\n".join(rows[:2]))
    (tmp_path / "outside.jsonl").write_text("\n".join(rows[2:]))
    with rough() as server:
        code = blocks("python")[0].replace("http://127.0.0.1:8000/v1", server.url)
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "MY_KEY": "a-key-of-mine"},
            check=True,
        )
        assert len(server.prompts) == 4
    assert "<html" in (tmp_path / "runs" / "first" / "report.html").read_text()
