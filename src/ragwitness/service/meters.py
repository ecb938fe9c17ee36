"""The three meters of a query: its account's, its payer's, and the index's odometer.

All three are charged in one transaction before the answer is computed, so that a crash can only
waste budget. The tenant's row is locked first: the charges of one index have one order, whatever
worker they come from. The odometer is kept in memory and follows the charges that others have
stored; every few hundred it is stored itself and their vectors are erased.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, and_, delete, insert, select, update

from ragwitness.privacy.odometer import Odometer
from ragwitness.privacy.streams import SEED_BYTES
from ragwitness.service.counts import Owner, read_counts, write_counts
from ragwitness.service.policy import Policy
from ragwitness.service.schema import accounts, attested, charges, tenants, windows

__all__ = ["Ask", "Meters", "Reading", "Refused", "Reserved", "load_odometer", "window_of"]

_FOLD = 256  # charges after which the odometer is stored
_KEPT = 32  # odometers in memory; each takes some 4 MB at dimension 384


@dataclass(frozen=True, slots=True)
class Ask:
    """One query that wants to be answered.

    Attributes:
        tenant: Row of the tenant.
        account: Row of the account.
        payer: Row of the payer.
        policy: Of the tenant.
        window: Number of the audit window.
        vector: Quantised query, shape (dimension,).
        log: Hash of the open record of the log that will hold the answer; None: it is in none.
    """

    tenant: int
    account: int
    payer: int
    policy: Policy = field(repr=False)
    window: int
    vector: NDArray[np.int16] = field(repr=False)
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What an account may know of its meters.

    Attributes:
        account: Queries of this account in this window.
        payer: Queries of all accounts of its payer.
    """

    account: int
    payer: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """A query that is paid for.

    Attributes:
        seed: Secret of the window.
        sequence: Queries of this account in this window before this one.
        place: Of the account; with ``sequence`` it numbers the record.
        reading: The meters after it.
    """

    seed: bytes = field(repr=False)
    sequence: int
    place: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class Refused:
    """A query that a meter turned away; nothing was charged.

    Attributes:
        by: ``account``, ``payer``, ``index``, ``key`` for one revoked meanwhile, or ``log``: the
            window's answers stand in a log, and this one's would stand in another or none.
        reading: The meters as they stand.
    """

    by: str
    reading: Reading


def window_of(created: int, length: int, now: float) -> tuple[int, int]:
    """Return the number of the audit window, from 0, and the seconds until the next.

    Args:
        created: When the tenant was, seconds since the epoch.
        length: Of a window, seconds.
        now: Seconds since the epoch; before ``created`` it counts as that.
    """
    number, into = divmod(max(0, int(now) - created), length)
    return number, length - into


class Meters:
    """Charges queries; for one thread, since odometers stay in memory between transactions."""

    def __init__(self) -> None:
        self._odometers: OrderedDict[tuple[int, int], Odometer] = OrderedDict()

    def forget(self) -> None:
        """Drop what is in memory: a transaction failed, and the database alone knows the truth."""
        self._odometers.clear()

    def charge(self, connection: Connection, asks: Sequence[Ask]) -> list[Reserved | Refused]:
        """Charge queries in one transaction of the caller's, each wholly or not at all.

        After anything but a confirmed commit, :meth:`forget` must be called.

        Args:
            connection: In a transaction that may write.
            asks: Of any tenants.

        Returns:
            One outcome per query, in order.
        """
        # In order of their rows, so that two workers never wait for each other.
        for tenant in sorted({ask.tenant for ask in asks}):
            connection.execute(select(tenants.c.id).where(tenants.c.id == tenant).with_for_update())
        places = _places(connection, {ask.account for ask in asks})
        before = read_counts(connection, (key for ask in asks for key in _owners(ask)))
        after = dict(before)
        opened = {key: self._open(connection, *key, of) for key, of in _indexes(asks).items()}
        fresh: dict[tuple[int, int], list[bytes]] = {key: [] for key in opened}
        outcomes = []
        for ask in asks:
            outcome = _try(ask, after, places, opened[ask.tenant, ask.window])
            if isinstance(outcome, Reserved):
                fresh[ask.tenant, ask.window].append(ask.vector.astype("<i2").tobytes())
            outcomes.append(outcome)
        write_counts(connection, before, after)
        for key, vectors in fresh.items():
            _append(connection, key, opened[key], vectors)
        return outcomes

    def _open(self, connection: Connection, tenant: int, window: int, policy: Policy) -> _Index:
        """Return a window's seed and its odometer, brought up to the last charge."""
        here = and_(windows.c.tenant == tenant, windows.c.number == window)
        # Without the odometer's state, which is large and mostly known.
        query = select(windows.c.seed, windows.c.charged, windows.c.folded).where(here)
        row = connection.execute(query).one_or_none()
        if row is None:
            values = {"tenant": tenant, "number": window, "seed": os.urandom(SEED_BYTES)}
            connection.execute(insert(windows).values(**values))
            _fold_earlier(connection, tenant, policy)
            row = connection.execute(query).one()
        meter = self._odometers.pop((tenant, window), None)
        if meter is None or not row.folded <= meter.queries <= row.charged:
            state = connection.execute(select(windows.c.state).where(here)).scalar_one()
            meter = load_odometer(state, policy)
        if meter.queries < row.charged:
            meter.add(_vectors(connection, tenant, window, meter.queries))
        self._odometers[tenant, window] = meter
        while len(self._odometers) > _KEPT:
            self._odometers.popitem(last=False)
        logged = select(attested.c.log)
        logged = logged.where(attested.c.tenant == tenant, attested.c.window == window)
        log = connection.execute(logged).scalar()
        return _Index(row.seed, meter, row.charged, row.folded, log)


def _fold_earlier(connection: Connection, tenant: int, policy: Policy) -> None:
    """Store the odometers of a tenant's other windows; erase their vectors."""
    mine = windows.c.tenant == tenant
    rest = select(windows).where(mine, windows.c.folded < windows.c.charged)
    for row in connection.execute(rest).all():
        meter = load_odometer(row.state, policy)
        meter.add(_vectors(connection, tenant, row.number, row.folded))
        values = {"folded": row.charged, "state": meter.to_bytes()}
        here = and_(mine, windows.c.number == row.number)
        connection.execute(update(windows).where(here).values(values))
    connection.execute(delete(charges).where(charges.c.tenant == tenant))


def load_odometer(state: bytes | None, policy: Policy) -> Odometer:
    """Return the odometer of a window's first ``folded`` charges, as stored; None: of none."""
    return Odometer.from_bytes(state) if state else Odometer(policy.terms)


@dataclass(slots=True)
class _Index:
    seed: bytes
    meter: Odometer
    charged: int
    folded: int
    log: str | None


def _try(
    ask: Ask, counts: dict[Owner, int], places: dict[int, int], index: _Index
) -> Reserved | Refused:
    """Charge one query in memory if all three meters have room."""
    mine, theirs = _owners(ask)
    account, payer = counts.get(mine, 0), counts.get(theirs, 0)
    limit = ask.policy.claim.payer_queries
    by = ""
    if ask.account not in places:
        by = "key"
    elif ask.log != index.log:
        by = "log"
    elif account >= ask.policy.claim.queries:
        by = "account"
    elif limit is not None and payer >= limit:
        by = "payer"
    elif not index.meter.charge(ask.vector):  # last: it remembers what it has accepted
        by = "index"
    if by:
        return Refused(by, Reading(account, payer))
    counts[mine], counts[theirs] = account + 1, payer + 1
    return Reserved(index.seed, account, places[ask.account], Reading(account + 1, payer + 1))


def _owners(ask: Ask) -> tuple[Owner, Owner]:
    return ("account", ask.account, ask.window), ("payer", ask.payer, ask.window)


def _indexes(asks: Sequence[Ask]) -> dict[tuple[int, int], Policy]:
    return {(ask.tenant, ask.window): ask.policy for ask in asks}


def _places(connection: Connection, ids: Iterable[int]) -> dict[int, int]:
    """Places of the accounts that are not revoked."""
    query = select(accounts.c.id, accounts.c.place)
    query = query.where(accounts.c.id.in_(sorted(ids)), accounts.c.revoked.is_(None))
    return {row.id: row.place for row in connection.execute(query)}


def _append(
    connection: Connection, key: tuple[int, int], index: _Index, vectors: list[bytes]
) -> None:
    """Store new charges; now and then the odometer itself, in their stead."""
    if not vectors:
        return
    tenant, window = key
    charged = index.charged + len(vectors)
    values: dict[str, object] = {"charged": charged}
    mine = and_(charges.c.tenant == tenant, charges.c.window == window)
    if charged - index.folded >= _FOLD:
        values |= {"folded": charged, "state": index.meter.to_bytes()}
        connection.execute(delete(charges).where(mine))
    else:
        rows = [
            {"tenant": tenant, "window": window, "number": index.charged + i, "vector": vector}
            for i, vector in enumerate(vectors)
        ]
        connection.execute(insert(charges), rows)
    here = and_(windows.c.tenant == tenant, windows.c.number == window)
    connection.execute(update(windows).where(here).values(**values))


def _vectors(connection: Connection, tenant: int, window: int, start: int) -> NDArray[np.int16]:
    query = select(charges.c.vector).where(
        charges.c.tenant == tenant, charges.c.window == window, charges.c.number >= start
    )
    found = connection.execute(query.order_by(charges.c.number)).scalars()
    return np.stack([np.frombuffer(one, "<i2") for one in found])
