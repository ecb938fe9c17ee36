"""Indexes of tenants in memory: read from the database once per edition, each alone."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, select, tuple_

from ragwitness.privacy.codes import Codes, Placement
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex
from ragwitness.service.store import Store
from ragwitness.service.tables import documents, placements, tenants

_LARGEST = 2 << 30
"""Bytes of all indexes together; those used longest ago go first."""

_TOGETHER = 4096  # documents read at a time


class Indexes:
    """The indexes of one process; safe across threads.

    Args:
        store: Where the documents are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: OrderedDict[int, tuple[int, SlotIndex | Codes]] = OrderedDict()
        self._loading: dict[int, threading.Lock] = {}

    def held(self, tenant: int, edition: int) -> SlotIndex | Codes | None:
        """Return a tenant's index where it is in memory; reads nothing and waits for nobody.

        Args:
            tenant: Row of the tenant.
            edition: The least that will do.
        """
        with self._lock:
            # A later edition holds all documents of an earlier one: it serves both.
            held = self._held.get(tenant)
            if held is None or held[0] < edition:
                return None
            self._held.move_to_end(tenant)
            return held[1]

    def get(self, tenant: int, edition: int, finder: Mechanism | Placement) -> SlotIndex | Codes:
        """Return a tenant's index, of this edition or a later one.

        Args:
            tenant: Row of the tenant; nobody else's rows are read.
            edition: The least that will do.
            finder: What answers the tenant's queries.

        Returns:
            Vectors to be scored, or, where documents are placed, the group of each slot.

        Raises:
            StoreGoneError: The database failed.
        """
        with self._lock:
            loading = self._loading.setdefault(tenant, threading.Lock())
        with loading:  # the others of this tenant wait instead of reading it as well
            held = self.held(tenant, edition)
            if held is not None:
                return held
            index: SlotIndex | Codes
            if isinstance(finder, Placement):
                found, index = placed_codes(self._store, tenant)
            else:
                found, rows = index_rows(self._store, tenant, finder)
                index = SlotIndex(rows, finder)
            with self._lock:
                # Kept for the next query; the least recently used of all tenants go first.
                self._held[tenant] = (found, index)
                self._held.move_to_end(tenant)
                sizes = [4 * math.prod(one.shape) for _, one in self._held.values()]
                while len(sizes) > 1 and sum(sizes) > _LARGEST:
                    self._held.popitem(last=False)
                    sizes.pop(0)
            return index


def index_rows(store: Store, tenant: int, mechanism: Mechanism) -> tuple[int, NDArray[np.int16]]:
    """Return a tenant's edition and integer vectors, shape (capacity, dimension).

    Raises:
        StoreGoneError: The database failed.
    """
    # Empty slots are zero vectors and are scored like the others: the number of documents in the
    # index is as private as their content.
    rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    # Edition and rows of one moment: a document added in between would be served under an edition
    # that does not have it.
    with store.reading(frozen=True) as connection:
        edition: int = connection.execute(
            select(tenants.c.edition).where(tenants.c.id == tenant)
        ).scalar_one()
        wanted = select(documents.c.slot, documents.c.vector).where(documents.c.tenant == tenant)
        found = connection.execute(wanted.execution_options(yield_per=_TOGETHER))
        for together in found.partitions():
            vectors = np.frombuffer(b"".join(row.vector for row in together), "<i2")
            rows[[row.slot for row in together]] = vectors.reshape(len(together), -1)
    return edition, rows


def placed_codes(store: Store, tenant: int) -> tuple[int, Codes]:
    """Return a tenant's edition and the group of each slot, shape (capacity,).

    Raises:
        StoreGoneError: The database failed.
    """
    query = select(tenants.c.edition, placements.c.codes).where(tenants.c.id == tenant)
    with store.reading() as connection:
        row = connection.execute(query.join(placements)).one()
    return row.edition, np.frombuffer(row.codes, "<i4")


_SHOWN = select(documents.c.tenant, documents.c.slot, documents.c.name, documents.c.text).where(
    tuple_(documents.c.tenant, documents.c.slot).in_(bindparam("places", expanding=True))
)


def documents_at(store: Store, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Any]:
    """Return slot, id and text of the documents at some places; none of an empty one.

    Args:
        store: The database.
        places: Row of the tenant, and slot.

    Raises:
        StoreGoneError: The database failed.
    """
    with store.reading() as connection:
        return {
            (row.tenant, row.slot): {"slot": row.slot, "id": row.name, "text": row.text}
            for row in connection.execute(_SHOWN, {"places": [*places]})
        }
