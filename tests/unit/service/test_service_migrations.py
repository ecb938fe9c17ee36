"""Databases of versions before, as they were written then: schema5.sql is a dump of one."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import select

from ragwitness.core.types import Document
from ragwitness.service.documents import add_documents, remove_documents
from ragwitness.service.meters import ChargeRequest, Meters, Refused, Reserved, used_for_life
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store, open_store
from ragwitness.service.tables import STEPS, contents, documents, tenants, version_of
from ragwitness.service.tenants import budget_of, list_tenants
from tests.support.service import authenticate
from tests.unit.service.test_service_lifetime import vector_for

DUMP = (Path(__file__).parent / "schema5.sql").read_text()

# What version 2 (ragwitness 0.1.0) did not have yet; version 5 is that of 0.2.0.
BACK = {
    5: (),
    2: (
        "DROP TABLE lives",
        "DROP TABLE contents",
        "ALTER TABLE tenants DROP COLUMN life",
        "ALTER TABLE windows DROP COLUMN granted",
        "ALTER TABLE windows DROP COLUMN final",
        # No tenant had budgets of single texts, nor a meter named in its policy.
        """UPDATE tenants SET policy = replace(policy, '"meter": "index", ', '')""",
        """UPDATE tenants SET policy = replace(policy, '"meter": "documents", ', '')""",
    ),
}
KEY = "rw_247796a41f665eaa_dSeAucfz2yH4aCRQgxq0pd916tmI0bHWaCTESm5E2VM"
OTHER = "rw_2fa0a3c21c2619b2_JbcusDSK9Sv2u_aCa6wSRZkTxIqbQ3kP36Xoq6q1dZM"


def old(folder: Path, version: int) -> Store:
    path = folder / f"{version}.db"
    connection = sqlite3.connect(path)
    connection.executescript(DUMP)
    for statement in BACK[version]:
        connection.execute(statement)
    connection.execute("UPDATE schema_version SET number = ?", (version,))
    connection.commit()
    connection.close()
    return open_store(str(path))


def ask(store: Store, key: str, window: int, count: int) -> list[Reserved | Refused]:
    who = authenticate(store, f"Bearer {key}")
    assert who is not None
    request = ChargeRequest(
        who.tenant, who.account, who.payer, who.policy, window, vector_for(who, 16)
    )
    with store.writing() as connection:
        return Meters().charge(connection, [request] * count)


@pytest.mark.parametrize("version", sorted(BACK))
def test_every_version_before_opens_with_documents_keys_and_meters(
    tmp_path: Path, version: int
) -> None:
    store = old(tmp_path, version)
    with store.reading() as connection:
        assert version_of(connection) == len(STEPS)
        rows = {row.name: row for row in connection.execute(select(tenants))}
        held = {
            (row.name, row.part)
            for row in connection.execute(
                select(documents).where(documents.c.tenant == rows["one"].id)
            )
        }
        known = connection.execute(select(contents.c.name).where(contents.c.tenant == 1))
        names = ["long#0", "long#1", "long#2", "page#0", "page#1", "shared"]
        assert sorted(known.scalars()) == names
        policy = TenantPolicy.from_json(rows["one"].policy)
        used = used_for_life(connection, 1, policy)
    # 1. Each part of a document is a document now.
    assert held == {(name, 0) for name in names}
    assert remove_documents(store, "one", ["long#0", "long#1", "long#2"]) == 3
    assert remove_documents(store, "one", ["page#0"]) == 1
    assert [row.documents for row in list_tenants(store)] == [2, 1, 6]
    # 2. What was spent stays spent: the window that is over by what it spent, the one under way
    #    as granted, and what another tenant spent of a budget that both shared.
    assert used >= policy.budget**2
    assert rows["one"].used == pytest.approx(rows["two"].used)
    assert (rows["one"].used > 0) == (version > 2)
    found = budget_of(store, "one", now=1_000_003_700)
    assert (found.window, found.queries) == (1, 1)
    assert sum(isinstance(one, Reserved) for one in ask(store, KEY, 1, 3)) == 3
    add_documents(store, "one", [Document("new", "Now something new.")])
    store.close()


def test_budgets_of_single_texts_end_and_count_as_spent(tmp_path: Path) -> None:
    store = old(tmp_path, 5)
    # The window that was under way answers no more; the next ones spend what is left for life.
    [refused] = ask(store, OTHER, 1, 1)
    assert isinstance(refused, Refused)
    assert refused.by == "index"
    assert isinstance(ask(store, OTHER, 2, 1)[0], Reserved)
    with store.reading() as connection:
        row = connection.execute(select(tenants).where(tenants.c.name == "texts")).one()
        policy = TenantPolicy.from_json(row.policy)
        assert "meter" not in json.loads(row.policy)["claim"]
        assert row.used == pytest.approx(2 * policy.budget**2)
        assert math.sqrt(used_for_life(connection, row.id, policy)) < policy.life
    store.close()
