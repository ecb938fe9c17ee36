"""``ragwitness lab wiki-pii``: files that ``leak`` reads, and unusable input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from ragwitness.text.secrets import read_secrets

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "prose.txt"
    path.write_text("\n\n".join(d.text for d in load_sample()[:30]), encoding="utf-8")
    return path


def test_records_secrets_and_decoys(prose: Path, command: Command) -> None:
    arguments = ["corpus", "wiki-pii", "--text", prose, "-o", "wiki.jsonl"]
    arguments += ["--secrets", "secrets.jsonl", "--decoys", "decoys.jsonl"]
    code, text = command(*arguments, "--characters", 500, "--limit", 8, "--seed", 3)
    assert code == 0, text
    rows = [json.loads(line) for line in Path("wiki.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    texts = {row["id"]: row["text"] for row in rows}
    secrets, decoys = read_secrets(Path("secrets.jsonl")), read_secrets(Path("decoys.jsonl"))
    assert all(one.text in texts[one.record] for one in secrets)
    assert len(decoys) == len(secrets)
    assert not any(one.text in text for one in decoys for text in texts.values())
    assert f"8 records with {len(secrets)} planted secrets" in text
    first = Path("wiki.jsonl").read_bytes()
    assert command(*arguments, "--characters", 500, "--limit", 8, "--seed", 3)[0] == 0
    assert Path("wiki.jsonl").read_bytes() == first


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--text": "none.txt"}, "none.txt cannot be read"),
        ({"--text": "latin.txt"}, "not UTF-8"),
        ({"--text": "blank.txt"}, "no text to plant"),
        ({"--characters": "0"}, "at least one character"),
        ({"--secrets": "prose.txt"}, "would replace what"),
        ({"-o": "secrets.jsonl"}, "would replace what"),
    ],
)
def test_unusable_input(prose: Path, command: Command, changes: dict[str, str], said: str) -> None:
    Path("latin.txt").write_bytes("naïve".encode("latin-1"))
    Path("blank.txt").write_text(" \n")
    options = {"--text": "prose.txt", "-o": "wiki.jsonl", "--secrets": "secrets.jsonl"} | changes
    before = prose.read_bytes()
    code, text = command("corpus", "wiki-pii", *(one for pair in options.items() for one in pair))
    assert code == 2
    assert said in text
    assert prose.read_bytes() == before
