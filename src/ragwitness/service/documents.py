"""Documents of a tenant: put into slots by its operator, held in memory as an index."""

from __future__ import annotations

import hmac
import math
import random
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, tuple_, update

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.base import Embedder
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import Codes, Placement
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex, quantise
from ragwitness.privacy.sampler import system_bits, uniform
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store
from ragwitness.service.tables import (
    contents,
    documents,
    placements,
    tenants,
)
from ragwitness.service.tenants import find_tenant

LONGEST_DOCUMENT = 400
"""Words of a document in one slot: a longer one has no clear vector and does not fit a prompt."""

_PASSAGE, _OVERLAP = 200, 20  # words of a part of a document, and those that two parts share
_BATCH = 256  # rows of a statement
_READ_TOGETHER = 4096  # documents
_LOTS = random.SystemRandom()


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
        # 3. The identity of each document: by its id, or by the document that it copies.
        _register(connection, row.id, policy.placement, new, store)
        for some in _batches(range(len(pieces))):
            rows = [
                {"tenant": row.id, "slot": slots[at], "vector": vectors[at], **pieces[at]}
                for at in some
            ]
            connection.execute(insert(documents), rows)
        _publish(connection, row, policy)
    return len(pieces)


def remove_documents(store: Store, tenant: str, names: Sequence[str]) -> int:
    """Take documents out of a tenant's index, each with all its parts; all of them or none.

    Their slots are empty from the next query on, and may be filled again. Earlier answers may have
    revealed them, so no budget comes back. A placed document that returns is placed as it was.

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
        policy = TenantPolicy.from_json(row.policy)
        stored = select(documents.c.name).where(documents.c.tenant == row.id)
        # All or nothing: every name is checked before anything is removed.
        missing = sorted({*names} - {*connection.execute(stored).scalars()})
        if missing:
            raise InputError(f"{tenant} has no document {missing[0]!r}.", "Nothing was removed.")
        emptied = _drop(connection, row.id, names)
        if policy.placement is None:  # nothing depends on its name any more
            for some in _batches(names):
                gone = and_(contents.c.tenant == row.id, contents.c.name.in_(some))
                connection.execute(delete(contents).where(gone))
        _publish(connection, row, policy)
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


def _register(
    connection: Connection,
    tenant: int,
    placement: Placement | None,
    new: Sequence[Document],
    store: Store,
) -> None:
    """Write down documents; a version or a near copy of another one shares its account."""
    of_tenant = contents.c.tenant == tenant
    rows_by_age: list[Mapping[str, Any]] = [
        dict(row) for row in connection.execute(select(contents).where(of_tenant)).mappings()
    ]
    by_name = {row["name"]: row for row in rows_by_age}
    next_account = 1 + max((row["account"] for row in rows_by_age), default=0)
    if placement is not None:
        placed = select(contents.c.code).where(contents.c.code.is_not(None)).limit(1)
        secret = store.text_key(make=connection.execute(placed).first() is None)
        bits = system_bits()
        # The sketches of all documents, present, removed and new.
        sketches = np.empty((len(rows_by_age) + len(new), 4), np.uint64)
        sketches[: len(rows_by_age)] = np.frombuffer(
            b"".join(row["sketch"] for row in rows_by_age), "<u8"
        ).reshape(-1, 4)
    for at, document in enumerate(new, len(rows_by_age)):
        earlier = twin = by_name.get(document.id)
        sketch, code = b"", None
        if placement is not None:
            sketches[at] = text_sketch(document.text, tenant, secret)
            sketch = sketches[at].astype("<u8").tobytes()
            apart = np.bitwise_count(sketches[:at] ^ sketches[at]).sum(axis=1)
            if twin is None and at and apart.min() <= _COPY:
                twin = rows_by_age[int(apart.argmin())]
            code = twin["code"] if twin else placement.place(document.text, bits)
        rows_by_age.append(
            {
                "tenant": tenant,
                "name": document.id,
                "version": earlier["version"] + 1 if earlier else 1,
                "sketch": sketch,
                "account": twin["account"] if twin else next_account,
                "code": code,
            }
        )
        next_account += twin is None
    rows = rows_by_age[-len(new) :]
    for some in _batches([row["name"] for row in rows if row["name"] in by_name]):
        connection.execute(delete(contents).where(of_tenant, contents.c.name.in_(some)))
    for some in _batches(rows):
        connection.execute(insert(contents), some)


def _publish(connection: Connection, row: Any, policy: TenantPolicy) -> None:
    """Begin a new edition: processes that hold the old index read it anew at their next query."""
    edition = {"edition": row.edition + 1}
    connection.execute(update(tenants).where(tenants.c.id == row.id).values(**edition))
    if (placement := policy.placement) is None:
        return
    # Every slot without a document is drawn anew, so that no change shows which were filled.
    bits = system_bits()
    every = range(placement.capacity)
    codes = np.array([uniform(placement.groups, bits) for _ in every], "<i4")
    at = and_(contents.c.tenant == documents.c.tenant, contents.c.name == documents.c.name)
    query = select(documents.c.slot, contents.c.code).join(contents, at)
    for slot, code in connection.execute(query.where(documents.c.tenant == row.id)):
        codes[slot] = code
    connection.execute(delete(placements).where(placements.c.tenant == row.id))
    connection.execute(insert(placements).values(tenant=row.id, codes=codes.tobytes()))


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


# Near copies are found by sketches of their texts.

_BITS, _RUN = 256, 3  # of a sketch; words of a run
_COPY = 48
"""Most bits of 256 in which the sketches of two documents that count as one differ: on average they
have five eighths of their runs of three words in common."""

_ORDERS = np.random.default_rng(0).integers(1 << 63, size=(2, _BITS, 1), dtype=np.uint64)


def text_sketch(text: str, tenant: int, secret: bytes) -> NDArray[np.uint64]:
    """Return 256 bits of a text; similar texts share more of them.

    Each bit is one of the least of the runs' hashes in one of 256 orders (b-bit minwise hashing, Li
    and König, 2010). Two texts that share the part J of their runs of three words have each bit in
    common with chance (1 + J) / 2. Case, spacing and invisible marks do not count.

    Args:
        text: The text.
        tenant: Row of the tenant: no two tenants' sketches can be compared.
        secret: :meth:`Store.text_key`; without it a guessed text cannot be tried.

    Returns:
        Shape (4,).
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf").split()
    runs = {" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
    digests = (hmac.digest(secret, f"{tenant} {run}".encode(), "sha256")[:8] for run in runs)
    hashes = np.frombuffer(b"".join(digests), "<u8")
    # The least run in each order, and one bit of its own hash.
    least = hashes[((2 * _ORDERS[0] + 1) * hashes + _ORDERS[1]).argmin(axis=1)]
    bits = least >> np.arange(_BITS, dtype=np.uint64) % np.uint64(64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8)).view("<u8")


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
        self._held: OrderedDict[int, tuple[int, SlotIndex | Codes]] = OrderedDict()
        self._loading: dict[int, threading.Lock] = {}

    def get(self, tenant: int, edition: int, finder: Mechanism | Placement) -> SlotIndex | Codes:
        """Return a tenant's index, of this edition or a later one.

        Args:
            tenant: Row of the tenant; no other tenant's rows are read.
            edition: The least that will do.
            finder: The tenant's mechanism or placement.

        Returns:
            Vectors to be scored, or, where documents are placed, the group of each slot.

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
            index: SlotIndex | Codes
            if isinstance(finder, Placement):
                edition, index = placed_codes(self._store, tenant)
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


def placed_codes(store: Store, tenant: int) -> tuple[int, Codes]:
    """Return a tenant's edition and the group of each slot, shape (capacity,).

    Raises:
        StoreGoneError: The database failed.
    """
    query = select(tenants.c.edition, placements.c.codes).where(tenants.c.id == tenant)
    with store.reading() as connection:
        row = connection.execute(query.join(placements)).one()
    return row.edition, np.frombuffer(row.codes, "<i4")


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
