"""What an operator does: tenants, their documents, accounts and keys. No client can."""

from __future__ import annotations

import os
import random
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, delete, insert, select, update

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.base import Embedder
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import Placement
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import quantise
from ragwitness.privacy.sampler import system_bits, uniform
from ragwitness.privacy.streams import SEED_BYTES
from ragwitness.service.meters import window_of
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.principals import ApiKey, new_key
from ragwitness.service.store import Store
from ragwitness.service.tables import (
    CLOSED,
    OVERLAP,
    accounts,
    attested,
    charges,
    contents,
    documents,
    payers,
    placements,
    spent,
    tenants,
    text_sketch,
    windows,
)

LONGEST_DOCUMENT = 400
"""Words of a document in one slot: more would not be found by its vector, nor fit a prompt."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PASSAGE = 200

_COPY = 48
"""Most bits of 256 in which the sketches of two documents that count as one differ: on average they
have five eighths of their runs of three words in common."""

_BATCH = 256
_LOTS = random.SystemRandom()


def create_tenant(store: Store, name: str, claim: Claim, *more: str) -> TenantPolicy:
    """Make a tenant with a policy that never changes.

    Args:
        store: The database.
        name: Name of the tenant, unique.
        claim: What its accounts are promised.
        more: Names of others with the same policy; all are made, or none.

    Returns:
        The policy, with the noise and the budget that follow from the claim.

    Raises:
        InputError: The name is taken or unusable, or the claim is refused.
    """
    policy = make_policy(claim, dimension_of(claim))
    with store.writing() as connection:
        for each in (name, *more):
            _check_name("tenant", each)
            if _find(connection, each) is not None:
                raise InputError(f"There is a tenant {each!r} already.", "Take another name.")
            # Numbers are drawn, not counted: a server that still holds an erased tenant's index
            # knows it by its number, and no tenant's number tells of others.
            number = 1 + secrets.randbelow((1 << 31) - 1)
            values = {"policy": policy.to_json(), "created": int(time.time())}
            connection.execute(insert(tenants).values(id=number, name=each, **values))
    return policy


def dimension_of(claim: Claim) -> int:
    """Return the dimension of a claim's embedder, by measure; 0 where nothing is embedded."""
    if claim.mechanism != "noise":
        return 0
    return int(load_embedder(claim.embedder).embed(["dimension"]).shape[1])


@dataclass(frozen=True, slots=True)
class _Piece:
    """What fills one slot: a document, or one part of it."""

    name: str
    part: int
    text: str


def add_documents(
    store: Store,
    tenant: str,
    given: Iterable[Document],
    *,
    split: bool = False,
    replace: bool = False,
    embedder: Embedder | None = None,
) -> int:
    """Put documents into free slots of a tenant's index, drawn by lot; all of them or none.

    Args:
        store: The database.
        tenant: Name of the tenant.
        given: Documents with ids that are new to the tenant.
        split: Whether a document longer than :data:`LONGEST_DOCUMENT` words is cut into parts; each
            has a slot of its own. Noise covers one slot, a placement the whole document.
        replace: Whether a document with the id of one that is there takes its place, all of it.
        embedder: Used instead of loading the tenant's.

    Returns:
        Slots filled.

    Raises:
        InputError: No such tenant, a document is too long, has no vector or is there already, or
            the slots do not suffice.
    """
    with store.reading() as connection:
        policy = TenantPolicy.from_json(find_tenant(connection, tenant).policy)
    whole = list(given)
    pieces = _pieces(whole, split=split)
    # 1. Embedded and quantised before the lock is taken: a model may take minutes.
    vectors = np.empty((len(pieces), 0), np.int16)
    if policy.placement is None:
        vectors = _vectors(
            pieces, policy.mechanism, embedder or load_embedder(policy.claim.embedder)
        )
    with store.writing() as connection:
        # 2. Under the tenant's lock: two operators never fill the same slot.
        row = find_tenant(connection, tenant, lock=True)
        if replace:
            _drop(connection, row.id, [document.id for document in whole])
        slots = _free_slots(connection, row.id, policy.claim.capacity, pieces)
        # 3. Who each document is, by its id and by what it is a copy of.
        _register(connection, row.id, policy.placement, whole, store)
        for some in _batches(range(len(pieces))):  # rows take more memory than what they are of
            rows = [
                {
                    "tenant": row.id,
                    "slot": slots[at],
                    **asdict(pieces[at]),
                    "vector": vectors[at].astype("<i2").tobytes(),
                }
                for at in some
            ]
            connection.execute(insert(documents), rows)
        _publish(connection, row, policy)
    return len(pieces)


def remove_documents(store: Store, tenant: str, names: Sequence[str]) -> int:
    """Take documents out of a tenant's index, each with all its parts; all of them or none.

    Their slots are empty from the next query on, and may be filled again. What answers have told
    of them stays told: no budget comes back, and where documents are placed one that returns is
    placed as it was.

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
        here = select(documents.c.name).where(documents.c.tenant == row.id)
        held = set(connection.execute(here).scalars())
        for name in names:
            if name not in held:
                raise InputError(f"{tenant} has no document {name!r}.", "Nothing was removed.")
        gone = _drop(connection, row.id, names)
        if policy.placement is None:  # nothing hangs on its name any more
            for some in _batches(names):
                these = and_(contents.c.tenant == row.id, contents.c.name.in_(some))
                connection.execute(delete(contents).where(these))
        _publish(connection, row, policy)
    return gone


def _register(
    connection: Connection,
    tenant: int,
    placement: Placement | None,
    given: Sequence[Document],
    store: Store,
) -> None:
    """Write down documents; one that is a version or a near copy of another shares its account."""
    here = contents.c.tenant == tenant
    known: list[Mapping[str, Any]] = [
        dict(row) for row in connection.execute(select(contents).where(here)).mappings()
    ]
    by_name = {row["name"]: row for row in known}
    next_account = 1 + max((row["account"] for row in known), default=0)
    if placement is not None:
        before = select(contents.c.code).where(contents.c.code.is_not(None)).limit(1)
        secret = store.text_key(make=connection.execute(before).first() is None)
        bits = system_bits()
        # The sketch of every document that is or was there, and of those that are given.
        sketches = np.empty((len(known) + len(given), 4), np.uint64)
        sketches[: len(known)] = np.frombuffer(
            b"".join(row["sketch"] for row in known), "<u8"
        ).reshape(-1, 4)
    for at, document in enumerate(given, len(known)):
        old = twin = by_name.get(document.id)
        sketch, code = b"", None
        if placement is not None:
            sketches[at] = text_sketch(document.text, tenant, secret)
            sketch = sketches[at].astype("<u8").tobytes()
            apart = np.bitwise_count(sketches[:at] ^ sketches[at]).sum(axis=1)
            if twin is None and at and apart.min() <= _COPY:
                twin = known[int(apart.argmin())]
            code = twin["code"] if twin else placement.place(document.text, bits)
        known.append(
            {
                "tenant": tenant,
                "name": document.id,
                "version": old["version"] + 1 if old else 1,
                "sketch": sketch,
                "account": twin["account"] if twin else next_account,
                "code": code,
            }
        )
        next_account += twin is None
    made = known[-len(given) :]
    for some in _batches([row["name"] for row in made if row["name"] in by_name]):
        connection.execute(delete(contents).where(here, contents.c.name.in_(some)))
    for rows in _batches(made):
        connection.execute(insert(contents), rows)


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


def erase_tenant(store: Store, tenant: str) -> dict[str, object]:
    """Erase a tenant: documents, accounts, keys, meters, seeds, charges, placements and its name.

    Returns:
        A receipt: what was erased, how many rows of each, when, and what remains.

    Raises:
        InputError: No such tenant.
        StoreGoneError: The database failed.
    """
    counts = {"meters": 0}
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        # Every row of its own, those first that point to others.
        for kind, table in (("account", accounts), ("payer", payers)):
            owners = select(table.c.id).where(table.c.tenant == row.id)
            mine = and_(spent.c.kind == kind, spent.c.owner.in_(owners))
            counts["meters"] += connection.execute(delete(spent).where(mine)).rowcount
        every = (accounts, payers, documents, contents, placements, charges, attested, windows)
        for table in every:
            found = connection.execute(delete(table).where(table.c.tenant == row.id))
            counts[table.name] = found.rowcount
        connection.execute(delete(tenants).where(tenants.c.id == row.id))
    # Pages and write-ahead log that held them.
    store.vacuum()
    return {
        "erased": tenant,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rows": counts,
        "remains": [
            "copies that the database does not know: backups, replicas, a write-ahead log of"
            " PostgreSQL until it is recycled, audit windows in their folders, and the index in"
            " the memory of a running server until it is restarted",
            "what its answers have told: another tenant with the same documents has a budget of its"
            " own",
        ],
    }


def count_as_spent(store: Store, now: float | None = None) -> dict[str, int]:
    """Count as spent what a restored copy cannot know of: all that may have been since it was made.

    Every window that is open, and every one that may have been open since, is spent in full; the
    one under way answers nothing, and no noise of the copy is drawn again.

    Returns:
        Windows that were counted so, by tenant; 0 where documents are placed for life.

    Raises:
        StoreGoneError: The database failed.
    """
    moment = time.time() if now is None else now
    counted = {}
    with store.writing() as connection:
        for row in connection.execute(select(tenants).order_by(tenants.c.id).with_for_update()):
            policy = TenantPolicy.from_json(row.policy)
            counted[row.name] = 0
            if policy.placement is not None:
                continue
            mine = windows.c.tenant == row.id
            known = connection.execute(select(windows).where(mine)).all()
            current, _ = window_of(row.created, policy.claim.window, moment)
            over = {one.number for one in known if one.final is not None}
            since = set(range(max(over, default=-1) + 1, current + 1)) | {
                one.number for one in known if one.final is None
            }
            # Its budget for each of them, whatever was granted; what is over stays as it is.
            used = row.used + len(since) * policy.budget**2
            connection.execute(update(tenants).where(tenants.c.id == row.id).values(used=used))
            connection.execute(delete(windows).where(mine, windows.c.number.in_(since)))
            connection.execute(delete(charges).where(charges.c.tenant == row.id))
            closed = {"tenant": row.id, "number": current, "seed": os.urandom(SEED_BYTES)}
            connection.execute(delete(windows).where(mine, windows.c.number == current))
            connection.execute(insert(windows).values(closed | CLOSED))
            counted[row.name] = len(since)
    return counted


def _batches(given: Sequence[Any]) -> Iterator[Any]:
    """Cut a sequence into parts of a size that one statement takes."""
    for start in range(0, len(given), _BATCH):
        yield given[start : start + _BATCH]


def _drop(connection: Connection, tenant: int, names: Sequence[str]) -> int:
    """Empty the slots of documents; return how many."""
    gone = 0
    for some in _batches([*dict.fromkeys(names)]):
        these = and_(documents.c.tenant == tenant, documents.c.name.in_(some))
        gone += connection.execute(delete(documents).where(these)).rowcount
    return gone


def add_account(store: Store, tenant: str, name: str, payer: str | None = None) -> ApiKey:
    """Admit an account: :func:`add_accounts` for one."""
    return add_accounts(store, tenant, [name], payer)[0]


def add_accounts(
    store: Store, tenant: str, names: Sequence[str], payer: str | None = None
) -> list[ApiKey]:
    """Admit accounts, all or none, and return their keys, which cannot be shown again.

    Args:
        store: The database.
        tenant: Name of the tenant.
        names: Names of the accounts, each unique within the tenant.
        payer: Who pays for them; None: each for itself.

    Raises:
        InputError: No such tenant, or a name is taken or unusable.
    """
    keys = [new_key() for _ in names]
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        for place, (name, key) in enumerate(zip(names, keys, strict=True), row.next_place):
            _check_name("account", name)
            # Who pays has a meter of its own, so that more accounts do not buy more queries.
            _check_name("payer", payer or name)
            if _account(connection, row.id, name) is not None:
                raise InputError(
                    f"{tenant} has an account {name!r} already.",
                    f"Take another name, or: ragwitness service tenants rotate-key {tenant} {name}",
                )
            paid_by = _payer(connection, row.id, payer or name)
            values = {"tenant": row.id, "payer": paid_by, "name": name, "place": place}
            connection.execute(insert(accounts).values(**values, **asdict(key.stored)))
        # A place is never given twice, not even a revoked account's: the noise is keyed by it.
        used = {"next_place": row.next_place + len(names)}
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(**used))
    return keys


def rotate_key(store: Store, tenant: str, name: str) -> ApiKey:
    """Give an account another key; the old one ends with this. Its meters go on.

    A revoked account gets its access back.

    Raises:
        InputError: No such tenant or account.
    """
    key = new_key()
    # Row and place stay: a new key must not begin a new allowance.
    _change(store, tenant, name, {**asdict(key.stored), "revoked": None})
    return key


def revoke(store: Store, tenant: str, name: str) -> None:
    """End an account's access; what it has spent stays spent.

    Raises:
        InputError: No such tenant or account.
    """
    _change(store, tenant, name, {"revoked": int(time.time())})


def find_tenant(connection: Connection, name: str, *, lock: bool = False) -> Any:
    """Return a tenant's row.

    Raises:
        InputError: There is none of that name.
    """
    row = _find(connection, name, lock=lock)
    if row is None:
        raise InputError(
            f"There is no tenant {name!r}.", "ragwitness service tenants list names them all."
        )
    return row


def _find(connection: Connection, name: str, *, lock: bool = False) -> Any:
    query = select(tenants).where(tenants.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def _account(connection: Connection, tenant: int, name: str) -> Any:
    query = select(accounts).where(accounts.c.tenant == tenant, accounts.c.name == name)
    return connection.execute(query).one_or_none()


def _change(store: Store, tenant: str, name: str, values: dict[str, object]) -> None:
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        account = _account(connection, row.id, name)
        if account is None:
            raise InputError(
                f"{tenant} has no account {name!r}.",
                "ragwitness service tenants list names them all.",
            )
        connection.execute(update(accounts).where(accounts.c.id == account.id).values(**values))


def _payer(connection: Connection, tenant: int, name: str) -> int:
    here = and_(payers.c.tenant == tenant, payers.c.name == name)
    found = connection.execute(select(payers.c.id).where(here)).scalar()
    if found is None:
        made = connection.execute(insert(payers).values(tenant=tenant, name=name))
        found = made.inserted_primary_key[0]  # type: ignore[index]
    return int(found)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"The {what}'s name {name!r} cannot be used.",
            "Use 1 to 64 letters, digits, dots, hyphens and underscores.",
        )


def _pieces(given: Sequence[Document], *, split: bool) -> list[_Piece]:
    """What fills the slots, document by document."""
    from ragwitness.rag.chunk import chunk_document, word_spans

    found: list[_Piece] = []
    for document in given:
        words = len(word_spans(document.text))
        if words <= LONGEST_DOCUMENT:
            found.append(_Piece(document.id, 0, document.text))
            continue
        if not split:
            raise InputError(
                f"The document {document.id!r} has {words} words; a slot takes {LONGEST_DOCUMENT}.",
                "With --split it is cut into parts, each in a slot of its own.",
            )
        parts = chunk_document(document, _PASSAGE, OVERLAP)
        found += [_Piece(document.id, at, part.text) for at, part in enumerate(parts)]
    if not found:
        raise InputError("There is no document to add.", "Give some that are not blank.")
    return found


def _vectors(
    pieces: Sequence[_Piece], mechanism: Mechanism, embedder: Embedder
) -> NDArray[np.int16]:
    """Return the quantised vectors, shape (n, dimension)."""
    found = np.empty((len(pieces), mechanism.dimension), np.int16)
    for start in range(0, len(pieces), _BATCH):
        batch = pieces[start : start + _BATCH]
        floats = np.asarray(embedder.embed([piece.text for piece in batch]), np.float64)
        # A vector without direction has no cosine; at the client's side it is refused likewise.
        usable = np.isfinite(floats).all(axis=1) & (np.abs(floats).max(axis=1, initial=0) > 0)
        if not usable.all():
            bad = batch[int(np.argmin(usable))].name
            raise InputError(
                f"The embedder gives the document {bad!r} no usable vector.",
                "Leave it out; a text needs words that the embedder can place.",
            )
        found[start : start + len(batch)] = quantise(floats, mechanism)
    return found


def _free_slots(
    connection: Connection, tenant: int, capacity: int, pieces: Sequence[_Piece]
) -> list[int]:
    rows = connection.execute(
        select(documents.c.slot, documents.c.name).where(documents.c.tenant == tenant)
    ).all()
    names = {row.name for row in rows}
    for piece in pieces:
        if piece.part == 0 and piece.name in names:
            raise InputError(
                f"There is a document {piece.name!r} already.",
                "Ids are unique within a tenant; --replace puts one in the place of another.",
            )
        names.add(piece.name)
    empty = np.ones(capacity, bool)
    empty[[row.slot for row in rows]] = False
    free = np.flatnonzero(empty)
    if len(free) < len(pieces):
        raise InputError(
            f"{len(pieces)} documents do not fit: {len(free)} of {capacity} slots are free.",
            "The number of slots is part of the policy: create a tenant with a larger --capacity.",
        )
    # In order, one document more or less would move all after it: their slots would differ as well.
    return [int(free[at]) for at in _LOTS.sample(range(len(free)), len(pieces))]
