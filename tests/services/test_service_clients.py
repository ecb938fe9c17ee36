"""Clients that people have, unmodified, against the service in a process of its own.

Skipped by name where one is not installed; ``.ci/run`` installs all of them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragwitness.attest.receipts import verify_request
from ragwitness.attest.window import Window
from ragwitness.core.errors import TargetResponseError, TargetUnreachableError
from ragwitness.crypto.keys import read_key
from ragwitness.crypto.records import QueryRecord, SignedQueryRecord, decode
from ragwitness.service.client import Client
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, open_store
from tests.support.service import Server, commit_without_proofs, make_tenant, parrot

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=60,
    accounts=8,
    capacity=12,
    top=3,
    embedder="hashing:64",
    texts=True,
)


class Running:
    """A server, its store, and keys of an account each."""

    def __init__(self, url: str, store: Store, keys: list[str]) -> None:
        self.url, self.store, self.keys = url, store, keys


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("clients")
    path = str(folder / "service.db")
    store = open_store(path, create=True)
    keys = make_tenant(store, "acme", accounts=6, claim=CLAIM)
    with (
        parrot() as generator,
        Server(path, folder / "log", generator) as server,
    ):
        yield Running(server.url, store, keys)
    assert "secretacme" not in (folder / "log").read_text()
    store.close()


def test_openai_s_client_with_what_it_sends_by_itself(running: Running) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=running.url, api_key=running.keys[0], max_retries=0)
    assert [model.id for model in client.models.list()] == ["rag"]
    messages = [{"role": "user", "content": "the code of door 3"}]
    reply = client.chat.completions.with_raw_response.create(
        model="rag", messages=messages, top_p=0.9, user="u", max_completion_tokens=40
    )
    assert reply.headers["x-ragwitness-ignored"] == "top_p, user"
    assert "record" in reply.parse().choices[0].message.content
    parts = client.chat.completions.create(
        model="rag", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    told = list(parts)
    assert "record" in "".join(p.choices[0].delta.content or "" for p in told if p.choices)
    assert told[-1].usage is not None
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=running.url, api_key="sk-none", max_retries=0).models.list()
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=messages)


def test_langchain_s_chat_model(running: Running) -> None:
    chat = pytest.importorskip("langchain_openai").ChatOpenAI(
        base_url=running.url, api_key=running.keys[1], model="rag", top_p=0.9, max_retries=0
    )
    assert "record" in chat.invoke("the code of door 3").content


def test_a_client_says_why_it_has_nothing(running: Running) -> None:
    with pytest.raises(TargetResponseError, match="401: Incorrect API key"):
        Client(running.url, "rw_none").retrieve("a question")
    with pytest.raises(TargetUnreachableError, match="does not answer"):
        Client("http://127.0.0.1:9", "k").retrieve("a question")
    assert running.keys[0] not in repr(Client(running.url, running.keys[0]))


# Accounts that sign, against a tenant whose answers stand in a log.

SIGNING = Claim(mechanism="noise",
    epsilon=1, queries=4, accounts=4, capacity=16, top=3, embedder="hashing:16", texts=True,
    relation="add-remove", scale=64,
)  # fmt: skip


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("logged")
    path = str(folder / "service.db")
    store = open_store(path, create=True)
    keys = make_tenant(store, "acme", accounts=3, claim=SIGNING)
    with pytest.MonkeyPatch.context() as patch:
        window, key = commit_without_proofs(store, "acme", folder, patch)
    with Server(path, folder / "log", attest=[str(window)], key=str(key)) as server:
        yield Running(server.url, store, keys), window
    store.close()


def test_a_client_with_an_account_signs_what_it_asks(
    logged: tuple[Running, Path], tmp_path: Path
) -> None:
    running, folder = logged
    key, receipts = tmp_path / "account.key", tmp_path / "receipts"
    client = Client(running.url, running.keys[0], account=key, receipts=receipts)
    for query in ("the code of door 3", "the code of door 4"):
        assert all("secretacme" in document.text for document in client.retrieve(query))
    public = read_key(key).public.material
    records = [decode(entry) for entry in Window.load(folder).ledger.entries()]
    mine = [one for one in records if isinstance(one, QueryRecord) and one.account == "a0"]
    assert [int(one.sequence) for one in mine] == [0, 1]
    for record in mine:
        assert isinstance(record, SignedQueryRecord)
        verify_request(record, bytes.fromhex(record.signature), public)
    assert len(list(receipts.iterdir())) == 2
