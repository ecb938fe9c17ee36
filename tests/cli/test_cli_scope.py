"""``audit --as``: a leak between accounts is found, and a service without one is not accused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.core.types import Document
from ragwitness.text.sample import load_sample
from tests.support.tenants_rag import tenants_rag


def _write(path: Path, documents: list[Document]) -> str:
    rows = (json.dumps({"id": one.id, "text": one.text}) for one in documents)
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def test_a_leak_between_accounts_is_found_and_no_other_account_is_accused(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = load_sample()
    own, outside, others = sample[:6], sample[6:66], sample[66:96]
    monkeypatch.setenv("ALICE_KEY", "sk-alice-012345")
    monkeypatch.setenv("BOB_KEY", "sk-bob-012345")
    given = ["--documents", _write(tmp_path / "own.jsonl", own), "--method", "s2mia", "--yes"]
    given += ["--known-out", _write(tmp_path / "outside.jsonl", outside), "--run", tmp_path / "run"]
    given += ["--as", "alice=ALICE_KEY", "--as", "bob=BOB_KEY"]
    with tenants_rag({"sk-alice-012345": others, "sk-bob-012345": [*others, *own]}) as url:
        code, text = command("audit", url, *given, "--fail-on", "in")
    assert code == 3, text
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    reached = {(c["document"], c["account"]) for c in result["cells"] if c["verdict"] == "in"}
    assert reached == {(one.id, "bob") for one in own}
    assert len(result["cells"]) == 12
    assert "6 of 6 documents: reached by another account" in text
    # Each account is an audit at an equal part of the level, in a folder of its own.
    part = json.loads((tmp_path / "run" / "bob" / "result.json").read_text())
    assert part["summary"]["alpha"] == result["alpha"] / 2
    stored = b"".join(one.read_bytes() for one in (tmp_path / "run").rglob("*") if one.is_file())
    assert b"sk-bob" not in stored  # no key is written down


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--as", "alice"], "--as takes the name of an account"),
        (["--as", "a=X", "--as", "a=Y"], "each name once"),
        (["--as", "..=X"], "--as takes"),
        (["--as", "a=X", "--collection"], "--collection does not apply to --as"),
        (["--as", "a=X", "--key-env", "Y"], "each account has its own"),
        (["--as", "a=X", "--seal", "k"], "--seal does not apply to --as"),
    ],
)
def test_what_does_not_go_with_accounts_is_refused(command, tmp_path: Path, given, says) -> None:
    (tmp_path / "own.jsonl").write_text('{"text": "Some words of a document that nobody has."}\n')
    own = ["--documents", tmp_path / "own.jsonl", "--known-out", tmp_path / "own.jsonl"]
    code, text = command("audit", "http://127.0.0.1:9/v1", *own, *given)
    assert code == 2
    assert says in " ".join(text.split())
