"""The page on synthetic records: its commands run and its domain file is read."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from ragwitness.cli.main import app
from ragwitness.synthesis.agents import load_domain
from ragwitness.synthesis.generator_registry import METHODS
from ragwitness.text.sample import load_sample

_PAGE = (Path(__file__).parents[2] / "docs" / "synthesize.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    return next(text for named, text in found if named == kind)


@pytest.mark.slow
def test_the_commands_run_in_order(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": d.id, "text": f"{d.text} Mail a@b.org."} for d in load_sample()[:12]]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    public = "".join(json.dumps({"text": d.text}) + "\n" for d in load_sample()[12:])
    Path("public.jsonl").write_text(public)
    Path("secrets.jsonl").write_text('{"text": "a@b.org"}\n')
    verb = typer.main.get_command(app)
    for line in block("").splitlines():
        # The choice of who finds contact details is not what is tried here, and slow to load.
        words = [*shlex.split(line)[1:], "--pii", "contacts"]
        assert verb(words, standalone_mode=False) in (None, 0)
    assert "Nothing was sent." in capfd.readouterr().out
    safe = [json.loads(line) for line in Path("safe.jsonl").read_text().splitlines()]
    assert set(safe[0]) == {"id", "text", "fate", "method"}
    assert all(row["text"].endswith("Mail <EMAIL>.") for row in safe)
    assert Path("safe.jsonl").exists()
    assert Path("private.jsonl").exists()
    exec(compile(block("python"), "docs/synthesize.md", "exec"), {})  # noqa: S102, our own page


def test_the_domain_file_is_read(tmp_path) -> None:
    path = tmp_path / "law.toml"
    path.write_text(block("toml"))
    assert load_domain(str(path)).labels == ("Client:", "Firm:")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_that_is_offered_is_on_the_page(method) -> None:
    assert (f"`{method}`" in _PAGE) != METHODS[method].evaluation
