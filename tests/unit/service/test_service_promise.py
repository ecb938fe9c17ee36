"""Epsilon from below over a document's life: editions, replacements, removals and returns.

The promise compares two contents of one document's slots. The auditor knows everything else, and
which slots they are. He sees the group of those slots in every edition, which is all that any
question can show. What holds only for one edition fails here: another draw at each replacement, or
another one after a removal.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from ragwitness.core.types import Document
from ragwitness.privacy.codes import Placement
from ragwitness.service import store as store_module
from ragwitness.service.documents import add_documents, placed_slots, remove_documents
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, open_store
from ragwitness.service.tables import contents, documents, tenants
from ragwitness.service.tenants import create_tenant
from ragwitness.stats.rates import proportion_interval

EPSILON = 1.0
CLAIM = Claim(epsilon=EPSILON, capacity=8, top=1)
_CONFIDENCE = 0.99


def group_of(store: Store, tenant: str) -> int:
    with store.reading() as connection:
        number = connection.execute(select(tenants.c.id).where(tenants.c.name == tenant)).scalar()
        here = (documents.c.tenant == number, documents.c.name == "target")
        slot = connection.execute(select(documents.c.slot).where(*here)).scalar()
    _, index = placed_slots(store, int(number or 0))
    return dict(zip(index.slots.tolist(), index.codes.tolist(), strict=True))[slot]


def life(store: Store, tenant: str, words: str, forget: bool) -> list[int]:
    """Groups of the target's slot, edition by edition."""
    others = [Document(f"other{at}", f"visit of person{at}") for at in range(3)]
    add_documents(store, tenant, [*others, Document("target", words)])
    seen = [group_of(store, tenant)]
    for at in range(20 if forget else 5):
        if forget:  # the mutant: what is replaced is drawn anew
            with store.writing() as connection:
                connection.execute(delete(contents).where(contents.c.name == "target"))
        add_documents(store, tenant, [Document("target", f"{at} {words}")], replace=True)
        seen.append(group_of(store, tenant))
    remove_documents(store, tenant, ["target", "other1"])
    add_documents(store, tenant, [Document("target", words), Document("new", "a new visit")])
    return [*seen, group_of(store, tenant)]


def epsilon_from_below(hits: tuple[int, int], worlds: int) -> float:
    """The largest epsilon that counts of an event refute, each out of so many worlds."""
    low, _ = proportion_interval(hits[0], worlds, _CONFIDENCE)
    _, high = proportion_interval(hits[1], worlds, _CONFIDENCE)
    return math.log(low / high) if low else 0.0


def audit(path: Path, worlds: int, *, forget: bool) -> float:
    """The best bound over the thresholds of a score; two worlds that differ in the target alone."""
    placement = Placement.of(CLAIM.capacity, CLAIM.top, EPSILON)
    assert (placement.groups, placement.near) == (8, 3)

    def word(group: int) -> str:
        return next(f"w{at}" for at in range(999) if placement.groups_of([f"w{at}"])[0] == group)

    # Two contents whose near groups are apart, which tells most.
    texts = [" ".join(word(group) for group in groups) for groups in ((0, 1, 2), (3, 4, 5))]
    store, scores = open_store(str(path), create=True), []
    for world, text in enumerate(texts):
        names = [f"w{world}-{at}" for at in range(worlds)]
        create_tenant(store, names[0], CLAIM, *names[1:])
        lives = [life(store, name, text, forget) for name in names]
        scores.append([sum((group < 3) - (2 < group < 6) for group in seen) for seen in lives])
    store.close()
    return max(
        epsilon_from_below(
            (sum(s >= cut for s in scores[0]), sum(s >= cut for s in scores[1])), worlds
        )
        for cut in range(-7, 8)
    )


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits wait for no disk: thousands are made."""
    prepare = store_module._prepare_sqlite

    def fast(connection: Any, record: object) -> None:
        prepare(connection, record)
        connection.execute("PRAGMA synchronous=OFF")

    monkeypatch.setattr(store_module, "_prepare_sqlite", fast)


@pytest.mark.parametrize("worlds", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_a_life_of_changes_refutes_no_more_than_was_promised(tmp_path: Path, worlds: int) -> None:
    assert audit(tmp_path / "s.db", worlds, forget=False) <= EPSILON


@pytest.mark.slow
def test_the_audit_finds_a_service_that_draws_again(tmp_path: Path) -> None:
    assert audit(tmp_path / "s.db", 40, forget=True) > EPSILON
