"""The passages of a system of ours: for its owner in this process, for nobody else."""

import asyncio

from ragwitness.core.types import Capability, Document, Query
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.server import create_app
from ragwitness.rag.target import LabTarget

_DOCUMENTS = [
    Document(str(i), f"Record {i} is about subject{i} and nothing else.") for i in range(9)
]


def test_only_the_owner_sees_passages() -> None:
    system = build_system(_DOCUMENTS, RagConfig(k=2))
    query = Query("What is subject4?", max_tokens=4)
    shown = LabTarget(system).for_owner()
    answer, hidden = asyncio.run(shown.ask(query)), asyncio.run(LabTarget(system).ask(query))
    assert answer.contexts is not None
    assert answer.contexts[0] == _DOCUMENTS[4].text
    assert len(answer.contexts) == 2
    assert hidden.contexts is None
    assert hidden.text == answer.text
    assert shown.name == LabTarget(system).name
    assert shown.capabilities - LabTarget(system).capabilities == {Capability.CONTEXTS}


def test_http_never_shows_them() -> None:
    from starlette.testclient import TestClient

    system = build_system(_DOCUMENTS, RagConfig(k=2))
    LabTarget(system).for_owner()
    body = {"messages": [{"role": "user", "content": "What is subject4?"}], "max_tokens": 4}
    reply = TestClient(create_app(system, key="")).post("/v1/chat/completions", json=body)
    assert reply.status_code == 200
    assert "contexts" not in reply.text
    assert "context" not in reply.json()["choices"][0]
