"""A budget for life: over windows, tenants with the same texts, restarts, and clocks set back."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select, text, update

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.release import SlotIndex, quantise
from ragwitness.service.documents import Indexes, add_documents, remove_documents
from ragwitness.service.meters import ChargeRequest, Meters
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.principals import Principal
from ragwitness.service.store import Store, open_store
from ragwitness.service.tables import tenants, windows
from ragwitness.service.tenants import add_account, budget_of, create_tenant, erase_tenant
from tests.support.service import authenticate

CLAIM = Claim(mechanism="noise", epsilon=1.0,
    queries=40, accounts=2, capacity=32, top=3, embedder="hashing:64", window=60, joint_epsilon=1.5,
    lifetime_epsilon=3.0,
)  # fmt: skip
TEXTS = [f"Record {at}: the code of door {at} is {at * 7}." for at in range(6)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "s.db"), create=True)
    yield opened
    opened.close()


def tenant(store: Store, name: str, texts: list[str], claim: Claim = CLAIM) -> str:
    create_tenant(store, name, claim)
    add_documents(store, name, [Document(f"d{at}", one) for at, one in enumerate(texts)])
    return add_account(store, name, "a")


def vector_for(who: Principal, dimension: int) -> NDArray[np.int16]:
    """One direction, asked again and again."""
    return quantise(np.arange(dimension) - dimension / 2 + 1.0, who.policy.mechanism)


def ask(store: Store, key: str, window: int, count: int = 40) -> list[str]:
    """Ask one thing again and again, which spends fastest, by a process that remembers nothing."""
    who = authenticate(store, f"Bearer {key}")
    assert who is not None
    vector = vector_for(who, 64)
    asks = [ChargeRequest(who.tenant, who.account, who.payer, who.policy, window, vector)] * count
    with store.writing() as connection:
        return Meters().charge(connection, asks)


def paid(outcomes: list[str]) -> int:
    return sum(not one for one in outcomes)


def brute_mu(per_window: list[int]) -> float:
    """Repeating one query q times in a window moves a score by 2 each: mu adds up in squares."""
    terms = make_policy(CLAIM, 64).terms
    return math.sqrt(sum(terms.worst_mu(one) ** 2 for one in per_window if one))


@pytest.mark.slow
def test_an_hour_of_windows_never_passes_the_lifetime_epsilon(store: Store) -> None:
    key = tenant(store, "t", TEXTS)
    counts = [paid(ask(store, key, window)) for window in range(60)]
    assert counts[0] > 0
    assert counts[-1] == 0  # spent for good; the account's own meter has room
    assert ask(store, key, 60, 1) == ["index"]
    spent = brute_mu(counts)
    assert epsilon_at(CLAIM.joint_delta, spent) <= 3.0
    # ... and it is not refused long before: windows after the first few spend what is left.
    assert epsilon_at(CLAIM.joint_delta, spent) > 0.8 * 3.0
    told = budget_of(store, "t", now=0)
    assert told.life_epsilon <= told.lifetime_epsilon == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize(("rest", "granted"), [(2.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_a_window_is_granted_no_more_than_the_rest_for_life(
    store: Store, rest: float, granted: float
) -> None:
    """``rest`` and ``granted`` are multiples of the budget of one window."""
    key = tenant(store, "t", TEXTS)
    policy = make_policy(CLAIM, 64)
    used = policy.life**2 - (rest * policy.budget) ** 2
    with store.writing() as connection:
        connection.execute(update(tenants).values(used=used))
    outcomes = ask(store, key, 0)
    with store.reading() as connection:
        row = connection.execute(select(windows)).one()
    assert row.granted == pytest.approx(granted * policy.budget, abs=1e-6)
    assert brute_mu([paid(outcomes)]) <= granted * policy.budget * (1 + 1e-9)
    assert outcomes[-1] == "index" or granted == 1.0


def test_a_clock_set_back_spends_no_budget_twice(store: Store) -> None:
    key = tenant(store, "t", TEXTS)
    counts = dict.fromkeys(range(5), 0)
    for window in (0, 1, 0, 2, 1, 4, 3, 0, 4, 2) * 3:
        counts[window] += paid(ask(store, key, window, 7))
    assert epsilon_at(CLAIM.joint_delta, brute_mu([*counts.values()])) <= 3.0


def test_a_window_that_closes_takes_no_charge_of_another_tenant(store: Store) -> None:
    first, second, third = (tenant(store, name, TEXTS) for name in ("first", "second", "third"))
    for key in (first, third):
        ask(store, key, 0, 5)
    before = [budget_of(store, name, now=0) for name in ("first", "third")]
    for window in (0, 1):
        ask(store, second, window, 5)
    assert [budget_of(store, name, now=0) for name in ("first", "third")] == before
    assert all(budget.mu > 0 for budget in before)


def test_a_lifetime_below_one_window_is_refused_and_the_default_is_twelve() -> None:
    with pytest.raises(InputError, match="below that of one window"):
        make_policy(
            Claim(mechanism="noise", epsilon=1.0, lifetime_epsilon=0.1, joint_epsilon=1.0), 64
        )
    with pytest.raises(InputError, match="lifetime_epsilon"):
        make_policy(Claim(mechanism="noise", epsilon=1.0, lifetime_epsilon=float("nan")), 64)
    policy = make_policy(Claim(mechanism="noise", epsilon=1.0, capacity=16), 64)
    assert policy.life == pytest.approx(math.sqrt(12) * policy.budget, rel=0.02)


def test_the_number_of_an_erased_tenant_is_never_given_again(store: Store) -> None:
    """A server that holds an erased tenant's index must not answer the next one by it."""
    held = Indexes(store)
    tenant(store, "one", TEXTS[:1])
    tenant(store, "two", TEXTS)
    rows = {}
    for name in ("two", "three", "four"):
        if name != "two":
            tenant(store, name, [f"Of {name} alone."])
        with store.reading() as connection:
            row = connection.execute(select(tenants).where(tenants.c.name == name)).one()
        rows[name] = row.id
        index = held.get(row.id, row.edition, TenantPolicy.from_json(row.policy).mechanism)
        assert isinstance(index, SlotIndex)
        filled = int((index.rows != 0).any(axis=1).sum())
        assert filled == (len(TEXTS) if name == "two" else 1)
        erase_tenant(store, name)
    assert len(set(rows.values())) == 3


def test_what_one_tenant_holds_and_spends_moves_nothing_of_another(store: Store) -> None:
    """The opponent: a tenant with the same texts, all its budget spent, then erased."""
    alone, beside = {}, {}
    small = replace(CLAIM, joint_epsilon=0.2, lifetime_epsilon=0.2, epsilon=0.2)
    for found, others in ((alone, ["Nobody else holds this."]), (beside, TEXTS)):
        key = tenant(store, "victim", TEXTS)
        other = tenant(store, "other", others, small)
        ask(store, other, 0)
        found["counts"] = [paid(ask(store, key, window)) for window in range(4)]
        found["budget"] = replace(budget_of(store, "victim", now=0), seconds_left=0)
        found["other"] = [paid(ask(store, other, window)) for window in range(4)]
        for name in ("victim", "other"):
            erase_tenant(store, name)
    assert alone == beside
    assert sum(alone["counts"]) > 0


def test_nothing_of_an_erased_tenant_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(str(path), create=True)
    key = tenant(store, "acme-clinic", TEXTS)
    kept = tenant(store, "other", ["Something else."])
    ask(store, key, 0)
    receipt = erase_tenant(store, "acme-clinic")
    assert receipt["rows"]["documents"] == len(TEXTS)
    assert authenticate(store, f"Bearer {key}") is None
    assert paid(ask(store, kept, 0, 1)) == 1
    store.close()
    held = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert b"code of door 3" not in held
    assert b"acme-clinic" not in held
    with pytest.raises(InputError, match="no tenant"):
        erase_tenant(open_store(str(path)), "acme-clinic")


def test_documents_are_removed_and_replaced_whole(store: Store) -> None:
    key = tenant(store, "t", TEXTS)
    before = authenticate(store, f"Bearer {key}")
    with pytest.raises(InputError, match="no document 'd9'"):
        remove_documents(store, "t", ["d1", "d9"])
    assert remove_documents(store, "t", ["d1", "d1", "d2"]) == 2
    after = authenticate(store, f"Bearer {key}")
    assert before is not None
    assert after is not None
    assert after.edition > before.edition  # every process reads the index anew
    with pytest.raises(InputError, match="'d3' already"):
        add_documents(store, "t", [Document("d3", "Another text.")])
    add_documents(store, "t", [Document("d3", "Another text.")], replace=True)
    with store.reading() as connection:
        held = dict(connection.execute(text("SELECT name, text FROM documents")).all())
    assert sorted(held) == ["d0", "d3", "d4", "d5"]
    assert held["d3"] == "Another text."
