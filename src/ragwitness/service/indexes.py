"""Indexes of tenants in memory: read from the database once per edition, each alone."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from ragwitness.privacy.mechanism import Mechanism, SlotIndex
from ragwitness.service.schema import documents, tenants
from ragwitness.service.store import Store

__all__ = ["Indexes", "index_rows", "texts_of"]

_LARGEST = 2 << 30
"""Bytes of all indexes together; those used longest ago go first."""


class Indexes:
    """The indexes of one process; safe across threads.

    Args:
        store: Where the documents are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: OrderedDict[int, tuple[int, SlotIndex]] = OrderedDict()
        self._loading: dict[int, threading.Lock] = {}

    def get(self, tenant: int, edition: int, mechanism: Mechanism) -> SlotIndex:
        """Return a tenant's index, of this edition or a later one.

        Args:
            tenant: Row of the tenant; nobody else's rows are read.
            edition: The least that will do.
            mechanism: Of the tenant.

        Raises:
            StoreGoneError: The database failed.
        """
        with self._lock:
            loading = self._loading.setdefault(tenant, threading.Lock())
        with loading:  # the others of this tenant wait instead of reading it as well
            with self._lock:
                held = self._held.get(tenant)
                if held is not None and held[0] >= edition:
                    self._held.move_to_end(tenant)
                    return held[1]
            found, index = self._read(tenant, mechanism)
            with self._lock:
                self._held[tenant] = (found, index)
                self._held.move_to_end(tenant)
                self._shrink()
            return index

    def _read(self, tenant: int, mechanism: Mechanism) -> tuple[int, SlotIndex]:
        edition, rows = index_rows(self._store, tenant, mechanism)
        return edition, SlotIndex(rows, mechanism)

    def _shrink(self) -> None:
        while len(self._held) > 1 and sum(map(_size, self._held.values())) > _LARGEST:
            self._held.popitem(last=False)


def index_rows(store: Store, tenant: int, mechanism: Mechanism) -> tuple[int, NDArray[np.int16]]:
    """Return a tenant's edition and integer vectors, shape (capacity, dimension).

    Raises:
        StoreGoneError: The database failed.
    """
    with store.reading(frozen=True) as connection:
        edition = connection.execute(
            select(tenants.c.edition).where(tenants.c.id == tenant)
        ).scalar_one()
        found = connection.execute(
            select(documents.c.slot, documents.c.vector).where(documents.c.tenant == tenant)
        ).all()
    rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    for row in found:
        rows[row.slot] = np.frombuffer(row.vector, "<i2")
    return edition, rows


def texts_of(store: Store, tenant: int, slots: tuple[int, ...]) -> list[str]:
    """Return the texts in some slots of a tenant's index, in that order; empty slots have none.

    Raises:
        StoreGoneError: The database failed.
    """
    query = select(documents.c.slot, documents.c.text).where(
        documents.c.tenant == tenant, documents.c.slot.in_(slots)
    )
    with store.reading() as connection:
        found = {row.slot: row.text for row in connection.execute(query)}
    return [found[slot] for slot in slots if slot in found]


def _size(held: tuple[int, SlotIndex]) -> int:
    slots, dimension = held[1].shape
    return 4 * slots * dimension
