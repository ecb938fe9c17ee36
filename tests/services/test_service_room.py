"""PostgreSQL without room: what is not stored is not answered, and nothing stored is forgotten.

The system refuses to let files grow beyond a size, as a full disk or a quota does; the write-ahead
log of 16 MB segments has room in the first test and none in the second.
"""

import time

import numpy as np
import pytest
from sqlalchemy import text

from ragwitness.core.types import Document
from ragwitness.privacy.release import quantise
from ragwitness.service.documents import add_documents
from ragwitness.service.meters import ChargeRequest, Reserver
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, StoreGoneError, open_store
from ragwitness.service.tenants import add_account, budget_of, create_tenant
from tests.support.postgres import Cluster
from tests.support.service import authenticate

pytestmark = pytest.mark.slow

_ROOM = 17 << 20
CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=4000,
    accounts=2,
    capacity=32,
    top=3,
    embedder="hashing:64",
)


def _tenant(store: Store, name: str, claim: Claim) -> ChargeRequest:
    create_tenant(store, name, claim)
    add_documents(store, name, [Document(f"d{at}", f"{name} holds {at}.") for at in range(5)])
    who = authenticate(store, f"Bearer {add_account(store, name, 'a')}")
    assert who is not None
    vector = quantise(np.arange(64) - 31.0, who.policy.mechanism)
    return ChargeRequest(who.tenant, who.account, who.payer, who.policy, 0, vector)


def _fill(store: Store) -> None:
    """Grow the table of charges until it nearly has the size that no file may pass."""
    more = text(
        "INSERT INTO charges SELECT 999999, :at, g, decode(repeat('ab', 128), 'hex')"
        " FROM generate_series(1, :n) AS g"
    )
    size = text("SELECT pg_relation_size('charges')")
    with store.writing() as connection:
        at = 0
        while (left := _ROOM - 16_384 - connection.execute(size).scalar_one()) > 0:
            connection.execute(more, {"at": at, "n": max(20, left // 250)})
            at += 1


def _until_it_fails(reserver: Reserver, ask: ChargeRequest) -> int:
    for answered in range(250):
        try:
            reserver.reserve(ask).result()
        except StoreGoneError:
            return answered
    raise AssertionError("there was always room")


def test_a_disk_without_room_for_a_charge_charges_nothing(cluster: Cluster) -> None:
    store = open_store(cluster.url)
    ask = _tenant(store, "room", CLAIM)
    _fill(store)
    store.close()
    # Connections made from here on have the limit, which they get from the first process.
    cluster.bound_files(_ROOM)
    reserver = Reserver(store)
    try:
        answered = _until_it_fails(reserver, ask)
        with pytest.raises(StoreGoneError, match="extend file"):  # and again, not only once
            reserver.reserve(ask).result()
    finally:
        cluster.bound_files(None)
    assert 0 < answered < 250
    assert budget_of(store, "room").queries == answered
    # With room again it goes on.
    store.close()
    reserver.reserve(ask).result()
    reserver.close()
    assert budget_of(store, "room").queries == answered + 1
    with store.writing() as connection:
        connection.execute(text("TRUNCATE charges"))
    store.close()


def test_a_write_ahead_log_without_room_stops_everything_and_forgets_nothing(
    cluster: Cluster,
) -> None:
    store = open_store(cluster.url)
    ask = _tenant(store, "log", CLAIM)
    reserver = Reserver(store)
    for _ in range(30):
        reserver.reserve(ask).result()
    with store.reading() as connection:
        pids = connection.execute(text("SELECT pid FROM pg_stat_activity")).scalars().all()
    cluster.bound_files(0, *pids)
    # PostgreSQL itself gives up, and recovers with new processes that have room.
    answered = 30 + _until_it_fails(reserver, ask)
    deadline = time.monotonic() + 60
    while True:
        try:
            reserver.reserve(ask).result()
            break
        except StoreGoneError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    reserver.close()
    # The commit that failed may have reached the log: then it is spent.
    assert answered + 1 <= budget_of(store, "log").queries <= answered + 2
    store.close()
