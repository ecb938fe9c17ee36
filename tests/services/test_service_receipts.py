"""Receipts from server processes: kill -9, and a whole window to its verdict."""

import asyncio
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import ragwitness.service.client as clients_of
from ragwitness.attest.prove import close_window
from ragwitness.attest.receipts import Receipt, check_receipt
from ragwitness.attest.window import Window
from ragwitness.crypto.keys import read_key
from ragwitness.crypto.notes import Signers
from ragwitness.crypto.records import QueryRecord, decode
from ragwitness.service.policy import Claim
from ragwitness.service.store import open_store
from ragwitness.service.tenants import budget_of
from tests.support.service import Server, commit_without_proofs, make_tenant
from tests.support.windows import KEY

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]
CLAIM = Claim(mechanism="noise",
    epsilon=5, queries=20, accounts=4, capacity=16, top=2, embedder="hashing:16",
    relation="add-remove", scale=64,
)  # fmt: skip


class Client:
    """One account: fetches a checkpoint once, then asks with nonces and keeps what it gets."""

    def __init__(self, key: str) -> None:
        self.headers = {"Authorization": f"Bearer {key}"}
        self.checkpoint = ""
        self.answers: dict[str, dict[str, Any]] = {}
        self.refused: list[int] = []

    async def ask(self, http: httpx2.AsyncClient, url: str, nonce: str) -> None:
        try:
            if not self.checkpoint:
                told = await http.get(f"{url}/log/checkpoint", headers=self.headers)
                self.checkpoint = told.json()["checkpoint"]
            body = {"query": f"door {nonce}", "nonce": nonce, "checkpoint": self.checkpoint}
            reply = await http.post(f"{url}/retrieval", json=body, headers=self.headers)
        except httpx2.HTTPError:
            return
        if reply.status_code == 200:
            self.answers[nonce] = reply.json()
        else:
            self.refused.append(reply.status_code)


async def ask_all(url: str, clients: list[Client], nonces: range) -> None:
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        for client in clients:  # one after the other, so that each has its checkpoint
            await client.ask(http, url, str(nonces[0]))
        await asyncio.gather(
            *(one.ask(http, url, str(nonce)) for nonce in nonces[1:] for one in clients)
        )


def test_kill_9_answers_nothing_without_a_record(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(database)
    name = f"acme-{tmp_path.name[-20:]}".rstrip("-_")  # a PostgreSQL is shared by the tests
    clients = [Client(key) for key in make_tenant(store, name, 3, claim=CLAIM)]
    # No proofs here, and none are needed to serve.
    folder, key = commit_without_proofs(store, name, tmp_path, monkeypatch)
    with Server(database, tmp_path / "log", attest=[str(folder)], key=str(key)) as server:

        async def until_killed() -> None:
            task = asyncio.ensure_future(ask_all(server.url, clients, range(8)))
            while budget_of(store, name).queries < 9:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await task

        asyncio.run(until_killed())
        before = [dict(client.answers) for client in clients]
        server.start()
        asyncio.run(ask_all(server.url, clients, range(8)))  # the same nonces once more
        said = [(sorted(client.answers), client.refused) for client in clients]
        assert all(len(client.answers) == 8 for client in clients), said
        for client, earlier in zip(clients, before, strict=True):
            assert all(client.answers[n]["ids"] == one["ids"] for n, one in earlier.items())
        asyncio.run(ask_all(server.url, clients, range(100, 120)))
    window = Window.load(folder, [KEY])
    entries = window.ledger.entries()
    for client in clients:
        numbers = Counter(answer["sequence"] for answer in client.answers.values())
        assert set(numbers.values()) == {1}
        for answer in client.answers.values():
            receipt = Receipt.parse(answer["receipt"].encode())
            _, proof, _ = check_receipt(receipt, Signers((KEY.public,)))
            assert entries[proof.index] == receipt.entry
            assert receipt.opened.ids == tuple(answer["ids"])
    records = [r for r in map(decode, entries) if isinstance(r, QueryRecord)]
    assert len(records) == sum(len(client.answers) for client in clients)
    for account in {record.account for record in records}:
        mine = [int(record.sequence) for record in records if record.account == account]
        assert mine == list(range(len(mine)))  # no gap, whatever the crash cost
    charged = budget_of(store, name).queries
    assert len(records) <= charged <= 3 * CLAIM.queries
    assert all(set(client.refused) <= {429} for client in clients)
    assert close_window(window).queries == len(records)
    store.close()


def cosigned(window: str) -> None:
    """Publish the close with the witness's signature, and have the auditor ask for one."""
    shutil.copy("seen", f"{window}/public/close.checkpoint")
    trust = json.loads(Path(f"{window}/trust.json").read_text())
    trust |= {"witnesses": [read_key(Path("witness.key")).public.text], "quorum": 1}
    Path(f"{window}/trust.json").write_text(json.dumps(trust))


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("RAGWITNESS_DATABASE", "s.db")


@pytest.mark.usefixtures("_here")
def test_a_served_window_passes_its_audit_and_a_dropped_record_does_not(command: Command) -> None:
    def told(*words: object) -> str:
        code, text = command(*words)
        assert code == 0, text
        return text

    rows = ({"id": f"d{i}", "text": f"record {i}: the word of day {i} is w{i}"} for i in range(12))
    Path("docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told(
        "service", "tenants", "create", "acme", "--mechanism", "noise", "--ids-only", "--knowingly",
        "--embedder", "hashing:16", "--queries", 4, "--accounts", 2,
        "--capacity", 16, "--top", 2, "--scale", 64, "--epsilon", 1,
    )  # fmt: skip
    told("service", "tenants", "add-documents", "acme", "docs.jsonl")
    keys = [
        json.loads(told("service", "tenants", "add-account", "acme", name, "--json"))["key"]
        for name in ("ann", "bob", "cy")
    ]
    Path("p.toml").write_text(told("service", "tenants", "policy", "acme"))
    committing = ("attest", "commit", "--policy", "p.toml", "--database", "s.db")
    told(*committing, "--key", "log.key", "--name", "example.org/log", "-o", "W")

    def watch(window: str = "W", *more: str) -> tuple[int, str]:
        state = ("--state", "seen", "--cosign", "witness.key")
        public = (f"{window}/public", "--trust", f"{window}/trust.json")
        return command("attest", "monitor", *public, *state, *more)

    assert watch("W", "--name", "w.example")[0] == 0
    shutil.copy("seen", "W/public/open.checkpoint")  # the opening with the witness's signature
    told("attest", "beacon", "W/public", "--trust", "W/trust.json", "-o", "beacon.json")
    told("attest", "begin", "W", "beacon.json", "--key", "log.key")
    clients = [Client(key) for key in keys]
    words = ["which day has w3", "the record of noon", "zebra", "seven of nine", "tea and milk"]
    with Server("s.db", Path("log"), attest=["W"], key="log.key") as server:

        async def ask(client: Client, nonce: str) -> None:
            async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
                await client.ask(http, server.url, nonce)

        ann = clients_of.Client(server.url, keys[0], account="ann.key", receipts="ann")
        for number, word in enumerate(words):
            if number % 3:
                asyncio.run(ask(clients[number % 3], word))
            else:  # ann signs
                assert all(one.id for one in ann.retrieve(word))
            if not number:
                assert "now      3" in watch()[1]
        shutil.copytree("W", "V")  # the provider will go back to here
        asyncio.run(ask(clients[2], "the last one"))
    receipts = [a["receipt"] for client in clients for a in client.answers.values()]
    receipts += [path.read_text() for path in sorted(Path("ann").iterdir())]
    assert len(receipts) == 6
    options: list[object] = []
    for number, receipt in enumerate(receipts):
        Path(f"r{number}.json").write_text(receipt)
        told("attest", "receipt", "check", f"r{number}.json", "--trust", "W/trust.json")
        options += ["--receipt", f"r{number}.json"]
    for window in ("W", "V"):
        trust, challenge, bundle = f"{window}/trust.json", f"{window}.json", f"{window}.zip"
        told("attest", "close", window, "--key", "log.key")
        code, text = watch(window)
        assert code == (0 if window == "W" else 3), text
        if window == "V":
            assert "log.split_view" in text or "log.rolled_back" in text
        else:
            cosigned("W")
        told("attest", "challenge", f"{window}/public", "--trust", trust, "--all", "-o", challenge)
        # What a challenge asks about goes, between draw and proof: documents that answers were
        # made of, and then the tenant. Neither is in the way of an honest proof, and neither
        # hides a record that was dropped.
        if window == "W":
            told("service", "tenants", "remove-documents", "acme", "d3", "d7", "--end-window")
        else:
            told("service", "tenants", "erase", "acme", "--yes")
        signing = ("--key", "log.key")
        told("attest", "prove", window, challenge, *signing, "-o", bundle)
        told("attest", "pin", f"{window}/public", "--trust", trust, "--policy")
        code, text = command("verify", bundle, "--trust", trust, *options)
        if window == "W":
            assert code == 0, text
            assert "PASS" in text
            said = " ".join(text.split())  # the terminal breaks lines
            assert "6 queries of 3 accounts; 2 of them signed under the key that is logged" in said
            assert "0 are signed by keys that your terms name" in said
            assert "The sub-seeds of 6 answers, which take their noise off" in said
        else:
            assert code == 3, text
            assert "receipt." in text
    assert os.path.getsize("W/secret/seed") == 32
