"""The pages on services and frameworks: their lines are typed at stand-ins, or the real thing."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragwitness.targets import resolve
from ragwitness.text.sample import load_sample
from tests.cli import conftest
from tests.support.chatting import MODELS, reading
from tests.support.loopback import Loopback, chat_body, loopback, reply
from tests.support.pages import ROOT

command = conftest.command
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_AZURE = "/openai/deployments/DEPLOYMENT/chat/completions?api-version=2024-10-21"
_CHAT, _DIFY = "/v1/chat/completions", "/v1/chat-messages"
_KEY = "a-key-of-mine"
_BEARER = f"authorization: bearer {_KEY}"
# Section: the address that the stand-in takes over, where the question goes, and the key's header.
_SERVICES = {
    "OpenAI": ("http://127.0.0.1:8000/v1", _CHAT, _BEARER),
    "Azure OpenAI": ("https://NAME.openai.azure.com", _AZURE, f"api-key: {_KEY}"),
    "Ollama": ("http://127.0.0.1:11434/v1", _CHAT, ""),
    "llama.cpp server": ("http://127.0.0.1:8080/v1", _CHAT, ""),
    "vLLM": ("http://127.0.0.1:8000/v1", _CHAT, _BEARER),
    "Dify, and other services that stream": ("http://127.0.0.1/v1", _DIFY, _BEARER),
}


def section(page: str, title: str) -> dict[str, list[str]]:
    """The fenced blocks of one section, by their language."""
    text = (ROOT / page).read_text(encoding="utf-8").split(f"\n## {title}\n")[1]
    found: dict[str, list[str]] = {}
    for kind, code in re.findall(r"^```(\w+)\n(.*?)^```$", text.split("\n## ")[0], re.M | re.S):
        found.setdefault(kind, []).append(code)
    return found


def sections(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [part.partition("\n")[0] for part in text.split("\n## ")[1:] if "```sh" in part]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """Every service of the page in one, and the reader's folder around it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    docs = load_sample(60)
    for name, part in {"mine": docs[:2], "never-shared": docs[2:9], "data": docs[:4]}.items():
        Path(name).mkdir()
        for one in part:
            (Path(name) / f"{one.id}.txt").write_text(f"{one.text} They say hello.", "utf-8")
    rows = (json.dumps({"id": one.id, "text": one.text}) + "\n" for one in docs[:4])
    Path("corpus.jsonl").write_text("".join(rows), encoding="utf-8")

    def step(connection: Any) -> None:
        path, body = running.requests[-1]
        connection.sendall(_reply(path.partition("?")[0], body))

    with loopback(step) as running:
        monkeypatch.setattr(resolve, "_OPENAI", running.url)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def _reply(path: str, body: dict[str, Any]) -> bytes:
    if path.endswith("/models"):
        return MODELS
    if path.endswith("/embeddings"):
        rows = [[float(len(str(text)) % 7), 1.0] for text in body["input"]]
        found = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(rows)]
        return reply({"object": "list", "model": "m", "data": found, "usage": {}})
    if path.endswith("/chat-messages"):  # as Dify streams: an event a word, sources at the end
        said = reading(body["query"]).split(" ")
        events: list[dict[str, Any]] = [{"event": "message", "answer": f"{w} "} for w in said]
        sources = [{"position": 1, "content": "They say hello."}]
        events.append({"event": "message_end", "metadata": {"retriever_resources": sources}})
        text = "event: ping\n\n" + "".join(f"data: {json.dumps(one)}\n\n" for one in events)
        return reply(text.encode(), kind="text/event-stream")
    said_to = "".join(str(one["content"]) for one in body["messages"])
    return reply(chat_body(reading(said_to)) | {"id": "c", "created": 0, "model": "m"})


def typed(blocks: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, **places: str) -> list:
    """Keys are exported and files written as the page says; returns the calls of ragwitness."""
    calls = []
    for code in [*blocks.get("toml", ()), *blocks.get("python", ())]:
        Path(code.partition("\n")[0].removeprefix("# ")).write_text(
            code.replace(places["shown"], places["ours"]), encoding="utf-8"
        )
    for line in "".join(blocks["sh"]).replace("\\\n", " ").splitlines():
        words = shlex.split(line.replace(places["shown"], places["ours"]))
        if words[0] == "export":
            monkeypatch.setenv(words[1].partition("=")[0], _KEY)
        else:
            assert words[0] == "ragwitness"
            calls.append(words[1:])
    assert {call[0] for call in calls} == {"doctor", "audit"}
    return calls


def test_every_section_is_typed() -> None:
    assert sections("docs/services.md") == list(_SERVICES)


@pytest.mark.parametrize("title", _SERVICES)
def test_a_service(title: str, server: Loopback, command: Any, monkeypatch: Any) -> None:
    shown, path, key = _SERVICES[title]
    ours = server.url if shown.endswith("/v1") else server.url.removesuffix("/v1")
    blocks = section("docs/services.md", title)
    for call in typed(blocks, monkeypatch, shown=shown, ours=ours):
        before = len(server.requests)
        more = ["--yes"] if call[0] == "audit" else ["--no-pilot"]
        code, said = command(*call, *more)
        assert code == 0, said
        asked = [one for one, _ in server.requests[before:] if not one.endswith("/models")]
        assert path in asked, (call, asked[:3])
    # The last call shows its key; OPENAI_API_KEY itself goes to no other host than OpenAI's.
    assert key in "\n".join(server.headers[before:]).lower()
    if "Dify" in title:
        assert "passages" in said  # what was retrieved is shown, and used


@pytest.mark.parametrize("title", sections("docs/frameworks.md"))
def test_a_framework(title: str, server: Loopback, command: Any, monkeypatch: Any) -> None:
    module = {"LangChain": "langchain_openai", "LlamaIndex": "llama_index.core"}
    pytest.importorskip(module.get(title, "haystack"))
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    if title == "LlamaIndex":  # its defaults need two more packages
        from llama_index.core import MockEmbedding, Settings
        from llama_index.core.llms import MockLLM

        monkeypatch.setattr(Settings, "_llm", MockLLM())
        monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=8))
    for call in typed(section("docs/frameworks.md", title), monkeypatch, shown="\0", ours=""):
        more = ["--yes"] if call[0] == "audit" else ["--no-pilot"]
        code, said = command(*call, *more)
        assert code == 0, said
        assert "passages" in said
