"""Answers that stand in a log: what a client must name, what it gets, and what is refused when."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragwitness.attest.commit import open_window
from ragwitness.attest.commitments import CommittedEmbedder
from ragwitness.attest.policy import WindowPolicy, read_policy
from ragwitness.attest.prove import close_window
from ragwitness.attest.receipts import Receipt, check_receipt
from ragwitness.attest.window import Window
from ragwitness.core.errors import InputError
from ragwitness.crypto.keys import write_key
from ragwitness.crypto.notes import Signers, open_checkpoint
from ragwitness.crypto.records import QueryRecord
from ragwitness.models.embedders import HashingEmbedder
from ragwitness.privacy.release import SlotIndex, quantise, release
from ragwitness.privacy.streams import NoiseRecord, noise_key
from ragwitness.service.documents import add_documents, remove_documents
from ragwitness.service.policy import Claim
from ragwitness.service.retrieval import Retriever
from ragwitness.service.store import Store
from ragwitness.service.tenants import add_account, budget_of, create_tenant
from ragwitness.service.window import (
    HeldIndexes,
    Logs,
    check_unbound,
    held_windows,
    policy_text,
    read_contents,
    take_windows,
)
from tests.support.service import SMALL, make_tenant, marked
from tests.support.windows import KEY, stand_in

CLAIM = Claim(mechanism="noise",
    epsilon=20, queries=3, accounts=2, capacity=16, top=2, embedder="hashing:32",
    relation="add-remove", scale=64,
)  # fmt: skip
SIGNERS = Signers((KEY.public,))


class World:
    """A tenant with three accounts, a window that is committed to, and a service over both."""

    def __init__(self, service: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service, self.store, self.folder = service, service.store, folder
        self.keys = make_tenant(self.store, "acme", 3, claim=CLAIM)
        self.promised = self.policy(accounts_most=2)
        stand_in(monkeypatch)
        write_key(folder / "log.key", KEY)
        self.taken = self.commit(self.promised, "W")
        self.begin("W")

    def policy(self, **options: Any) -> WindowPolicy:
        path = self.folder / "policy.toml"
        path.write_text(policy_text(self.store, "acme"))
        return replace(read_policy(path), **options)

    def open(self, promised: WindowPolicy, name: str) -> tuple[Window, HeldIndexes]:
        held = read_contents(self.store, promised)
        by = CommittedEmbedder.of({"name": sha256(held.embedder.encode()).hexdigest()})
        root = self.folder / name
        open_window(root, promised, held.contents, by, [KEY])
        window = Window.load(root)
        window.begin("be" * 32, "a test")
        return window, held

    def commit(self, promised: WindowPolicy, name: str) -> dict[str, int]:
        window, held = self.open(promised, name)
        return take_windows(self.store, promised, window.ledger.opened, held.editions, now=0.0)

    def begin(self, *names: str) -> None:
        folders = [str(self.folder / name) for name in names]
        logs = Logs(self.store, folders, str(self.folder / "log.key"))
        self.service.retriever.close()
        self.service.retriever = Retriever(
            self.store, clock=lambda: self.service.now, logs=logs if names else None
        )

    @property
    def window(self) -> Window:
        return Window.load(self.folder / "W", [KEY])

    def checkpoint(self, account: int = 0) -> str:
        reply = self.service.send("/v1/log/checkpoint", key=self.keys[account])
        assert reply.status_code == 200, reply.text
        return str(reply.json()["checkpoint"])

    def ask(self, account: int = 0, query: str = "the code of door 3", **more: Any) -> Any:
        body = {"query": query, "nonce": "n", **more}
        if "checkpoint" not in body:
            body["checkpoint"] = self.checkpoint(account)
        return self.service.send("/v1/retrieval", body, self.keys[account])

    @property
    def charged(self) -> int:
        return budget_of(self.store, "acme").queries


@pytest.fixture
def world(service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("ragwitness.service.tenants.time.time", lambda: 0.0)
    monkeypatch.setattr("ragwitness.service.window.time.time", lambda: 0.0)
    return World(service, tmp_path, monkeypatch)


def record_of(reply: Any) -> tuple[Receipt, QueryRecord]:
    receipt = Receipt.parse(reply.json()["receipt"].encode())
    return receipt, check_receipt(receipt, SIGNERS)[0]


def test_an_answer_carries_a_receipt_and_its_noise_is_the_committed_one(world: World) -> None:
    named = world.checkpoint()
    reply = world.ask(checkpoint=named)
    body = reply.json()
    assert set(body) == {"object", "ids", "window", "sequence", "receipt"}
    receipt, record = record_of(reply)
    assert receipt.opened.ids == tuple(body["ids"])
    assert receipt.opened.query == sha256(b"the code of door 3").digest()
    told = (record.window, record.tenant, record.account, record.nonce, record.checkpoint)
    assert told == ("acme-0", "acme", "a0", "n", named)
    mechanism = world.promised.tenants["acme"]
    vector = quantise(HashingEmbedder(32).embed(["the code of door 3"])[0], mechanism)
    assert np.array_equal(receipt.opened.vector, vector)
    made_of = NoiseRecord(
        "acme-0", "acme", "a0", 0, "n", named, receipt.opened.query.hex(), mechanism.digest
    )
    key = noise_key(world.window.seed_opening(0)[0], 0, made_of, bytes.fromhex("be" * 32))
    index = SlotIndex(world.window.rows("acme"), mechanism)
    assert release(vector, index, key, mechanism).ids == receipt.opened.ids
    assert world.charged == 1


def test_a_vector_is_an_answerable_query_too(world: World) -> None:
    vector = np.linspace(-1, 1, 32)
    body = {"vector": vector.tolist(), "nonce": "n", "checkpoint": world.checkpoint()}
    receipt, _ = record_of(world.service.send("/v1/retrieval", body, world.keys[0]))
    assert receipt.opened.query == sha256(vector.astype("<f8").tobytes()).digest()


def test_the_same_request_again_is_answered_from_the_log_and_costs_nothing(world: World) -> None:
    named = world.checkpoint()
    first, again = (world.ask(checkpoint=named).json() for _ in range(2))
    assert (first["ids"], first["sequence"]) == (again["ids"], again["sequence"])
    assert world.charged == 1
    assert len(world.window.ledger.queries) == 1
    for number in (1, 2):
        assert world.ask(nonce=f"n{number}").json()["sequence"] == number
    assert world.ask(checkpoint=named).json()["ids"] == first["ids"]  # after the last as well
    refused = world.ask(nonce="n3")
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "budget_spent"
    assert world.charged == 3


def test_what_the_log_cannot_take_is_refused_before_it_is_charged(world: World) -> None:
    named = world.checkpoint()
    for change, status, code, said in (
        ({"nonce": ""}, 400, "log_refused", "asks for a nonce"),
        ({"checkpoint": ""}, 400, "log_refused", "names no checkpoint"),
        ({"checkpoint": "1 " + "A" * 43 + "="}, 400, "log_refused", "not a checkpoint of this log"),
        ({"account": 1, "checkpoint": named}, 409, "not_admitted", "GET /v1/log/checkpoint"),
    ):
        reply = world.ask(**change)  # type: ignore[arg-type]
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (status, code), change
        assert said in error["message"]
    assert world.ask(checkpoint=named).status_code == 200
    assert world.ask(query="another", checkpoint=named).json()["error"]["code"] == "log_refused"
    world.checkpoint(1)
    full = world.service.send("/v1/log/checkpoint", key=world.keys[2])
    assert (full.status_code, full.json()["error"]["code"]) == (409, "window_full")
    full = world.ask(2, checkpoint=named)
    assert (full.status_code, full.json()["error"]["code"]) == (409, "window_full")
    assert world.charged == 1
    assert world.service.send("/v1/log/checkpoint").status_code == 401


def test_the_checkpoint_shows_what_was_logged_since(world: World) -> None:
    first = world.service.send("/v1/log/checkpoint", key=world.keys[0]).json()
    assert open_checkpoint(first["note"].encode(), SIGNERS).checkpoint.size == 3
    assert world.checkpoint() == first["checkpoint"]
    world.ask(checkpoint=first["checkpoint"])
    note = world.service.send("/v1/log/checkpoint", key=world.keys[0]).json()["note"]
    assert open_checkpoint(note.encode(), SIGNERS).checkpoint.size == 4
    assert (world.folder / "W/public/checkpoint").read_text() == note


def test_a_window_without_a_beacon_is_not_served(world: World) -> None:
    """No verification of it could pass, so that nobody should be asked to trust it."""
    promised = world.policy(accounts_most=2, window="acme-1")
    held = read_contents(world.store, promised)
    by = CommittedEmbedder.of({"name": sha256(b"x").hexdigest()})
    open_window(world.folder / "V", promised, held.contents, by, [KEY])
    with pytest.raises(InputError, match="has no beacon") as found:
        world.begin("V")
    assert "attest begin" in found.value.hint


def test_chat_carries_the_receipt_whole_and_streamed(world: World) -> None:
    body = {"messages": [{"role": "user", "content": "the code of door 3"}]}
    for nonce, stream in (("n0", False), ("n1", True)):
        more = {"nonce": nonce, "checkpoint": world.checkpoint(), "stream": stream}
        reply = world.service.send("/v1/chat/completions", body | more, world.keys[0])
        assert reply.status_code == 200, reply.text
        if stream:
            events = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")]
            held = [event for event in map(json.loads, events) if "receipt" in event]
            assert len(held) == 1
            text = held[0]["receipt"]
        else:
            text = reply.json()["receipt"]
        record = check_receipt(Receipt.parse(text.encode()), SIGNERS)[0]
        assert (record.nonce, record.sequence) == (nonce, str(int(stream)))


def test_a_crash_after_the_charge_wastes_one_query_and_leaves_no_gap(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = world.checkpoint()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragwitness.attest.window_log.os.fsync", fails)
        failed = world.ask(checkpoint=named)
    assert failed.status_code == 500
    assert "receipt" not in failed.text
    assert (world.charged, len(world.window.ledger.queries)) == (1, 0)
    assert world.ask(checkpoint=named).json()["sequence"] == 0
    assert world.ask(nonce="n1").json()["sequence"] == 1
    assert world.ask(nonce="n2").status_code == 429  # the lost one counts


def test_a_closed_window_answers_nothing_and_charges_nothing(world: World) -> None:
    named = world.checkpoint()
    world.ask(checkpoint=named)
    close_window(world.window)
    for reply in (
        world.ask(nonce="later", checkpoint=named),
        world.service.send("/v1/log/checkpoint", key=world.keys[1]),
    ):
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "window_closed")
    assert world.charged == 1


def test_documents_that_are_added_end_the_window(world: World) -> None:
    named = world.checkpoint()
    add_documents(world.store, "acme", marked("more", 1))
    reply = world.ask(checkpoint=named)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "index_changed")
    assert world.charged == 0
    with pytest.raises(InputError, match="another index of acme"):
        world.begin("W")
    with pytest.raises(InputError, match="Window 0 of acme was committed to"):
        check_unbound(world.store, "acme", now=0.0)
    check_unbound(world.store, "acme", now=float(CLAIM.window + 60))


def test_a_document_removed_under_a_challenge_leaves_what_is_proved(world: World) -> None:
    """The opponent: an operator who deletes what a drawn record was answered from."""
    named = world.checkpoint()
    world.ask(checkpoint=named)
    close_window(world.window)
    kept = {
        path: path.read_bytes()
        for path in sorted((world.folder / "W").rglob("*"))
        if path.is_file()
    }
    assert remove_documents(world.store, "acme", ["acme-3", "acme-4"]) == 2
    # What the window proves from is its own: vectors, answers and seed, whoever deletes texts.
    assert {path: path.read_bytes() for path in kept} == kept
    reply = world.ask(nonce="later", checkpoint=named)
    assert (reply.status_code, world.charged) == (409, 1)


def test_a_document_removed_in_mid_window_ends_it(world: World) -> None:
    named = world.checkpoint()
    remove_documents(world.store, "acme", ["acme-3"])
    reply = world.ask(checkpoint=named)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "index_changed")
    assert world.charged == 0


@pytest.mark.slow
def test_outside_its_windows_an_attested_tenant_is_not_answered(
    world: World, retrieve: Callable[..., Any]
) -> None:
    world.service.now = CLAIM.window
    reply = retrieve(world.keys[0])
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "no_log")
    world.service.now = 0.0
    world.begin()  # a server that was not given the window
    reply = retrieve(world.keys[0])
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "no_log")
    assert world.charged == 0
    gone = world.service.send("/v1/log/checkpoint", key=world.keys[0])
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "no_log")
    world.service.now = CLAIM.window  # the next window was never committed to
    assert retrieve(world.keys[0]).status_code == 200


def test_other_tenants_of_the_server_are_served_as_ever(
    world: World, retrieve: Callable[..., Any]
) -> None:
    [key] = make_tenant(world.store, "plain", 1, claim=SMALL)
    assert set(retrieve(key).json()) == {"object", "ids", "window", "sequence"}


def test_windows_follow_one_another_under_one_server(world: World) -> None:
    following = world.policy(window="acme-1", accounts_most=2)
    assert world.commit(following, "W1") == {"acme": 1}
    world.begin("W", "W1")
    assert record_of(world.ask())[1].window == "acme-0"
    world.service.now = CLAIM.window
    reply = world.ask()
    assert (reply.json()["window"], record_of(reply)[1].window) == (1, "acme-1")


def test_a_window_is_bound_once_and_only_before_its_first_answer(world: World) -> None:
    assert world.taken == {"acme": 0}
    opened = world.window.ledger.opened

    def take(promised: WindowPolicy, number: int | None = None) -> dict[str, int]:
        editions = read_contents(world.store, promised).editions
        return take_windows(world.store, promised, opened, editions, number, now=0.0)

    for number, said in ((0, "has begun or has a log"), (-1, "is over")):
        with pytest.raises(InputError, match=said):
            take(world.policy(window="again"), number)
    with pytest.raises(InputError, match="has had a window acme-0 before"):
        take(world.promised)
    assert world.policy().window == "acme-1"
    assert take(world.policy(window="again"), 7) == {"acme": 7}
    keys = make_tenant(world.store, "late", 1, claim=CLAIM)
    world.service.send("/v1/retrieval", {"query": "door"}, keys[0])  # in window 0, without a log
    path = world.folder / "late.toml"
    path.write_text(policy_text(world.store, "late"))
    late = read_policy(path)
    assert late.window == "late-1"
    assert take(late) == {"late": 1}
    editions = read_contents(world.store, late).editions
    add_documents(world.store, "late", marked("more", 1))
    with pytest.raises(InputError, match="were added while"):
        take_windows(world.store, late, opened, editions, now=0.0)


def test_a_policy_that_the_database_does_not_keep_is_refused(world: World) -> None:
    create_tenant(world.store, "grid", replace(CLAIM, scale=None))
    with pytest.raises(InputError, match="drops bits of the scores"):
        policy_text(world.store, "grid")
    create_tenant(world.store, "empty", CLAIM)
    path = world.folder / "empty.toml"
    path.write_text(policy_text(world.store, "empty"))
    with pytest.raises(InputError, match="Nothing was ever added"):
        read_contents(world.store, read_policy(path))
    with pytest.raises(InputError, match="another number of queries"):
        read_contents(world.store, replace(world.promised, queries=2))
    mechanism = replace(world.promised.tenants["acme"], variance=1 << 27)
    with pytest.raises(InputError, match="another mechanism"):
        read_contents(world.store, replace(world.promised, tenants={"acme": mechanism}))
    with pytest.raises(InputError, match="not committed to out of this database"):
        held_windows(world.store, world.promised, "ab" * 32)


def test_a_server_refuses_windows_that_it_cannot_serve(world: World, tmp_path: Path) -> None:
    window = str(world.folder / "W")
    with pytest.raises(InputError, match="without its log's key"):
        Logs(world.store, [window], "")
    with pytest.raises(InputError, match="a second time"):
        Logs(world.store, [window, window], str(world.folder / "log.key"))
    with pytest.raises(InputError, match="cannot be read"):
        Logs(world.store, [str(tmp_path / "none")], str(world.folder / "log.key"))
    world.open(world.promised, "twin")  # the same policy, another log
    with pytest.raises(InputError, match="not committed to out of this database"):
        Logs(world.store, [str(world.folder / "twin")], str(world.folder / "log.key"))


def test_the_policy_of_a_tenant_gives_its_mechanism_again(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    for epsilon, sampler in ((1.0, "exact"), (30.0, "table")):
        name = f"t.{sampler}"
        claim = replace(CLAIM, epsilon=epsilon, queries=2)
        made = create_tenant(store, name, claim)
        for i in range(3):
            add_account(store, name, f"a{i}")
        path.write_text(policy_text(store, name))
        found = read_policy(path)
        assert found.tenants[name] == made.mechanism
        assert made.mechanism.sampler == sampler
        told = (found.window, found.queries, found.accounts_most, found.k_max, found.epsilon)
        assert told == (f"{name}-0", 2, 3, 2, epsilon)
