"""What an operator does: tenants, their documents, accounts and keys. No client can."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, delete, func, insert, select, update

from ragwitness.errors import InputError
from ragwitness.models.base import Embedder
from ragwitness.models.registry import load_embedder
from ragwitness.privacy.mechanism.release import quantise
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.principals import ApiKey, new_key
from ragwitness.service.store import (
    Store,
    accounts,
    attested,
    charges,
    content_digest,
    contents,
    documents,
    lives,
    payers,
    spent,
    tenants,
    windows,
)
from ragwitness.service.texts import fold_texts
from ragwitness.types import Document

LONGEST_DOCUMENT = 400
"""Words of a document in one slot: more would not be found by its vector, nor fit a prompt."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PASSAGE, _OVERLAP = 200, 20
_BATCH = 256
_LOTS = random.SystemRandom()


def create_tenant(store: Store, name: str, claim: Claim) -> TenantPolicy:
    """Make a tenant with a policy that never changes.

    Args:
        store: The database.
        name: Name of the tenant, unique.
        claim: What its accounts are promised.

    Returns:
        The policy, with the noise and the budget that follow from the claim.

    Raises:
        InputError: The name is taken or unusable, or the claim is refused.
    """
    _check_name("tenant", name)
    # The dimension enters the sensitivity of the scores: it is measured, not declared.
    model = load_embedder(claim.embedder)
    policy = make_policy(claim, int(model.embed(["dimension"]).shape[1]))
    with store.writing() as connection:
        if _find(connection, name) is not None:
            raise InputError(f"There is a tenant {name!r} already.", "Take another name.")
        # Numbers are never given twice: a server that still holds an erased tenant's index knows it
        # by its number.
        store.serialize(connection)
        last = (select(func.max(table.c.id)) for table in (tenants, lives))
        number = 1 + max(connection.execute(query).scalar() or 0 for query in last)
        values = {"policy": policy.to_json(), "created": int(time.time()), "life": number}
        # A budget for life of its own, until it takes documents that another index has held.
        connection.execute(insert(tenants).values(id=number, name=name, **values))
        connection.execute(insert(lives).values(id=number, unit=policy.unit))
    return policy


def add_documents(
    store: Store,
    tenant: str,
    given: Iterable[Document],
    *,
    split: bool = False,
    apart: bool = False,
    replace: bool = False,
    embedder: Embedder | None = None,
) -> int:
    """Put documents into free slots of a tenant's index, drawn by lot; all of them or none.

    A text that another tenant's index holds or has held brings both indexes under one budget for
    life: answers of either tell of it.

    Args:
        store: The database.
        tenant: Name of the tenant.
        given: Documents with ids that are new to the tenant.
        split: Whether a document longer than :data:`LONGEST_DOCUMENT` words is cut into passages;
            each has a slot of its own, and the guarantee covers one slot.
        apart: Keep a budget for life of its own all the same: an operator's promise that nobody
            asks both indexes.
        replace: Whether a document with the id of one that is there takes its place.
        embedder: Used instead of loading the tenant's.

    Returns:
        Slots filled.

    Raises:
        InputError: No such tenant, a document is too long, has no vector or is there already, or
            the slots do not suffice.
    """
    with store.reading() as connection:
        policy = TenantPolicy.from_json(find_tenant(connection, tenant).policy)
    # 1. One document, one slot: the unit that the guarantee speaks of.
    pieces = _pieces(given, split=split)
    # 2. Embedded and quantised before the lock is taken: a model may take minutes.
    vectors = _vectors(pieces, policy, embedder or load_embedder(policy.claim.embedder))
    with store.writing() as connection:
        # 3. Free slots by lot, under the tenant's lock: two operators never fill the same one.
        digests = {content_digest(piece.text) for piece in pieces}
        store.serialize(connection)
        _lock(connection, tenant, set() if apart else digests)
        row = find_tenant(connection, tenant, lock=True)
        _fold(connection, row, policy)
        if replace:
            _drop(connection, row.id, [piece.id for piece in pieces])
        slots = _free_slots(connection, row.id, policy.claim.capacity, pieces)
        for some in _batches(range(len(pieces))):  # rows take more memory than what they are of
            rows = [
                {
                    "tenant": row.id,
                    "slot": slots[at],
                    "name": pieces[at].id,
                    "text": pieces[at].text,
                    "vector": vectors[at].astype("<i2").tobytes(),
                }
                for at in some
            ]
            connection.execute(insert(documents), rows)
        _hold(connection, row, digests, policy, apart=apart)
        # 4. A new edition: processes that hold the old index read it anew at their next query.
        edition = {"edition": row.edition + 1}
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(**edition))
    return len(pieces)


def remove_documents(store: Store, tenant: str, names: Sequence[str]) -> int:
    """Take documents out of a tenant's index; all of them or none.

    Their slots are empty from the next query on, and may be filled again. What answers have told
    of them stays told: no budget comes back, and a text that returns, to whatever tenant, returns
    to the budget for life that it had.

    Args:
        store: The database.
        tenant: Name of the tenant.
        names: Ids of documents; of one that was cut, all its parts by the id before the ``#``.

    Returns:
        Slots emptied.

    Raises:
        InputError: No such tenant, or a document that is not there.
    """
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        _fold(connection, row, TenantPolicy.from_json(row.policy))
        here = select(documents.c.name).where(documents.c.tenant == row.id)
        held = set(connection.execute(here).scalars())
        gone = []
        for name in dict.fromkeys(names):
            parts = [one for one in held if one == name or one.rpartition("#")[0] == name]
            if not parts:
                raise InputError(f"{tenant} has no document {name!r}.", "Nothing was removed.")
            gone += parts
        _drop(connection, row.id, gone)
        edition = {"edition": row.edition + 1}
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(**edition))
    return len(gone)


def erase_tenant(store: Store, tenant: str) -> dict[str, object]:
    """Erase a tenant: documents, accounts, keys, meters, seeds, charges and its name.

    What its answers gave away stays with its contents' budget for life, as one number beside the
    hashes of the texts: whoever adds one of them again finds the budget as it was.

    Returns:
        A receipt: what was erased, how many rows of each, when, and what remains.

    Raises:
        InputError: No such tenant.
        StoreGoneError: The database failed.
    """
    counts = {"meters": 0}
    with store.writing() as connection:
        store.serialize(connection)
        row = find_tenant(connection, tenant, lock=True)
        policy = TenantPolicy.from_json(row.policy)
        # 1. What it spent goes over to the life, under the life's lock, or to each text's account.
        _fold(connection, row, policy, over=True)
        connection.execute(select(lives.c.id).where(lives.c.id == row.life).with_for_update())
        used = 0.0
        whole = select(windows).where(windows.c.tenant == row.id)
        for one in connection.execute(whole) if policy.claim.meter == "index" else ():
            granted = policy.budget if one.granted is None else one.granted
            used += (granted if one.final is None else one.final) ** 2
        here = lives.c.id == row.life
        connection.execute(update(lives).where(here).values(used=lives.c.used + used))
        # 2. Every row of its own, those first that point to others.
        for kind, table in (("account", accounts), ("payer", payers)):
            owners = select(table.c.id).where(table.c.tenant == row.id)
            mine = and_(spent.c.kind == kind, spent.c.owner.in_(owners))
            counts["meters"] += connection.execute(delete(spent).where(mine)).rowcount
        for table in (accounts, payers, documents, charges, attested, windows):
            found = connection.execute(delete(table).where(table.c.tenant == row.id))
            counts[table.name] = found.rowcount
        connection.execute(delete(tenants).where(tenants.c.id == row.id))
        # Its number stays taken.
        known = connection.execute(select(lives.c.id).where(lives.c.id == row.id)).scalar()
        if known is None:
            connection.execute(insert(lives).values(id=row.id))
    # 3. Pages and write-ahead log that held them.
    store.vacuum()
    return {
        "erased": tenant,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rows": counts,
        "mu_spent": used**0.5,
        "remains": [
            "hashes of the texts and the square of mu that was spent, by the index or by each text,"
            " so that the same texts have no second budget",
            "copies that the database does not know: backups, replicas, a write-ahead log of"
            " PostgreSQL until it is recycled, audit windows in their folders, and the index in"
            " the memory of a running server until it is restarted",
        ],
    }


def _fold(connection: Connection, row: Any, policy: TenantPolicy, *, over: bool = False) -> None:
    """Settle what texts have spent before they change: the charges are replayed over them."""
    if policy.claim.meter == "documents":
        fold_texts(connection, row.id, row.life, policy, over=over)


_Some = TypeVar("_Some", bound=Sequence[Any])


def _batches(given: _Some) -> Iterator[_Some]:
    """Cut a sequence into parts of a size that one statement takes."""
    for start in range(0, len(given), _BATCH):
        yield given[start : start + _BATCH]  # type: ignore[misc]  # a slice is of its kind


def _drop(connection: Connection, tenant: int, names: Sequence[str]) -> None:
    for some in _batches(names):
        these = documents.c.name.in_(some)
        connection.execute(delete(documents).where(documents.c.tenant == tenant, these))


def add_account(store: Store, tenant: str, name: str, payer: str | None = None) -> ApiKey:
    """Admit an account and return its key, which cannot be shown again.

    Args:
        store: The database.
        tenant: Name of the tenant.
        name: Name of the account, unique within the tenant.
        payer: Who pays for it; None: the account itself.

    Raises:
        InputError: No such tenant, or the name is taken or unusable.
    """
    _check_name("account", name)
    # Who pays has a meter of its own, so that more accounts do not buy more queries.
    _check_name("payer", payer or name)
    key = new_key()
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        if _account(connection, row.id, name) is not None:
            raise InputError(
                f"{tenant} has an account {name!r} already.",
                f"Take another name, or: ragwitness service tenants rotate-key {tenant} {name}",
            )
        values = {
            "tenant": row.id,
            "payer": _payer(connection, row.id, payer or name),
            "name": name,
            "place": row.next_place,
        }
        connection.execute(insert(accounts).values(**values, **asdict(key.stored)))
        # A place is never given twice, not even a revoked account's: the noise is keyed by it.
        place = {"next_place": row.next_place + 1}
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(**place))
    return key


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


def _lock(connection: Connection, tenant: str, digests: set[str]) -> None:
    """Lock a tenant and all whose lives it will share, in order of their rows, as charges do.

    One by one, on the way, they would be taken in another order: an operator who holds the first
    tenant and waits for the second, and a charge that holds the second and waits for the life.
    """
    joined = {find_tenant(connection, tenant).life}
    for some in _batches(sorted(digests)):
        query = select(contents.c.life).where(contents.c.digest.in_(some)).distinct()
        joined |= set(connection.execute(query).scalars())
    query = select(tenants.c.id).where(tenants.c.life.in_(sorted(joined))).order_by(tenants.c.id)
    connection.execute(query.with_for_update())


def _hold(
    connection: Connection, row: Any, digests: set[str], policy: TenantPolicy, *, apart: bool
) -> None:
    """Write down what a life holds; lives with a text in common become the oldest of them.

    Raises:
        InputError: One of them is metered as a whole and another text by text, or what they have
            spent is counted in another unit, so that it cannot be added up.
    """
    life = int(row.life)
    known: dict[int, set[str]] = {life: set()}
    for some in _batches(sorted(digests)):
        query = select(contents).where(contents.c.digest.in_(some))
        for held in connection.execute(query):
            known.setdefault(held.life, set()).add(held.digest)
    if not apart:
        known = _alike(connection, life, known)
    one = life if apart else min(known)
    own = policy.claim.meter == "documents"
    _check_alike(connection, {life} if apart else {*known}, own=own)
    fresh = sorted(digests - known.get(one, set()))
    if fresh:
        account = {"used": 0.0, "most": policy.text_life} if own else {"used": None, "most": None}
        for some in _batches(fresh):
            rows = [{"digest": d, "life": one, **account} for d in some]
            connection.execute(insert(contents), rows)
    for other in sorted({*known} - {one}) if not apart else ():
        # All rows first, in one order: whoever opens a window of either waits.
        both = select(lives.c.id).where(lives.c.id.in_((one, other))).order_by(lives.c.id)
        connection.execute(both.with_for_update())
        # What a text has spent under either adds up, and the smaller promise of it holds.
        for digest, account in _both_accounts(connection, one, other).items():
            here = and_(contents.c.digest == digest, contents.c.life == one)
            connection.execute(update(contents).where(here).values(**account))
        mine = select(contents.c.digest).where(contents.c.life == one)
        theirs = and_(contents.c.life == other, contents.c.digest.not_in(mine))
        connection.execute(update(contents).where(theirs).values(life=one))
        gone = select(lives.c.used).where(lives.c.id == other)
        more = connection.execute(gone).scalar() or 0.0
        connection.execute(update(lives).where(lives.c.id == one).values(used=lives.c.used + more))
        connection.execute(delete(lives).where(lives.c.id == other))
        connection.execute(delete(contents).where(contents.c.life == other))
        connection.execute(update(tenants).where(tenants.c.life == other).values(life=one))
    for some in _batches(sorted(digests) if own else []):
        these = contents.c.digest.in_(some)
        more = and_(contents.c.life == one, these, contents.c.most > policy.text_life)
        connection.execute(update(contents).where(more).values(most=policy.text_life))


def _check_alike(connection: Connection, joined: set[int], *, own: bool) -> None:
    """Check that what will share a life is, and was, metered in one way.

    An index's refusals may hang on queries alone, and what a text has spent hangs on its scores.
    """
    other = contents.c.used.is_(None) if own else contents.c.used.is_not(None)
    query = select(contents.c.life).where(contents.c.life.in_(sorted(joined)), other).limit(1)
    if connection.execute(query).first() is None:
        return
    here, there = ("a budget of its own", "the index's") if own else ("the index's", "its own")
    raise InputError(
        f"Here the budget of a text is {here}; one of these texts is, or was, at a tenant where it"
        f" is {there}.",
        f"Create the tenant with --meter {'index' if own else 'documents'}, or say --own-lifetime.",
    )


def _both_accounts(connection: Connection, one: int, other: int) -> dict[str, dict[str, float]]:
    """Return the account of each text with budgets of its own that two lives hold."""
    found: dict[str, list[Any]] = {}
    query = select(contents).where(contents.c.life.in_((one, other)), contents.c.used.is_not(None))
    for row in connection.execute(query):
        found.setdefault(row.digest, []).append(row)
    return {
        digest: {"used": sum(row.used for row in rows), "most": min(row.most for row in rows)}
        for digest, rows in found.items()
        if len(rows) > 1
    }


def _alike(connection: Connection, life: int, known: dict[int, set[str]]) -> dict[int, set[str]]:
    """Leave out lives in another unit that nobody has and that spent nothing; refuse the others."""
    rows = connection.execute(select(lives).where(lives.c.id.in_(sorted(known)))).all()
    units = {row.id: row.unit for row in rows}
    for row in rows:
        if row.unit == units[life]:
            continue
        query = select(tenants.c.name).where(tenants.c.life == row.id)
        owners = sorted(connection.execute(query).scalars())
        if owners or row.used:
            whose = ", ".join(owners) or "a tenant that was erased"
            raise InputError(
                f"Some of these texts are or were in the index of {whose}, whose noise is of"
                " another kind: their budgets for life cannot be added up.",
                "Create the tenant with the same noise (--noise, --scale, --sigma), or say"
                " --own-lifetime: you promise that nobody asks both.",
            )
        del known[row.id]
    return known


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


def _pieces(given: Iterable[Document], *, split: bool) -> list[Document]:
    """One document per slot."""
    from ragwitness.rag.chunk import chunk_document, word_spans

    found: list[Document] = []
    for document in given:
        words = len(word_spans(document.text))
        if words <= LONGEST_DOCUMENT:
            found.append(document)
            continue
        if not split:
            raise InputError(
                f"The document {document.id!r} has {words} words; a slot takes {LONGEST_DOCUMENT}.",
                "With --split it becomes several, and the guarantee covers each by itself.",
            )
        parts = chunk_document(document, _PASSAGE, _OVERLAP)
        found += [Document(f"{document.id}#{i}", part.text) for i, part in enumerate(parts)]
    if not found:
        raise InputError("There is no document to add.", "Give some that are not blank.")
    return found


def _vectors(
    pieces: Sequence[Document], policy: TenantPolicy, embedder: Embedder
) -> NDArray[np.int16]:
    """Return the quantised vectors, shape (n, dimension)."""
    found = np.empty((len(pieces), policy.mechanism.dimension), np.int16)
    for start in range(0, len(pieces), _BATCH):
        batch = pieces[start : start + _BATCH]
        floats = np.asarray(embedder.embed([piece.text for piece in batch]), np.float64)
        # A vector without direction has no cosine; at the client's side it is refused likewise.
        usable = np.isfinite(floats).all(axis=1) & (np.abs(floats).max(axis=1, initial=0) > 0)
        if not usable.all():
            bad = batch[int(np.argmin(usable))].id
            raise InputError(
                f"The embedder gives the document {bad!r} no usable vector.",
                "Leave it out; a text needs words that the embedder can place.",
            )
        found[start : start + len(batch)] = quantise(floats, policy.mechanism)
    return found


def _free_slots(
    connection: Connection, tenant: int, capacity: int, pieces: Sequence[Document]
) -> list[int]:
    rows = connection.execute(
        select(documents.c.slot, documents.c.name).where(documents.c.tenant == tenant)
    ).all()
    names = {row.name for row in rows}
    for piece in pieces:
        if piece.id in names:
            raise InputError(
                f"There is a document {piece.id!r} already.", "Ids are unique within a tenant."
            )
        names.add(piece.id)
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
