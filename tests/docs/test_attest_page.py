"""The page on audit windows: its code and commands run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from ragwitness.attest.policy import EXAMPLE
from ragwitness.cli.main import app, run
from tests.support.windows import stand_in

_PAGE = (Path(__file__).parents[2] / "docs" / "attest.md").read_text(encoding="utf-8")
_COMMANDS = [shlex.split(found)[1:] for found in re.findall(r"`(ragwitness [a-z].*?)`", _PAGE)]
# Real proofs, and servers: tests/cli.
_ELSEWHERE = {"prove", "verify", "commit", "collusion"}


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run_it(words: list[str]) -> str:
        monkeypatch.setattr(sys, "argv", ["ragwitness", *words])
        with pytest.raises(SystemExit) as stop:
            run()
        out, err = capsys.readouterr()
        assert stop.value.code in (0, None), (words, err)
        return out

    return run_it


@pytest.mark.slow
def test_the_page_runs_from_the_opening_to_the_challenge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.replace("dimension = 384", "dimension = 32").replace("= 1000 ", "= 16 ")
    Path("policy.toml").write_text(text)
    rows = [{"id": f"d{i}", "text": f"patient {i} had a fever, code {i * 7}"} for i in range(5)]
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    stand_in(monkeypatch)
    done, given = set(), dict[str, str]()
    for line in _COMMANDS:
        words = line[1:] if line[0] == "attest" else line
        if words[0] == "commit" and len(words) > 2:
            call([*line, "--embedder", "hashing:32"])
            Path("trust.json").write_bytes(Path("W/trust.json").read_bytes())
            given = {"KEY": json.loads(Path("trust.json").read_bytes())["log"][0]}
        elif words[0] == "begin":
            call(line)
            code = re.search(r"```python\n(.*?)```", _PAGE, re.DOTALL)
            assert code is not None
            scope: dict[str, object] = {}
            ours = code[1].replace('"minilm"', '"hashing:32"')
            exec(compile(ours, "docs/attest.md", "exec"), scope)  # noqa: S102, our own page
            nonce = json.loads(json.loads(Path("receipt.json").read_bytes())["entry"])["nonce"]
            given |= {"…": str(scope["text"]), "9f2c": nonce, "30": "1"}
        elif words[0] in _ELSEWHERE or "theirs" in words or {words[0]} & done & {"challenge"}:
            continue  # a second challenge is another way to draw one
        else:
            call([given.get(word, word) for word in line])
        done.add(words[0])
    assert done == {
        "commit", "beacon", "begin", "receipt", "monitor", "close", "pin", "challenge",
    }  # fmt: skip


def test_every_command_and_option_on_the_page_exists() -> None:
    group = typer.main.get_command(app)
    assert len(_COMMANDS) >= 12
    for words in _COMMANDS:
        command, rest = group, list(words)
        while isinstance(command, typer.core.TyperGroup) and rest:
            command = command.get_command(None, rest.pop(0))  # type: ignore[arg-type]
        known = {name for param in command.params for name in param.opts}
        assert {word for word in rest if word.startswith("-")} <= known, words
