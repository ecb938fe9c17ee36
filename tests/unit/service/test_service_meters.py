import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event, func, select, update

from ragwitness.core.errors import InputError
from ragwitness.privacy.release import quantise
from ragwitness.service import meters as meters_module
from ragwitness.service.meters import (
    ChargeRequest,
    Meters,
    Reserver,
    SpentError,
    window_of,
)
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, StoreGoneError, open_store
from ragwitness.service.tables import charges, spent, windows
from ragwitness.service.tenants import budget_of, revoke
from tests.support.service import SMALL, authenticate, make_tenant


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = open_store(str(tmp_path / "s.db"), create=True)
    yield store
    store.close()


def asks_of(
    store: Store, keys: list[str], count: int, window: int = 0, aligned: bool = False, seed: int = 0
) -> list[ChargeRequest]:
    rng = np.random.default_rng(seed)
    same = rng.normal(size=64)
    principals = [authenticate(store, f"Bearer {key}") for key in keys]
    made = []
    for i in range(count):
        who = principals[i % len(keys)]
        assert who is not None
        vector = quantise(same if aligned else rng.normal(size=64), who.policy.mechanism)
        made.append(ChargeRequest(who.tenant, who.account, who.payer, who.policy, window, vector))
    return made


def mu_of(asks: list[ChargeRequest]) -> float:
    """The odometer by brute force: 2 sqrt(largest eigenvalue of sum v v^T) / sigma."""
    rows = np.array([ask.vector for ask in asks], float) / 4096
    terms = asks[0].policy.terms
    largest = float(np.linalg.eigvalsh(rows.T @ rows)[-1])
    spectral = 2 * largest**0.5 + terms.grid * len(asks) ** 0.5
    return min(spectral / terms.sigma, terms.worst_mu(len(asks)))


def charge(store: Store, meters: Meters, asks: list[ChargeRequest]) -> list[str]:
    with store.writing() as connection:
        return meters.charge(connection, asks)


def stored(store: Store, table: Any) -> int:
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def test_account_meter_admits_exactly_its_queries(store: Store) -> None:
    [key] = make_tenant(store, "t", accounts=1)
    outcomes = charge(store, Meters(), asks_of(store, [key], 25))
    assert outcomes == [""] * 20 + ["account"] * 5
    assert budget_of(store, "t").queries == 20


def test_payer_meter_binds_all_its_accounts(store: Store) -> None:
    claim = Claim(
        mechanism="noise",
        epsilon=1.0,
        queries=20,
        payer_queries=30,
        accounts=4,
        capacity=32,
        top=3,
        embedder="hashing:64",
    )
    keys = make_tenant(store, "t", accounts=3, payers=1, claim=claim)
    outcomes = charge(store, Meters(), asks_of(store, keys, 60))
    assert Counter(outcomes) == {"": 30, "payer": 30}
    rows = budget_of(store, "t").accounts
    assert [row.queries for row in rows] == [10, 10, 10]
    assert {row.payer_queries for row in rows} == {30}


def test_index_meter_refuses_before_its_budget_is_passed(store: Store) -> None:
    claim = Claim(
        mechanism="noise",
        epsilon=1.0,
        queries=100,
        accounts=1,
        capacity=32,
        top=3,
        embedder="hashing:64",
        joint_epsilon=0.5,
    )
    keys = make_tenant(store, "t", accounts=3, claim=claim)
    asks = asks_of(store, keys, 150, aligned=True)
    outcomes = charge(store, Meters(), asks)
    paid = [ask for ask, one in zip(asks, outcomes, strict=True) if not one]
    assert {*outcomes} == {"", "index"}
    policy = asks[0].policy
    # The same query over and over: mu is that of the worst case, sqrt(n) S / sigma.
    fits = max(n for n in range(200) if policy.terms.worst_mu(n) <= policy.budget)
    assert len(paid) in (fits, fits + 1)  # vectors are a little shorter than the worst
    found = budget_of(store, "t")
    assert found.mu == pytest.approx(mu_of(paid), rel=1e-6)
    assert found.mu <= policy.budget
    assert found.epsilon <= 0.5


def test_two_processes_share_one_meter(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters_module, "_FOLD", 7)
    keys = make_tenant(store, "t", accounts=4)
    asks = asks_of(store, keys, 60)
    one, other, alone = Meters(), Meters(), Meters()
    outcomes = []
    for i in range(0, 60, 3):  # each learns what the other has charged, folded or not
        outcomes += charge(store, one if i % 2 else other, asks[i : i + 3])
    assert all(not outcome for outcome in outcomes)
    assert stored(store, charges) < 7
    make_tenant(store, "u", accounts=4)
    again = asks_of(store, keys, 60)
    assert budget_of(store, "t").queries == 60
    fresh = open_store(store.name.removeprefix("sqlite:///"))
    charge(fresh, alone, again[:1])
    fresh.close()
    assert budget_of(store, "t").mu == pytest.approx(mu_of([*asks, again[0]]), rel=1e-6)


def test_races_of_several_reservers_overspend_nothing(store: Store) -> None:
    keys = make_tenant(store, "t", accounts=3)
    asks = asks_of(store, keys, 150)
    reservers = [Reserver(store) for _ in range(4)]

    futures = [reservers[i % 4].reserve(ask) for i, ask in enumerate(asks)]
    refused = [future.exception() for future in futures]
    for reserver in reservers:
        reserver.close()
    paid = Counter(ask.account for ask, error in zip(asks, refused, strict=True) if error is None)
    assert [*paid.values()] == [20] * 3
    assert {type(error) for error in refused} == {type(None), SpentError}
    assert budget_of(store, "t").queries == 60


_CHARGING = """
import sys
import numpy as np
from ragwitness.service.meters import ChargeRequest
from ragwitness.service.principals import confirm, key_owners, split_key
from ragwitness.service.meters import Reserver
from ragwitness.service.store import open_store

store = open_store(sys.argv[1])
key_id, secret = split_key(f"Bearer {sys.argv[2]}")
who = confirm(secret, key_owners(store, [key_id])[key_id])
reserver, rng = Reserver(store), np.random.default_rng(0)

for number in range(10_000):
    vector = rng.integers(-300, 300, 64).astype(np.int16)
    ask = ChargeRequest(who.tenant, who.account, who.payer, who.policy, 0, vector)
    reserver.reserve(ask).result()
    print(number, flush=True)
"""


@pytest.mark.slow
def test_kill_9_loses_no_charge_that_was_confirmed(store: Store) -> None:
    claim = Claim(
        mechanism="noise",
        queries=10**4,
        accounts=1,
        capacity=32,
        top=3,
        embedder="hashing:64",
        epsilon=9.0,
    )
    [key] = make_tenant(store, "t", accounts=1, claim=claim)
    database = store.name.removeprefix("sqlite:///")
    command = [sys.executable, "-c", _CHARGING, database, key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        confirmed = [int(process.stdout.readline()) for _ in range(25)]
        process.kill()
        confirmed += [int(line) for line in process.stdout]
    assert confirmed == list(range(len(confirmed)))
    kept = budget_of(store, "t").queries
    assert kept in (len(confirmed), len(confirmed) + 1)
    assert charge(store, Meters(), asks_of(store, [key], 1)) == [""]
    assert budget_of(store, "t").queries == kept + 1


def test_a_failed_transaction_charges_nothing_and_is_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = make_tenant(store, "t")
    asks = asks_of(store, keys, 12)
    reserver = Reserver(store)
    reserver.reserve(asks[0]).result()
    write = meters_module._append

    def fail(*_: Any) -> None:
        raise StoreGoneError("gone")

    monkeypatch.setattr(meters_module, "_append", fail)
    with pytest.raises(StoreGoneError):
        reserver.reserve(asks[1]).result()
    assert budget_of(store, "t").queries == 1
    monkeypatch.setattr(meters_module, "_append", write)
    reserver.reserve(asks[2]).result()
    reserver.close()
    assert budget_of(store, "t").mu == pytest.approx(mu_of([asks[0], asks[2]]), rel=1e-6)


def test_what_cannot_be_read_of_one_tenant_fails_that_tenant_alone(store: Store) -> None:
    bad, good = (asks_of(store, make_tenant(store, name), 6) for name in ("bad", "good"))
    reserver = Reserver(store)
    reserver.reserve(bad[0]).result()
    with store.writing() as connection:
        damaged = update(windows).where(windows.c.tenant == bad[0].tenant)
        connection.execute(damaged.values(state=b"damaged", folded=1))
    reserver._meters.forget()

    asks = [ask for pair in zip(bad[1:], good[1:], strict=True) for ask in pair]
    outcomes = [future.exception() for future in map(reserver.reserve, asks)]
    reserver.close()
    assert all(isinstance(one, InputError) for one in outcomes[::2])
    assert all(not one for one in outcomes[1::2])
    assert budget_of(store, "good").queries == 5


def test_a_locked_database_gives_an_error_and_charges_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragwitness.service.store._PATIENCE", 0.2)
    keys = make_tenant(store, "t")
    [ask] = asks_of(store, keys, 1)
    impatient = open_store(store.name.removeprefix("sqlite:///"))
    reserver = Reserver(impatient)
    with store.writing(), pytest.raises(StoreGoneError, match="locked"):
        reserver.reserve(ask).result()
    assert budget_of(store, "t").queries == 0
    reserver.reserve(ask).result()
    reserver.close()
    impatient.close()


def test_windows_begin_anew_and_are_added_up(store: Store) -> None:
    [key] = make_tenant(store, "t", accounts=1)
    meters = Meters()
    first = charge(store, meters, asks_of(store, [key], 21))
    second = charge(store, meters, asks_of(store, [key], 21, window=1))
    for outcomes in (first, second):
        assert [not one for one in outcomes] == [True] * 20 + [False]
    spent = budget_of(store, "t")
    assert spent.life_epsilon > spent.epsilon
    assert stored(store, windows) == 2


def test_a_new_window_leaves_no_vector_of_the_one_before(store: Store) -> None:
    [key] = make_tenant(store, "t", accounts=1)
    asks, other = asks_of(store, [key], 7), asks_of(store, [key], 3, window=1)
    ahead, behind = Meters(), Meters()
    charge(store, behind, asks[:2])
    charge(store, ahead, asks[2:5])
    charge(store, ahead, other)
    assert stored(store, charges) == 3
    assert budget_of(store, "t", now=0).mu == pytest.approx(mu_of(asks[:5]), rel=1e-6)
    # A clock that is set back finds the old window as it was left, whatever a worker remembers.
    late = charge(store, behind, asks[5:6]) + charge(store, ahead, asks[6:])
    assert late == ["", ""]
    assert budget_of(store, "t", now=0).mu == pytest.approx(mu_of(asks), rel=1e-6)


def test_a_revoked_account_is_refused_inside_the_transaction(store: Store) -> None:
    keys = make_tenant(store, "t")
    asks = asks_of(store, keys, 2)
    revoke(store, "t", "a0")
    outcomes = charge(store, Meters(), asks)
    assert outcomes == ["key", ""]
    assert stored(store, spent) == 2  # the other's two meters


def test_tenants_do_not_share_meters(store: Store) -> None:
    mine, theirs = make_tenant(store, "t", accounts=1), make_tenant(store, "u", accounts=1)
    mixed = [
        ask
        for pair in zip(asks_of(store, mine, 10), asks_of(store, theirs, 10), strict=True)
        for ask in pair
    ]
    outcomes = charge(store, Meters(), mixed)
    assert all(not one for one in outcomes)
    assert [budget_of(store, name).queries for name in "tu"] == [10, 10]


def test_threads_that_give_up_are_not_charged(store: Store) -> None:
    keys = make_tenant(store, "t")
    [ask] = asks_of(store, keys, 1)
    reserver = Reserver(store)
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing():
            held.set()
            go.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    first = reserver.reserve(ask)  # waits for the lock
    time.sleep(0.1)
    reserver.reserve(ask).cancel()
    go.set()
    first.result()
    holder.join()
    reserver.close()
    assert budget_of(store, "t").queries == 1


def test_window_numbers() -> None:
    assert window_of(1000, 60, 1000) == (0, 60)
    assert window_of(1000, 60, 1059.9) == (0, 1)
    assert window_of(1000, 60, 1060) == (1, 60)
    assert window_of(1000, 60, 10) == (0, 60)  # a clock that was set back reopens nothing
    assert SMALL.window == 30 * 86_400


def test_a_full_disk_charges_nothing_that_it_does_not_store(store: Store) -> None:
    """Queries until the database has no page left, then room again."""
    keys = make_tenant(store, "t", claim=replace(SMALL, queries=2000, joint_epsilon=None))
    asks = asks_of(store, keys, 400)
    limit = [0]

    def bound(connection: Any, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2 if limit[0] else 1 << 30}")

    event.listen(store._engine, "connect", bound)
    limit[0] = 1
    store.close()  # connections made from here on have the limit
    reserver = Reserver(store)
    answered, why = 0, ""
    while not why:
        try:
            reserver.reserve(asks[answered]).result()
            answered += 1
        except StoreGoneError as error:
            why = str(error)
    assert "full" in why
    assert budget_of(store, "t").queries == answered < 400
    with pytest.raises(StoreGoneError, match="full"):  # and again, not only once
        reserver.reserve(asks[-1]).result()
    limit[0] = 0
    store.close()
    reserver.reserve(asks[answered]).result()
    reserver.close()
    assert budget_of(store, "t").queries == answered + 1
    assert budget_of(store, "t").mu == pytest.approx(mu_of(asks[: answered + 1]), rel=1e-6)
