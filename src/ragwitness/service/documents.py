"""Documents of a tenant: put into slots by its operator, held in memory as an index."""

from __future__ import annotations

import math
import random
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, tuple_, update

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.base import Embedder
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import Codes, Placement
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex, quantise
from ragwitness.privacy.sampler import system_bits
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store
from ragwitness.service.tables import contents, documents, tenants
from ragwitness.service.tenants import find_tenant

LONGEST_DOCUMENT = 400
"""Words of a document in one slot: a longer one has no clear vector and does not fit a prompt."""

_PASSAGE, _OVERLAP = 200, 20  # words of a part of a document, and those that two parts share
_BATCH = 256  # rows of a statement
_READ_TOGETHER = 4096  # documents
_LOTS = random.SystemRandom()
_SAME = and_(contents.c.tenant == documents.c.tenant, contents.c.name == documents.c.name)


def add_documents(
    store: Store,
    tenant: str,
    new: Sequence[Document],
    *,
    split: bool = False,
    replace: bool = False,
    embedder: Embedder | None = None,
) -> int:
    """Put documents into free slots of a tenant's index, drawn by lot; all of them or none.

    Args:
        store: The database.
        tenant: Name of the tenant.
        new: Documents with ids that are new to the tenant.
        split: Whether a document longer than :data:`LONGEST_DOCUMENT` words is cut into parts; each
            has its own slot. Noise covers one slot, a placement the whole document.
        replace: Whether a document replaces another one with its id, with all its parts.
        embedder: Used instead of loading the tenant's.

    Returns:
        Slots filled.

    Raises:
        InputError: No such tenant, a document is too long, has no vector or is there already, or
            the slots do not suffice.
    """
    with store.reading() as connection:
        policy = TenantPolicy.from_json(find_tenant(connection, tenant).policy)
    pieces = _pieces(new, split=split)
    # 1. Embedded and quantised before the lock is taken: a model may take minutes.
    vectors = [b""] * len(pieces)
    if policy.placement is None:
        embedder = embedder or load_embedder(policy.claim.embedder)
        vectors = _vectors(pieces, policy.mechanism, embedder)
    with store.writing() as connection:
        # 2. Under the tenant's lock: two operators never fill the same slot.
        row = find_tenant(connection, tenant, lock=True)
        if replace:
            _drop(connection, row.id, [document.id for document in new])
        slots = _free_slots(connection, row.id, policy.claim.capacity, pieces)
        # 3. One draw for each id, whatever its text becomes: the promise is for life.
        if policy.placement is not None:
            place_documents(connection, row.id, policy.placement, new)
            for some in _batches([document.id for document in new]):
                rows_of = and_(contents.c.tenant == row.id, contents.c.name.in_(some))
                again = {"version": contents.c.version + 1}
                connection.execute(update(contents).where(rows_of).values(**again))
        for some in _batches(range(len(pieces))):
            rows = [
                {"tenant": row.id, "slot": slots[at], "vector": vectors[at], **pieces[at]}
                for at in some
            ]
            connection.execute(insert(documents), rows)
        _publish(connection, row)
    return len(pieces)


def remove_documents(store: Store, tenant: str, names: Sequence[str]) -> int:
    """Take documents out of a tenant's index, each with all its parts; all of them or none.

    Their slots are empty from the next query on, and may be filled again. Earlier answers may have
    revealed them, so no budget comes back. An id that returns keeps the group that it had.

    Args:
        store: The database.
        tenant: Name of the tenant.
        names: Ids of documents.

    Returns:
        Slots emptied.

    Raises:
        InputError: No such tenant, or a document that is not there.
    """
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        stored = select(documents.c.name).where(documents.c.tenant == row.id)
        # All or nothing: every name is checked before anything is removed.
        missing = sorted({*names} - {*connection.execute(stored).scalars()})
        if missing:
            raise InputError(f"{tenant} has no document {missing[0]!r}.", "Nothing was removed.")
        emptied = _drop(connection, row.id, names)
        _publish(connection, row)
    return emptied


def _pieces(new: Sequence[Document], *, split: bool) -> list[dict[str, Any]]:
    """Return what fills the slots: name, part and text, document by document."""
    from ragwitness.rag.chunk import chunk_document, word_spans

    pieces: list[dict[str, Any]] = []
    for document in new:
        # A document is one piece, or several that overlap.
        texts = [document.text]
        if (words := len(word_spans(document.text))) > LONGEST_DOCUMENT:
            if not split:
                raise InputError(
                    f"The document {document.id!r} has {words} words; a slot takes"
                    f" {LONGEST_DOCUMENT}.",
                    "With --split it is cut into parts, each in its own slot.",
                )
            texts = [number.text for number in chunk_document(document, _PASSAGE, _OVERLAP)]
        pieces += [
            {"name": document.id, "part": number, "text": text} for number, text in enumerate(texts)
        ]
    if not pieces:
        raise InputError("There is no document to add.", "Give some that are not blank.")
    return pieces


def _vectors(
    pieces: Sequence[Mapping[str, Any]], mechanism: Mechanism, embedder: Embedder
) -> list[bytes]:
    """Return the quantised vectors, each of ``dimension`` int16 in little-endian order."""
    vectors: list[bytes] = []
    # Batch by batch: a model's memory bounds how many texts it embeds at once.
    for batch in _batches(pieces):
        floats = np.asarray(embedder.embed([piece["text"] for piece in batch]), np.float64)
        # A vector without direction has no cosine; such a query is refused as well.
        usable = np.isfinite(floats).all(axis=1) & (np.abs(floats).max(axis=1, initial=0) > 0)
        if not usable.all():
            bad = batch[int(np.argmin(usable))]["name"]
            raise InputError(
                f"The embedder gives the document {bad!r} no usable vector.",
                "Leave it out; a text needs words that the embedder can place.",
            )
        vectors += [row.astype("<i2").tobytes() for row in quantise(floats, mechanism)]
    return vectors


def _free_slots(
    connection: Connection, tenant: int, capacity: int, pieces: Sequence[Mapping[str, Any]]
) -> list[int]:
    """Draw a free slot for each piece."""
    rows = connection.execute(
        select(documents.c.slot, documents.c.name).where(documents.c.tenant == tenant)
    ).all()
    names = {row.name for row in rows}
    # Names are unique, among the new documents too.
    for piece in pieces:
        if piece["part"] == 0 and piece["name"] in names:
            raise InputError(
                f"There is a document {piece['name']!r} already.",
                "Ids are unique within a tenant; --replace puts one in the place of another.",
            )
        names.add(piece["name"])
    free = sorted({*range(capacity)} - {row.slot for row in rows})
    if len(free) < len(pieces):
        raise InputError(
            f"{len(pieces)} documents do not fit: {len(free)} of {capacity} slots are free.",
            "The number of slots is part of the policy: create a tenant with a larger --capacity.",
        )
    # In order, one document more or less would move all after it: their slots would differ as well.
    return _LOTS.sample(free, len(pieces))


def place_documents(
    connection: Connection, tenant: int, placement: Placement, given: Sequence[Document]
) -> dict[str, int]:
    """Return the group of each document, by id; one that was never there is drawn, for life.

    Args:
        connection: Connection in a transaction that may write.
        tenant: Row of the tenant.
        placement: Of its policy.
        given: The documents; an id keeps its group, whatever its text has become.
    """
    lock_tenant(connection, tenant)
    stored = select(contents.c.name, contents.c.code).where(contents.c.tenant == tenant)
    codes: dict[str, int] = dict(map(tuple, connection.execute(stored)))
    bits = system_bits()
    fresh = {
        document.id: placement.place(document.text, bits)
        for document in given
        if document.id not in codes
    }
    rows = [
        {"tenant": tenant, "name": name, "version": 0, "code": code} for name, code in fresh.items()
    ]
    for some in _batches(rows):
        connection.execute(insert(contents), some)
    return codes | fresh


def lock_tenant(connection: Connection, tenant: int) -> None:
    """Hold a tenant's row until the transaction ends: one writer at a time."""
    connection.execute(select(tenants.c.id).where(tenants.c.id == tenant).with_for_update())


def _publish(connection: Connection, row: Any) -> None:
    """Begin a new edition: processes that hold the old index read it anew at their next query."""
    edition = {"edition": row.edition + 1}
    connection.execute(update(tenants).where(tenants.c.id == row.id).values(**edition))


def changed_since_draw(store: Store, tenant: str) -> int:
    """Return how many placed documents have been replaced: they are found by their first text."""
    changed = select(func.count(documents.c.name.distinct())).select_from(documents)
    changed = changed.join(contents, _SAME).where(contents.c.version > 1)
    with store.reading() as connection:
        row = find_tenant(connection, tenant)
        return int(connection.execute(changed.where(documents.c.tenant == row.id)).scalar_one())


def _batches(rows: Sequence[Any]) -> Iterator[Any]:
    """Cut a sequence into parts of a size that one statement takes."""
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _drop(connection: Connection, tenant: int, names: Sequence[str]) -> int:
    """Empty the slots of documents; return how many."""
    emptied = 0
    for some in _batches([*dict.fromkeys(names)]):
        gone = and_(documents.c.tenant == tenant, documents.c.name.in_(some))
        emptied += connection.execute(delete(documents).where(gone)).rowcount
    return emptied


# Indexes in memory: read from the database once per edition, each tenant's alone.

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
        self._held: OrderedDict[int, tuple[int, SlotIndex | PlacedSlots]] = OrderedDict()
        self._loading: dict[int, threading.Lock] = {}

    def get(
        self, tenant: int, edition: int, finder: Mechanism | Placement
    ) -> SlotIndex | PlacedSlots:
        """Return a tenant's index, of this edition or a later one.

        Args:
            tenant: Row of the tenant; no other tenant's rows are read.
            edition: The least that will do.
            finder: The tenant's mechanism or placement.

        Returns:
            Vectors to be scored, or, where documents are placed, the group of each filled slot.

        Raises:
            StoreGoneError: The database failed.
        """
        with self._lock:
            loading = self._loading.setdefault(tenant, threading.Lock())
        with loading:  # the others of this tenant wait instead of reading it as well
            # A later edition holds all documents of an earlier one: it serves both.
            with self._lock:
                cached = self._held.get(tenant)
                if cached is not None and cached[0] >= edition:
                    self._held.move_to_end(tenant)
                    return cached[1]
            index: SlotIndex | PlacedSlots
            if isinstance(finder, Placement):
                edition, index = placed_slots(self._store, tenant)
            else:
                edition, rows = index_rows(self._store, tenant, finder)
                index = SlotIndex(rows, finder)
            with self._lock:
                # Kept for the next query; the least recently used of all tenants go first.
                self._held[tenant] = (edition, index)
                self._held.move_to_end(tenant)
                sizes = [4 * math.prod(index.shape) for _, index in self._held.values()]
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
        query = select(documents.c.slot, documents.c.vector).where(documents.c.tenant == tenant)
        stored = connection.execute(query.execution_options(yield_per=_READ_TOGETHER))
        for together in stored.partitions():
            vectors = np.frombuffer(b"".join(row.vector for row in together), "<i2")
            rows[[row.slot for row in together]] = vectors.reshape(len(together), -1)
    return edition, rows


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSlots:
    """The filled slots of a tenant whose documents are placed.

    Attributes:
        slots: Their numbers, ascending.
        codes: The group of each.
    """

    slots: NDArray[np.int32]
    codes: Codes

    @property
    def shape(self) -> tuple[int, int]:
        """Two numbers a slot."""
        return len(self.slots), 2


def placed_slots(store: Store, tenant: int) -> tuple[int, PlacedSlots]:
    """Return a tenant's edition and the group of each filled slot.

    Raises:
        StoreGoneError: The database failed.
    """
    query = select(documents.c.slot, contents.c.code).join(contents, _SAME)
    with store.reading(frozen=True) as connection:
        edition: int = connection.execute(
            select(tenants.c.edition).where(tenants.c.id == tenant)
        ).scalar_one()
        of_tenant = query.where(documents.c.tenant == tenant).order_by(documents.c.slot)
        rows = [*map(tuple, connection.execute(of_tenant))]
    table = np.array(rows, np.int32).reshape(-1, 2)
    return edition, PlacedSlots(table[:, 0], table[:, 1])


_AT = select(documents.c.tenant, documents.c.slot, documents.c.name, documents.c.text).where(
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
            for row in connection.execute(_AT, {"places": [*places]})
        }
