"""An account that signs, against the service in this process and against one that lies."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragwitness.attest.receipts import Receipt
from ragwitness.core.errors import TargetResponseError, VerificationError
from ragwitness.crypto.keys import KeyKind, PrivateKey, read_key
from ragwitness.crypto.records import SignedQueryRecord, decode
from ragwitness.service.signer import KEY_HEADER, Signer
from tests.unit.service.conftest import Service, service, store  # noqa: F401  # fixtures
from tests.unit.service.test_service_attested import World

ANN = PrivateKey("account", KeyKind.NOTE, bytes([11]) * 32)


@pytest.fixture
def world(
    service: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.setattr("ragwitness.service.tenants.time.time", lambda: 0.0)
    monkeypatch.setattr("ragwitness.service.window.time.time", lambda: 0.0)
    return World(service, tmp_path, monkeypatch)


class Wire:
    """Sends as ``Client`` does; what passes can be seen, lost and changed."""

    def __init__(self, world: World, account: int = 0) -> None:
        self.world, self.account = world, account
        self.sent: list[dict[str, Any]] = []
        self.bend: Callable[[bool, int, dict[str, Any]], tuple[int, dict[str, Any]]] | None = None

    def __call__(
        self, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, Any]]:
        key = self.world.keys[self.account]
        if body is None:
            reply = self.world.service.send("/v1/log/checkpoint", key=key, headers=headers)
        else:
            self.sent.append(dict(body))
            reply = self.world.service.send("/v1/retrieval", body, key)
        told = (reply.status_code, reply.json())
        return told if self.bend is None else self.bend(body is None, *told)


def records(world: World) -> list[SignedQueryRecord]:
    found = [decode(entry) for entry in world.window.ledger.entries()]
    return [one for one in found if isinstance(one, SignedQueryRecord)]


def test_every_query_is_signed_and_its_receipt_kept(world: World, tmp_path: Path) -> None:
    wire, kept = Wire(world), tmp_path / "receipts"
    signer = Signer(tmp_path / "ann.key", kept)
    for query in ("the code of door 3", "the code of door 5"):
        status, told = signer.ask(query, wire)
        assert (status, len(told["ids"])) == (200, 2)
    assert [record.sequence for record in records(world)] == ["0", "1"]
    held = world.window.ledger.accounts["acme", "a0"]
    assert held.key == read_key(tmp_path / "ann.key").public.material
    assert [path.name for path in sorted(kept.iterdir())] == [
        "acme-0.000000.json", "acme-0.000001.json",
    ]  # fmt: skip
    receipt = Receipt.parse((kept / "acme-0.000001.json").read_bytes())
    assert decode(receipt.entry) == records(world)[1]
    # A program that is started again goes on at the next number.
    assert Signer(tmp_path / "ann.key", kept).ask("a third", wire)[1]["sequence"] == 2
    assert world.charged == 3


def test_nobody_asks_in_the_name_of_an_account_with_a_key(world: World) -> None:
    """Not even with the account's API key: the operator has that, too."""
    wire = Wire(world)
    Signer(ANN).ask("mine", wire)
    reply = world.ask(nonce="invented")
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "log_refused")
    assert "is not signed" in reply.json()["error"]["message"]
    forged = {"sequence": 1, "blinding": "00" * 32, "signature": "11" * 64}
    assert "did not sign" in world.ask(nonce="invented", **forged).json()["error"]["message"]
    del forged["blinding"]
    reply = world.ask(nonce="invented", **forged)
    assert "Give sequence, blinding and signature" in reply.json()["error"]["message"]
    stale = forged | {"blinding": "00" * 32, "sequence": 7}
    reply = world.ask(nonce="invented", **stale)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "log_sequence")
    assert world.charged == 1
    assert len(world.window.ledger.queries) == 1


def test_a_request_that_was_lost_is_sent_again_as_it_was(world: World) -> None:
    """So a service that dislikes a noise cannot have another signature for the same number."""
    wire = Wire(world)
    signer = Signer(ANN)
    signer.ask("first", wire)

    def lost(place: bool, status: int, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return (status, told) if place else (503, {"error": {"message": "try again"}})

    wire.bend = lost
    assert signer.ask("second", wire)[0] == 503
    assert signer.ask("third", wire)[0] == 503  # the second first
    assert wire.sent[1] == wire.sent[2]
    wire.bend = None
    status, told = signer.ask("third", wire)
    assert (status, told["sequence"]) == (200, 2)
    assert wire.sent[3] == wire.sent[1]
    assert [one["query"] for one in wire.sent] == ["first", "second", "second", "second", "third"]
    assert [one["sequence"] for one in wire.sent] == [0, 1, 1, 1, 2]


def test_two_programs_with_one_key_take_turns(world: World) -> None:
    wire, one, other = Wire(world), Signer(ANN), Signer(ANN)
    assert one.ask("first", wire)[1]["sequence"] == 0
    assert other.ask("second", wire)[1]["sequence"] == 1
    assert one.ask("third", wire)[1]["sequence"] == 2  # its number was taken: it learns the next


def test_a_service_that_forgets_a_number_gets_no_second_signature(
    world: World, tmp_path: Path
) -> None:
    wire = Wire(world)
    Signer(ANN, tmp_path / "r").ask("first", wire)

    def back(place: bool, status: int, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return (status, told | {"sequence": 0}) if place else (status, told)

    wire.bend = back
    with pytest.raises(TargetResponseError, match="receipts of 1"):
        Signer(ANN, tmp_path / "r").ask("second", wire)
    assert len(wire.sent) == 1


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda told: told["admission"].update(index=0), "log."),
        (lambda told: told["admission"].update(path=[]), "log."),
        (lambda told: told.update(account="a1"), "admit.account"),
        (lambda told: told.update(window="acme-1"), "admit.account"),
        (lambda told: told.update(checkpoint=f"3 {'A' * 43}="), "log.inclusion"),
    ],
)
def test_a_place_that_is_not_the_accounts_own(
    world: World, change: Callable[[dict[str, Any]], None], check: str
) -> None:
    wire = Wire(world)

    def bent(place: bool, status: int, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if place:
            change(told)
        return status, told

    wire.bend = bent
    with pytest.raises(VerificationError) as found:
        Signer(ANN).ask("first", wire)
    assert found.value.check.startswith(check)
    assert not wire.sent  # nothing was signed


def test_a_log_that_has_another_key_for_the_account(world: World) -> None:
    """The provider's own, or none: the account sees it before it signs anything."""
    wire = Wire(world)
    status, told = wire(None, {KEY_HEADER: ANN.public.material.hex()})
    assert status == 200
    wire.bend = lambda place, *_: (200, json.loads(json.dumps(told)))
    with pytest.raises(VerificationError, match="with another's") as found:
        Signer(PrivateKey("account", KeyKind.NOTE, bytes([13]) * 32)).ask("first", wire)
    assert found.value.check == "admit.key"
    wire.bend = None
    with pytest.raises(TargetResponseError, match="with another key"):
        Signer(PrivateKey("account", KeyKind.NOTE, bytes([13]) * 32)).ask("first", wire)
    with pytest.raises(TargetResponseError, match="Another account of this window has this key"):
        Signer(ANN).ask("first", Wire(world, 1))


@pytest.mark.parametrize("key", ["01" + "00" * 31, "02" + "00" * 31])
def test_a_key_that_is_none_is_refused_by_the_service(world: World, key: str) -> None:
    status, told = Wire(world)(None, {KEY_HEADER: key})
    assert (status, told["error"]["code"]) == (400, "log_refused")
    for wrong in (key[:-2], key.upper() + "A", "zz" * 32):
        assert "lower-case hex" in Wire(world)(None, {KEY_HEADER: wrong})[1]["error"]["message"]


def test_a_receipt_of_something_else(world: World) -> None:
    wire, signer = Wire(world), Signer(ANN)
    first = signer.ask("first", wire)[1]

    def swapped(place: bool, status: int, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return (status, told) if place else (status, told | {"receipt": first["receipt"]})

    wire.bend = swapped
    with pytest.raises(VerificationError) as found:
        signer.ask("second", wire)
    assert found.value.check == "receipt.request"
    wire.bend = lambda place, status, told: (status, told | {"ids": [0, 1]})
    with pytest.raises(VerificationError):
        signer.ask("second", wire)


def test_a_place_of_another_form(world: World) -> None:
    wire = Wire(world)
    for told in ({}, {"window": 1}, {"admission": []}):
        wire.bend = lambda *_, said=told: (200, said)
        with pytest.raises(TargetResponseError, match="is none"):
            Signer(ANN).ask("first", wire)
    wire.bend = lambda *_: (500, {})
    with pytest.raises(TargetResponseError, match="gives no place"):
        Signer(ANN).ask("first", wire)


def test_a_refusal_wins_no_second_signature_under_its_number(world: World) -> None:
    """The opponent refuses what it does not like, and hopes for another nonce under the number."""
    wire, signer = Wire(world), Signer(ANN)
    liked: list[int] = []

    def refuse(place: bool, status: int, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if place or liked:
            return (status, told | {"sequence": 0}) if place else (status, told)
        return 400, {"error": {"code": "invalid_query", "message": "No."}}

    wire.bend = refuse
    assert signer.ask("first", wire)[0] == 400
    for query in ("second", "first"):
        with pytest.raises(TargetResponseError, match="refused what was signed under number 0"):
            signer.ask(query, wire)
    assert len(wire.sent) == 1


def test_a_number_that_was_used_up_is_no_refusal(world: World) -> None:
    """Another program with the key took it: the log has a record under it, and goes on."""
    wire, one, two = Wire(world), Signer(ANN), Signer(ANN)
    assert one.ask("first", wire)[0] == 200
    assert two.ask("second", wire)[0] == 200
    assert one.ask("third", wire)[0] == 200
    assert [int(record.sequence) for record in records(world)] == [0, 1, 2]
