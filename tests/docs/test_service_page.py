"""The page on the service: its commands run as they stand there, its tables are complete."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path

import httpx2
import pytest

from ragwitness.cli.main import run
from ragwitness.service.app import create_app
from ragwitness.service.store import open_store
from tests.cli.surface import verbs

_PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")


def test_the_first_commands_and_the_replies_they_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAGWITNESS_DATABASE", raising=False)
    rows = [{"id": f"d{i}", "text": f"The code of door {i} is {i * 7}."} for i in range(5)]
    Path("corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    commands = re.findall(r"^ragwitness (service tenants .*)$", _PAGE, re.MULTILINE)[:3]
    [noise] = re.findall(r"^ragwitness (service tenants create paper .*)$", _PAGE, re.MULTILINE)
    more = (words.replace("acme", "paper") for words in commands[1:])
    replies = []
    for steps in (commands, [noise, *more]):
        for words in steps:
            monkeypatch.setattr(sys, "argv", ["ragwitness", *shlex.split(words)])
            with pytest.raises(SystemExit) as stop:
                run()
            assert stop.value.code in (0, None), words
        found = re.search(r"rw_\w+[-\w]*", capsys.readouterr().out)
        assert found is not None
        replies.append(asyncio.run(_retrieval(found[0])))
    placed, reply = replies
    assert set(placed.json()) == {"object", "ids", "documents"}
    assert set(reply.json()) == {"object", "ids", "documents"}


async def _retrieval(key: str) -> httpx2.Response:
    store = open_store()
    transport = httpx2.ASGITransport(app=create_app(store))
    async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
        headers = {"Authorization": f"Bearer {key}"}
        reply = await client.post("/v1/retrieval", json={"query": "door"}, headers=headers)
    store.close()
    return reply


def test_every_command_is_described() -> None:
    named = [words.removeprefix("service ") for words, _ in verbs()]
    for name in (words.split()[1] for words in named if words.startswith("tenants ")):
        assert f"`tenants {name}" in _PAGE, name


def test_every_path_is_described() -> None:
    for route in create_app(None, retriever=object()).routes:  # type: ignore[arg-type]
        assert f"{route.path}`" in _PAGE, route.path
