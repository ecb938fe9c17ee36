"""A window from the provider's side: what is answered is logged, whatever happens in between."""

import stat
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.commit import Contents, open_window
from ragwitness.attest.commitments import (
    CommittedEmbedder,
    IndexCard,
    checkpoint_token,
    index_commitment,
    parse_token,
)
from ragwitness.attest.policy import WindowPolicy
from ragwitness.attest.prove import close_window
from ragwitness.attest.receipts import check_receipt
from ragwitness.attest.window import Window
from ragwitness.attest.window_log import window_key
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.merkle import verify_seed
from ragwitness.crypto.notes import Signers, open_checkpoint
from ragwitness.crypto.records import (
    AdmitRecord,
    OpenRecord,
    QueryRecord,
    decode,
    record_hash,
)
from ragwitness.privacy.release import SlotIndex, release
from ragwitness.privacy.streams import NoiseRecord, record_key
from tests.support.windows import DIGEST, KEY, ask, contents, policy, stand_in, window

SIGNERS = Signers((KEY.public,))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    return window(tmp_path, monkeypatch)


def _records(held: Window) -> list[QueryRecord]:
    held.ledger.refresh()
    return [r for r in map(decode, held.ledger.entries()) if isinstance(r, QueryRecord)]


def test_the_opening_commits_to_what_lies_in_the_folder(held: Window):
    opened, public = held.ledger.opened, held.public
    assert isinstance(opened, OpenRecord)
    assert opened.policy == sha256((public / "policy.json").read_bytes()).hexdigest()
    assert (
        opened.embedder
        == CommittedEmbedder.parse((public / "embedder.json").read_bytes()).commitment
    )
    assert [one.tenant for one in opened.indexes] == ["archive", "clinic"]
    for place, one in enumerate(opened.indexes):
        here = public / "tenants" / str(place)
        card = IndexCard.parse((here / "index.json").read_bytes())
        assert one.commitment == index_commitment(card.encode())
        assert card.columns == sha256((here / "columns.bin").read_bytes()).hexdigest()
        assert card.norms == sha256((here / "norms.bin").read_bytes()).hexdigest()
        assert one.mechanism == held.policy.tenants[one.tenant].digest
    signed = open_checkpoint((public / "open.checkpoint").read_bytes(), SIGNERS).checkpoint
    assert (signed.size, signed.root) == (1, held.ledger.log.root(1))
    assert int(opened.seed_count) == held.policy.seed_count
    for number in (0, 11):
        verify_seed(bytes.fromhex(opened.seed_root), 12, number, *held.seed_opening(number))


def test_secrets_are_the_owners_alone_and_no_public_file_holds_one(held: Window):
    secret = held.folder.secret
    assert stat.S_IMODE(secret.stat().st_mode) == 0o700
    seed = held.folder.seed.read_bytes()
    public = b"".join(p.read_bytes() for p in held.public.rglob("*") if p.is_file())
    assert seed not in public
    assert seed.hex().encode() not in public
    rows = held.rows("clinic")
    assert rows.any()
    assert rows.tobytes() not in public


def test_an_answer_is_the_mechanisms_with_the_noise_of_the_committed_seed(held: Window):
    request = ask(held)
    found = held.record(request)
    [record] = _records(held)
    mechanism = held.policy.tenants["clinic"]
    key = record_key(
        held.seed_opening(int(record.number))[0],
        NoiseRecord(
            window=record.window,
            tenant=record.tenant,
            account=record.account,
            sequence=int(record.sequence),
            nonce=record.nonce,
            checkpoint=record.checkpoint,
            query=DIGEST,
            mechanism=record.mechanism,
        ),
    )
    rows = held.rows("clinic")
    again = release(request.vector, SlotIndex(rows, mechanism), key, mechanism)
    assert found.ids == again.ids
    assert held.kept(0).opened.ids == again.ids
    assert check_receipt(found.receipt, SIGNERS)[0] == record


def test_places_sequences_numbers_and_the_chain(held: Window):
    assert (held.admit("clinic", "a"), held.admit("archive", "a"), held.admit("clinic", "b")) == (
        0,
        1,
        2,
    )
    assert held.admit("archive", "a") == 1  # keeps it
    asked = [("clinic", "b"), ("clinic", "a"), ("clinic", "b"), ("archive", "a"), ("clinic", "b")]
    for i, (tenant, account) in enumerate(asked):
        held.record(ask(held, account, tenant, nonce=str(i)))
    records = _records(held)
    assert [(r.tenant, r.account) for r in records] == asked
    assert [int(r.sequence) for r in records] == [0, 0, 1, 0, 2]
    assert [int(r.number) for r in records] == [6, 0, 7, 3, 8]
    zeros = "00" * 32
    hashes = [record_hash(r).hex() for r in records]
    assert [r.prior for r in records] == [zeros, zeros, hashes[0], zeros, hashes[2]]
    places = [
        int(r.place) for r in map(decode, held.ledger.entries()) if isinstance(r, AdmitRecord)
    ]
    assert places == [0, 1, 2]


def test_the_same_request_gets_the_same_answer_and_another_with_its_nonce_none(held: Window):
    request = ask(held)
    first, size = held.record(request), held.ledger.log.size
    again = held.record(request)
    assert again.ids == first.ids
    assert again.receipt.entry == first.receipt.entry
    assert held.ledger.log.size == size
    for change in ({"query": "ab" * 32}, {"vector": np.ones(8, int)}):
        with pytest.raises(InputError, match="nonce for another query"):
            held.record(ask(held, checkpoint=request.checkpoint, **change))
    assert held.ledger.log.size == size
    held.record(ask(held, "b"))  # the same nonce of another account is its own


def test_what_the_policy_does_not_allow_is_refused_and_not_logged(held: Window):
    good = ask(held)
    size = held.ledger.log.size
    wrong = [
        ({"tenant": "other"}, "no tenant"),
        ({"account": "stranger"}, "not admitted"),
        ({"query": DIGEST.upper()}, "not a SHA-256"),
        ({"text": "another text"}, "another SHA-256"),
        ({"text": "\ud800"}, "surrogate"),
        ({"nonce": ""}, "asks for a nonce"),
        ({"nonce": "\u00e4"}, "printable ASCII"),
        ({"vector": np.full(8, 60)}, "longer than"),
        ({"vector": np.ones(7, int)}, "dimension"),
        ({"vector": np.ones(8)}, "integer vectors"),
        ({"vector": np.ones((2, 8), int)}, "one vector"),
        ({"checkpoint": ""}, "names no checkpoint"),
        ({"checkpoint": checkpoint_token(99, bytes(32))}, "not a checkpoint of this log"),
        ({"checkpoint": checkpoint_token(size, bytes(32))}, "not a checkpoint of this log"),
        # Before the account had its place, which could still be chosen then:
        ({"checkpoint": checkpoint_token(1, held.ledger.log.root(1))}, "was admitted"),
    ]
    for change, said in wrong:
        fields = {name: getattr(good, name) for name in good.__slots__} | change
        with pytest.raises(InputError) as found:
            held.record(type(good)(**fields))
        assert said in found.value.message, (change, found.value.message)
    assert held.ledger.log.size == size


def test_an_account_asks_at_most_its_queries_and_places_run_out(held: Window):
    for i in range(3):
        held.record(ask(held, nonce=str(i)))
    with pytest.raises(InputError, match="asked all its 3"):
        held.record(ask(held, nonce="3"))
    for name in "bcd":
        held.admit("clinic", name)
    with pytest.raises(InputError, match="places of the window are taken"):
        held.admit("clinic", "e")
    with pytest.raises(InputError, match="no tenant"):
        held.admit("other", "e")
    with pytest.raises(InputError, match="places of"):
        held.admit("clinic", "x" * 300)


def test_without_required_nonces_a_query_may_have_none(tmp_path, monkeypatch):
    held = window(tmp_path, monkeypatch, policy(nonces_required=False))
    first, second = (held.record(ask(held, nonce="")) for _ in range(2))
    assert first.receipt.entry != second.receipt.entry


def test_a_closed_window_takes_nothing_more(held: Window):
    held.record(ask(held))
    request = ask(held, nonce="later")
    close_window(held)
    for call in (
        lambda: held.record(request),
        lambda: held.admit("clinic", "b"),
        lambda: held.logged(request),
    ):
        with pytest.raises(InputError, match="closed"):
            call()
    assert check_receipt(held.receipt(0), SIGNERS)[0] == _records(held)[0]


def test_a_request_can_be_checked_before_it_is_paid_for(held: Window):
    request = ask(held)
    size = held.ledger.log.size
    assert held.logged(request) is None
    assert held.ledger.log.size == size
    found = held.record(request)
    again = held.logged(request)
    assert again is not None
    assert (again.ids, again.receipt.entry) == (found.ids, found.receipt.entry)
    with pytest.raises(InputError, match="this nonce for another query"):
        held.logged(ask(held, query="ab" * 32))
    with pytest.raises(InputError, match="not admitted"):
        held.logged(replace(request, account="nobody"))


def test_two_holders_of_one_window_see_each_others_records(held: Window):
    other = Window.load(held.folder.root, [KEY])
    for i in range(3):
        (held, other)[i % 2].record(ask((other, held)[i % 2], nonce=str(i)))
    assert [int(r.sequence) for r in _records(other)] == [0, 1, 2]
    assert other.checkpoint == held.checkpoint
    with pytest.raises(InputError, match="asked all"):
        other.record(ask(other, nonce="9"))


def test_one_key_signs_each_window_under_a_name_of_its_own(tmp_path: Path, monkeypatch):
    own = window_key(KEY, "2026-W47")
    assert own.name == "example.org/log/2026-W47"
    assert window_key(own, "2026-W47") == own
    assert own.public.material == KEY.public.material
    held = window(tmp_path, monkeypatch, keys=(own,))
    again = Window.load(held.folder.root, [KEY])  # finds the name by itself
    assert again.keys == (own,)
    receipt = again.record(ask(again)).receipt
    assert check_receipt(receipt, Signers((own.public,)))[2].checkpoint.origin == own.name


def test_opening_is_whole_or_not_at_all(tmp_path: Path, monkeypatch):
    given = policy()
    stand_in(monkeypatch)
    by = CommittedEmbedder.of({"weights": DIGEST})

    def opened(held=None, keys=(KEY,), named=given):
        held = contents(given) if held is None else held
        open_window(tmp_path / "w", named, held, by, keys)

    long = contents(given)
    long["clinic"] = Contents(np.full((16, 8), 60, np.int16), [DIGEST] * 16)
    few = contents(given)
    few["clinic"] = Contents(few["clinic"].rows, [DIGEST])
    for case, said in (
        (lambda: opened(long), "longer than"),
        (lambda: opened(few), "16 rows and 1"),
        (lambda: opened({}), "no index"),
        (lambda: opened(keys=()), "without the log's key"),
    ):
        with pytest.raises(InputError, match=said):
            case()
        assert not list(tmp_path.iterdir())
    opened()
    with pytest.raises(InputError, match="opened once"):
        opened()


def test_tokens_are_one_text_each():
    token = checkpoint_token(12, bytes(32))
    assert parse_token(token, "record.checkpoint") == (12, bytes(32))
    for wrong in ("", "12", "012 " + token[3:], token + "=", token[:-1], "-1 " + token[3:]):
        with pytest.raises(VerificationError) as found:
            parse_token(wrong, "record.checkpoint")
        assert found.value.check == "record.checkpoint"


def test_the_policy_in_the_folder_is_the_one_that_was_given(held: Window):
    assert WindowPolicy.parse((held.public / "policy.json").read_bytes()) == policy()
