"""Budgets of single texts: an index whose documents leave selection one by one.

In a window a text may spend what the window may, over its life what its contents may, and both by
its own scores alone (``privacy.odometer.documents``). The window's meter holds what was spent in
it; when the window is over, that goes to the text's own account, beside its hash, where every
tenant that holds the text finds it. Until then the window counts as what it may spend of the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, bindparam, func, select, update

from ragwitness.privacy.mechanism.release import Rows, SlotIndex, check_rows, scores
from ragwitness.privacy.odometer.documents import DocumentMeter, limit_of, mu_of_sum
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import (
    charges,
    content_digest,
    contents,
    documents,
    lives,
    tenants,
    windows,
)


@dataclass(slots=True)
class TextIndex:
    """A tenant's index as it is now, and the meter of one window's texts.

    Attributes:
        edition: Edition of the index.
        index: Its vectors.
        meter: Meter of its texts, and of those that stood in it earlier in the window.
        queries: Charges of the window that the meter holds.
        policy: Policy of the tenant.
    """

    edition: int
    index: SlotIndex
    meter: DocumentMeter
    queries: int
    policy: TenantPolicy

    def charge(self, vector: NDArray[np.int16]) -> NDArray[np.int64]:
        """Charge one query to the texts that have room; return the scores it may be answered by.

        Args:
            vector: Quantised query, shape (dimension,).
        """
        mechanism = self.policy.mechanism
        [exact] = scores(check_rows(vector, mechanism), self.index, mechanism)
        self.queries += 1
        return self.meter.charge(exact)

    def to_bytes(self) -> bytes:
        """Return the meter's state."""
        return self.meter.to_bytes()

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        slots, dimension = self.index.shape
        return 4 * slots * dimension


def open_texts(
    connection: Connection,
    here: tuple[int, int],
    life: int,
    policy: TenantPolicy,
    held: TextIndex | None = None,
    *,
    opened: bool = False,
) -> TextIndex:
    """Return a tenant's index with the meter of a window under way, up to the last charge.

    Args:
        connection: Connection in a transaction that holds the tenant's lock.
        here: Row of the tenant, and number of the window.
        life: Id of this life of the tenant.
        policy: Policy of the tenant.
        held: What this gave before; read anew where it is of another edition.
        opened: Whether the window has opened, or opened again, in this transaction.
    """
    tenant, window = here
    edition = connection.execute(select(tenants.c.edition).where(tenants.c.id == tenant)).scalar()
    this = and_(windows.c.tenant == tenant, windows.c.number == window)
    row = connection.execute(
        select(windows.c.charged, windows.c.folded, windows.c.granted).where(this)
    ).one()
    known = held is not None and row.folded <= held.queries <= row.charged
    if held is None or held.edition != edition or not known or opened:
        # 1. The stored meter, and the texts as they stand: no text changes between two states.
        state = connection.execute(select(windows.c.state).where(this)).scalar()
        held, seats = _read(connection, here, policy, state, row.folded)
        # 2. Texts that are new to the window get what they have left; written down at once, so
        #    that whoever replays the charges decides alike.
        fresh = {text for text in seats.values() if opened or text not in held.meter}
        if fresh:
            _admit(connection, here, life, held, row.granted, fresh)
            connection.execute(update(windows).where(this).values(state=held.to_bytes()))
        held.meter.seat([*seats], [*seats.values()])
    # 3. Charges of other processes, in their order.
    _replay(connection, here, held, row.charged)
    return held


def fold_texts(
    connection: Connection, tenant: int, life: int, policy: TenantPolicy, *, over: bool = False
) -> None:
    """Store the meters of a tenant's windows under way: before its texts change, or at their end.

    Args:
        connection: Connection in a transaction that holds the tenant's lock.
        tenant: Row of the tenant.
        life: Id of this life of the tenant.
        policy: Policy of the tenant.
        over: What was spent goes over to the texts' own accounts; the windows reserve nothing more.
    """
    query = select(windows.c.number, windows.c.charged, windows.c.granted)
    query = query.where(windows.c.tenant == tenant, windows.c.final.is_(None))
    for row in connection.execute(query.order_by(windows.c.number)).all():
        if not row.granted:
            continue
        held = open_texts(connection, (tenant, row.number), life, policy)
        if over:
            _settle(connection, life, held)
        values = {"folded": row.charged, "state": held.to_bytes()}
        this = and_(windows.c.tenant == tenant, windows.c.number == row.number)
        connection.execute(update(windows).where(this).values(**values))
        here = and_(charges.c.tenant == tenant, charges.c.window == row.number)
        connection.execute(charges.delete().where(here))


def spent_by_texts(
    connection: Connection, life: int, window: tuple[int, int] | None = None
) -> dict[str, float]:
    """Return what each text of a life has spent, or in one window: mu squared.

    Args:
        connection: Connection of one moment.
        life: Ids of the lives of the tenants.
        window: Row of a tenant and number of its window; None: all windows of all tenants.
    """
    found = {} if window else _used(connection, life)
    for row in connection.execute(select(tenants).where(tenants.c.life == life)).all():
        policy = TenantPolicy.from_json(row.policy)
        sigma = policy.mechanism.gaussian_sigma
        query = select(windows).where(windows.c.tenant == row.id, windows.c.state.is_not(None))
        query = query.where(windows.c.final.is_(None)) if window is None else query
        for one in connection.execute(query).all():
            here = (row.id, one.number)
            if window not in (None, here):
                continue
            held, seats = _read(connection, here, policy, one.state, one.folded)
            known = {slot: text for slot, text in seats.items() if text in held.meter}
            held.meter.seat([*known], [*known.values()])
            _replay(connection, here, held, one.charged)
            told = held.meter.spent() if window else held.meter.unsettled()
            for text, squares in told.items():
                found[text] = found.get(text, 0.0) + mu_of_sum(squares, sigma) ** 2
    return found


def _used(connection: Connection, life: int) -> dict[str, float]:
    """Return what each text of a life has spent in windows that are over: mu squared."""
    query = select(contents.c.digest, contents.c.used).where(contents.c.life == life)
    return {row.digest: row.used or 0.0 for row in connection.execute(query)}


def _reserved(connection: Connection, life: int, but: tuple[int, int]) -> dict[str, float]:
    """Return what other windows under way have reserved of each text's account: mu squared.

    Only windows in which the text stands: what a text may spend hangs on no other text.
    """
    found: dict[str, float] = {}
    query = select(windows.c.tenant, windows.c.number, windows.c.state, tenants.c.policy)
    query = query.join(tenants, tenants.c.id == windows.c.tenant)
    query = query.where(tenants.c.life == life, windows.c.final.is_(None))
    for row in connection.execute(query.where(windows.c.state.is_not(None))).all():
        if (row.tenant, row.number) == but:
            continue
        sigma = TenantPolicy.from_json(row.policy).mechanism.gaussian_sigma
        for text, squares in DocumentMeter.from_bytes(row.state).outstanding().items():
            found[text] = found.get(text, 0.0) + mu_of_sum(squares, sigma) ** 2
    return found


def _replay(connection: Connection, here: tuple[int, int], held: TextIndex, charged: int) -> None:
    """Charge a meter with what was charged since, in order."""
    if held.queries >= charged:
        return
    later = and_(charges.c.tenant == here[0], charges.c.window == here[1])
    found = select(charges.c.vector).where(later, charges.c.number >= held.queries)
    for vector in connection.execute(found.order_by(charges.c.number)).scalars().all():
        held.charge(np.frombuffer(vector, "<i2"))


def _read(
    connection: Connection,
    here: tuple[int, int],
    policy: TenantPolicy,
    state: bytes | None,
    folded: int,
) -> tuple[TextIndex, dict[int, str]]:
    """Return the index and a stored meter, and which text stands in which slot."""
    mechanism = policy.mechanism
    edition = select(tenants.c.edition).where(tenants.c.id == here[0])
    vectors: Rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    seats = {}
    query = select(documents.c.slot, documents.c.text, documents.c.vector)
    for row in connection.execute(query.where(documents.c.tenant == here[0])):
        vectors[row.slot] = np.frombuffer(row.vector, "<i2")
        seats[row.slot] = content_digest(row.text)
    meter = DocumentMeter.from_bytes(state) if state else DocumentMeter(mechanism.empty_score)
    number = int(connection.execute(edition).scalar_one())
    return TextIndex(number, SlotIndex(vectors, mechanism), meter, folded, policy), seats


def _admit(
    connection: Connection,
    here: tuple[int, int],
    life: int,
    held: TextIndex,
    granted: float,
    wanted: Iterable[str],
) -> None:
    """Give texts of a window their budgets, beside what they have spent in it.

    A text may spend what the window was granted, and no more than its own account and the other
    windows under way leave.
    """
    # 1. Its account, under the life's lock: every tenant that holds the text is of this life.
    connection.execute(select(lives.c.id).where(lives.c.id == life).with_for_update())
    query = select(contents.c.digest, contents.c.used, contents.c.most)
    rows = connection.execute(query.where(contents.c.life == life)).all()
    account = {row.digest: (row.most or 0.0, row.used or 0.0) for row in rows}
    reserved = _reserved(connection, life, here)
    # 2. What this window may spend of it; what it has spent already stands in both.
    settled = held.meter.settled()
    sigma = held.policy.mechanism.gaussian_sigma
    limits = {}
    for text in wanted:
        most, used = account[text]
        room = max(0.0, most * most - used - reserved.get(text, 0.0))
        more = limit_of(math.sqrt(min(room, granted * granted)), sigma)
        limits[text] = min(limit_of(granted, sigma), settled.get(text, 0) + more)
    held.meter.admit(limits)


def _settle(connection: Connection, life: int, held: TextIndex) -> None:
    """Write what texts have spent to their own accounts, rounded up."""
    sigma = held.policy.mechanism.gaussian_sigma
    rows = [
        {"d": text, "m": squares / sigma**2 * (1 + 1e-12)}
        for text, squares in held.meter.settle().items()
    ]
    if rows:
        here = and_(contents.c.digest == bindparam("d"), contents.c.life == life)
        more = func.coalesce(contents.c.used, 0.0) + bindparam("m")
        connection.execute(update(contents).where(here).values(used=more), rows)
