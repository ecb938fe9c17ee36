"""A method, a dialect and a report format that another package adds, by the verbs themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.cli import main
from tests.support import acme_plugin
from tests.support.packages import install

_INSIDE = "the harbour was quiet that night and nobody saw the second boat leave for the island"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of `tests/support/acme_plugin.py`, installed; the folder of the test."""
    install(
        monkeypatch,
        tmp_path / "site",
        "acme_rag",
        Path(acme_plugin.__file__).read_text(),
        audits={"quote": "acme_rag:Quote"},
        targets={"shelf": "acme_rag:open_shelf"},
        formats={"markdown": "acme_rag:MARKDOWN"},
    )
    # A verb's options are made once for each process; this one has an option more.
    monkeypatch.setattr(main, "_verb", main._verb.__wrapped__)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.jsonl").write_text(json.dumps({"id": "boat", "text": _INSIDE}) + "\n")
    rows = ({"id": f"out-{n}", "text": f"{n} {_text(n)}"} for n in range(40))
    (tmp_path / "others.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def _text(number: int) -> str:
    return " ".join(f"word{number}{letter}" for letter in "abcdefghijklmnop")


def test_a_stranger_adds_a_method_a_dialect_and_a_format_without_a_list(plugin, command):
    code, text = command(
        "audit", f"shelf:{_INSIDE}", "--documents", "mine.jsonl", "--known-out", "others.jsonl",
        "--method", "quote", "--run", "run", "--markdown", "report.md", "--yes",
    )  # fmt: skip
    assert code == 0, text
    result = json.loads((plugin / "run" / "result.json").read_text())
    (row,) = result["documents"]
    assert row["score"] == 1
    assert row["p_value"] == pytest.approx(1 / 41)
    assert (plugin / "report.md").read_text().startswith("# ")


def test_their_names_are_listed(plugin, command):
    assert "--markdown" in command("audit", "--help")[1]
    code, text = command("audit", "shelf:x", "--documents", "mine.jsonl", "--method", "quot")
    assert code == 2
    assert "quote" in text
    code, text = command("audit", "shelve:x", "--documents", "mine.jsonl", "--method", "quote")
    assert code == 2
    assert "shelf/…" in text
