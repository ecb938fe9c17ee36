"""The page on runs in a browser: its commands serve, and its default address is the code's."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.text.sample import load_sample
from tests.cli.surface import verbs
from tests.support.pages import ROOT, blocks, served, shown

_PAGE = (ROOT / "docs" / "view.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_serve_the_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    docs = load_sample(60)[:4]
    for name, part in (("mine", docs[:2]), ("outside", docs[2:])):
        rows = [json.dumps({"id": d.id, "text": d.text}) for d in part]
        Path(f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    options = ["--documents", "mine.jsonl", "--known-out", "outside.jsonl", "--yes"]
    for folder in ("my-run", "other-runs/one", "ragwitness-runs/two"):
        words = ["audit", "lab:mine.jsonl", *options, "--method", "rag-mia", "--run", folder]
        monkeypatch.setattr(sys, "argv", ["ragwitness", *words])
        with pytest.raises(SystemExit) as stop:
            run()
        assert not stop.value.code
    lines = [line for line in blocks("docs/view.md", "")[0].splitlines() if "view" in line]
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        with served(words, tmp_path) as address:
            assert "rag-mia" in shown(address)


def test_the_port_is_the_one_that_the_page_names() -> None:
    (port,) = [one for one in dict(verbs())["view"].params if one.name == "port"]
    assert f"http://127.0.0.1:{port.default}/" in _PAGE
