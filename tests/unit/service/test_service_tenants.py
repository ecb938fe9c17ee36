import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.embedders import HashingEmbedder
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.release import quantise
from ragwitness.service.documents import add_documents
from ragwitness.service.meters import ChargeRequest, Meters, used_for_life
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, StoreGoneError, open_store
from ragwitness.service.tables import accounts, documents, tenants
from ragwitness.service.tenants import (
    add_account,
    add_accounts,
    budget_of,
    count_as_spent,
    create_tenant,
    list_tenants,
    revoke,
    rotate_key,
)
from tests.support.service import SMALL, authenticate, make_tenant, marked


@pytest.fixture
def tenant(store: Store) -> Store:
    create_tenant(store, "t", SMALL)
    return store


def rows(store: Store) -> list[Any]:
    with store.reading() as connection:
        return list(connection.execute(select(documents).order_by(documents.c.slot)))


def test_documents_fill_free_slots_by_lot(tenant: Store) -> None:
    """One document less must not move the others: that would differ in all slots after it."""
    assert add_documents(tenant, "t", marked("t", 12)) == 12
    before = {row.name: row.slot for row in rows(tenant)}
    assert add_documents(tenant, "t", [Document("last", "one more of them")]) == 1
    after = {row.name: row for row in rows(tenant)}
    assert before == {name: after[name].slot for name in before}
    slots = [row.slot for row in after.values()]
    assert len(set(slots)) == 13
    assert set(slots) <= set(range(32))
    drawn = [before[f"t-{i}"] for i in range(12)]
    assert drawn != sorted(drawn)  # by chance once in 12!
    vector = np.frombuffer(after["last"].vector, "<i2").astype(int)
    expected = HashingEmbedder(64).embed(["one more of them"])[0]
    assert vector @ vector <= 4096**2
    assert vector @ expected / np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], "no document"),
        ([Document("a", "x"), Document("a", "y")], "a document 'a' already"),
        ([Document("t-0", "x")], "a document 't-0' already"),
        ([Document("w", "word " * 401)], "'w' has 401 words; a slot takes 400"),
        ([Document("z", "!!! ...")], "gives the document 'z' no usable vector"),
        ([Document(str(i), f"x{i}") for i in range(31)], "31 documents do not fit: 30 of 32"),
    ],
)
def test_unusable_documents_add_nothing(tenant: Store, given: list[Document], shown: str) -> None:
    add_documents(tenant, "t", marked("t", 2))
    with pytest.raises(InputError, match=shown):
        add_documents(tenant, "t", given)
    assert len(rows(tenant)) == 2


def test_long_documents_are_split_on_request(tenant: Store) -> None:
    long = Document("long", " ".join(f"word{i}" for i in range(450)))
    assert add_documents(tenant, "t", [long], split=True) == 3
    found = rows(tenant)
    texts = {(row.name, row.part): row.text for row in found}
    assert sorted(texts) == [("long", 0), ("long", 1), ("long", 2)]
    assert texts["long", 1].split()[0] == "word180"


class Broken:
    name = "broken"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), 64), np.nan, np.float32)


def test_an_embedder_that_fails_is_named_with_the_document(tenant: Store) -> None:
    with pytest.raises(InputError, match="'t-0' no usable vector"):
        add_documents(tenant, "t", marked("t"), embedder=Broken())
    assert rows(tenant) == []


def test_names_are_checked_and_unique(tenant: Store) -> None:
    add_account(tenant, "t", "alice")
    refused = [
        (lambda: create_tenant(tenant, "t", SMALL), "a tenant 't' already"),
        (lambda: create_tenant(tenant, "../t", SMALL), "The tenant's name '../t' cannot"),
        (lambda: add_account(tenant, "t", "alice"), "an account 'alice' already"),
        (lambda: add_account(tenant, "t", "a b"), "The account's name 'a b' cannot"),
        (lambda: add_account(tenant, "t", "y", "p;"), "The payer's name 'p;' cannot"),
        (lambda: add_account(tenant, "u", "x"), "no tenant 'u'"),
        (lambda: revoke(tenant, "t", "bob"), "no account 'bob'"),
        (lambda: rotate_key(tenant, "t", "bob"), "no account 'bob'"),
        (lambda: budget_of(tenant, "u"), "no tenant 'u'"),
        (lambda: add_documents(tenant, "u", marked("u")), "no tenant 'u'"),
    ]
    for call, shown in refused:
        with pytest.raises(InputError, match=shown):
            call()


def test_several_names_are_all_made_or_none(tenant: Store) -> None:
    """A key is shown once: none may be made and then lost behind a name that is refused."""
    for names in (["a", "b", "a"], ["a", "b c"]):
        with pytest.raises(InputError):
            add_accounts(tenant, "t", names)
        with pytest.raises(InputError):
            create_tenant(tenant, names[0], SMALL, *names[1:])
    assert [(row.name, row.accounts) for row in list_tenants(tenant)] == [("t", 0)]
    create_tenant(tenant, "u", SMALL, "v")
    keys = add_accounts(tenant, "t", ["a", "b"])
    who = [authenticate(tenant, f"Bearer {key}") for key in keys]
    assert [one and one.account_name for one in who] == ["a", "b"]
    assert [row.name for row in list_tenants(tenant)] == ["t", "u", "v"]


def test_payers_are_shared(tenant: Store) -> None:
    for name, payer in [("a", "p"), ("b", None), ("c", "p")]:
        add_account(tenant, "t", name, payer)
    with tenant.reading() as connection:
        found = connection.execute(select(accounts).order_by(accounts.c.name)).all()
    assert found[0].payer == found[2].payer != found[1].payer


def test_keys_are_not_in_the_database_and_can_be_changed(tenant: Store) -> None:
    old = add_account(tenant, "t", "a")
    with tenant.reading() as connection:
        row = connection.execute(select(accounts)).one()
    secret = old.split("_", 2)[2]
    assert not any(secret in str(value) or secret.encode() == value for value in row)
    new = rotate_key(tenant, "t", "a")
    assert authenticate(tenant, f"Bearer {old}") is None
    assert authenticate(tenant, f"Bearer {new}") is not None
    revoke(tenant, "t", "a")
    assert authenticate(tenant, f"Bearer {new}") is None


def test_the_list_counts_what_is_there(store: Store) -> None:
    make_tenant(store, "t", accounts=3)
    revoke(store, "t", "a0")
    create_tenant(store, "b", SMALL)
    found = list_tenants(store)
    assert [(row.name, row.documents, row.accounts) for row in found] == [("b", 0, 0), ("t", 12, 2)]


def test_hashed_vectors_follow_words_not_their_case_or_marks() -> None:
    one, same, other, none = HashingEmbedder(256).embed(
        ["The red door.", "the RED door", "an open gate", "…"]
    )
    assert one @ same == pytest.approx(1)
    assert abs(float(one @ other)) < 0.4
    assert not none.any()
    assert HashingEmbedder(256).name == "hashing:256"


@pytest.mark.parametrize("spec", ["hashing:x", "hashing:8", "hashing:", "hashing:99999", "nothing"])
def test_unknown_embedders_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match=r"hashing|[Hh]ashed|no embedder") as raised:
        load_embedder(spec)
    assert "hashing:" in raised.value.hint


def test_a_copy_is_whole_and_says_when_it_was_restored(store: Store, tmp_path: Path) -> None:
    """The opponent: ask, copy, ask more, restore, and ask again what was asked already."""
    [key] = make_tenant(store, "t", accounts=1, claim=replace(SMALL, joint_epsilon=None))
    create_tenant(store, "placed", Claim(capacity=8, embedder="hashing:64"))
    who = authenticate(store, f"Bearer {key}")
    assert who is not None

    def ask(held: Store, window: int, count: int) -> list[str]:
        vector = quantise(np.arange(64) + 1.0, who.policy.mechanism)
        one = ChargeRequest(who.tenant, who.account, who.payer, who.policy, window, vector)
        with held.writing() as connection:
            return Meters().charge(connection, [one] * count)

    assert sum(not one for one in ask(store, 0, 12)) == 12
    with closing(sqlite3.connect(tmp_path / "service.db")) as database:
        database.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    ask(store, 0, 8)
    copy = open_store(str(tmp_path / "copy.db"))
    with copy.reading() as connection:
        row = connection.execute(select(tenants).where(tenants.c.name == "t")).one()
    # Two windows later: what was open, and what may have been open since, is spent in full.
    later = row.created + 2 * who.policy.claim.window + 5
    assert count_as_spent(copy, now=later) == {"t": 3, "placed": 0}
    assert all(one == "index" for one in ask(copy, 2, 3))
    with copy.reading() as connection:
        used = used_for_life(connection, row.id, who.policy)
    assert used == pytest.approx(3 * who.policy.budget**2)
    assert len(rows(copy)) == 12
    assert ask(copy, 3, 1) == [""]  # the next window has what is left
    copy.close()


def test_a_database_that_takes_nothing_is_not_well(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.check()
    monkeypatch.setattr(
        "ragwitness.service.store._prepare_sqlite",
        lambda made, _record: made.execute("PRAGMA query_only=ON"),
    )
    full = open_store(str(tmp_path / "service.db"))
    with pytest.raises(StoreGoneError, match="readonly"):
        full.check()
    full.close()
