"""Operators and queries at once on PostgreSQL: locks in one order, and what an erasure leaves."""

import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.types import Document
from ragwitness.privacy.release import quantise
from ragwitness.service.documents import add_documents
from ragwitness.service.meters import ChargeRequest, Meters
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, open_store
from ragwitness.service.tenants import (
    add_account,
    budget_of,
    create_tenant,
    erase_tenant,
    list_tenants,
)
from tests.support.postgres import Cluster, find_postgres
from tests.support.service import authenticate

pytestmark = pytest.mark.slow

CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=5000,
    accounts=2,
    capacity=256,
    top=3,
    embedder="hashing:64",
    window=60,
)


def _tenant(store: Store, name: str) -> ChargeRequest:
    create_tenant(store, name, CLAIM)
    add_documents(store, name, [Document("d", f"What {name} alone holds.")])
    who = authenticate(store, f"Bearer {add_account(store, name, 'a')}")
    assert who is not None
    vector = quantise(np.arange(64) - 31.0, who.policy.mechanism)
    return ChargeRequest(who.tenant, who.account, who.payer, who.policy, 0, vector)


def _together(*jobs) -> list[BaseException]:
    """Run jobs at once; return what failed."""
    failed: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job) -> None:
        start.wait()
        try:
            job()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return failed


def test_operators_and_charges_deadlock_with_nobody(cluster: Cluster) -> None:
    """Two operators add the same texts while both tenants are asked, windows opening."""
    store = open_store(cluster.url)
    asks = [_tenant(store, name) for name in ("one", "two")]
    stop = threading.Event()

    def query() -> None:
        for window in range(10_000):
            if stop.is_set():
                return
            with store.writing() as connection:
                Meters().charge(connection, [ChargeRequest(
                    ask.tenant, ask.account, ask.payer, ask.policy, window, ask.vector
                ) for ask in asks])  # fmt: skip

    def operate(name: str) -> None:
        for at in range(12):
            add_documents(store, name, [Document(f"{name}{at}", f"Both hold text number {at}.")])

    def operators() -> None:
        try:
            assert _together(lambda: operate("one"), lambda: operate("two")) == []
        finally:
            stop.set()

    assert _together(operators, query) == []
    assert [row.documents for row in list_tenants(store)] == [13, 13]
    store.close()


def test_an_erased_tenant_s_texts_are_in_no_file_of_a_table(cluster: Cluster) -> None:
    store = open_store(cluster.url)
    _tenant(store, "gone")
    _tenant(store, "stays")
    secret = "xylophone-quartz-" * 4
    add_documents(store, "gone", [Document(f"s{at}", f"{secret} {at}") for at in range(40)])
    programs = find_postgres()
    assert programs is not None

    def holds() -> bool:
        subprocess.run(
            [programs / "psql", "-q", cluster.url, "-c", "CHECKPOINT"], check=True,
            capture_output=True,
        )  # fmt: skip
        files = [path for path in Path(cluster.folder / "data/base").rglob("*") if path.is_file()]
        return any(secret.encode() in path.read_bytes() for path in files)

    assert holds()
    erase_tenant(store, "gone")
    assert not holds()
    assert budget_of(store, "stays").queries == 0
    store.close()
