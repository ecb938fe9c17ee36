"""The three meters of a query: its account's, its payer's, and the index's odometer.

All three are charged in one transaction before the answer is computed, so that a crash can only
waste budget. The tenant's row is locked first: the charges of one index have one order, whatever
worker they come from. The odometer is kept in memory and follows the charges that others have
stored; every few hundred it is stored itself and their vectors are erased.

A window gets its grant when it opens, out of the tenant's budget for life: mu adds up in squares
over its windows. A window under way counts with its grant, a closed one with its spending. Nothing
here depends on another tenant.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from ragwitness.core.errors import InputError
from ragwitness.privacy.odometer import Odometer
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.principals import Principal
from ragwitness.service.store import Owner, Store, read_counts, write_counts
from ragwitness.service.tables import accounts, charges, tenants, windows

_FOLD = 256  # charges after which the odometer is stored
_MOST_METERS = 300  # in memory: 1 GiB at dimension 384

# Statements of every charge, put together once: that takes longer than to run them.
_TENANT: BindParameter[int] = bindparam("t")
_HERE = and_(windows.c.tenant == _TENANT, windows.c.number == bindparam("w"))
_LOCK = select(tenants.c.id).where(tenants.c.id == _TENANT).with_for_update()
_LIVE = select(accounts.c.id).where(
    accounts.c.id.in_(bindparam("ids", expanding=True)), accounts.c.revoked.is_(None)
)
_WINDOW = select(  # without the odometer's state, which is large and mostly known
    windows.c.charged, windows.c.folded, windows.c.granted, windows.c.final
).where(_HERE)
_STATE = select(windows.c.state).where(_HERE)
_CHARGED = update(windows).where(_HERE).values(charged=bindparam("n"))
_CHARGE = insert(charges)
_LATER = (
    select(charges.c.vector)
    .where(charges.c.tenant == _TENANT, charges.c.window == bindparam("w"))
    .where(charges.c.number >= bindparam("n"))
    .order_by(charges.c.number)
)


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """One query that wants to be answered.

    Attributes:
        tenant: Row of the tenant.
        account: Row of the account.
        payer: Row of the payer.
        policy: Policy of the tenant.
        window: Number of the audit window.
        vector: Quantised query, shape (dimension,).
        seconds_left: Until the next window.
    """

    tenant: int
    account: int
    payer: int
    policy: TenantPolicy = field(repr=False)
    window: int
    vector: NDArray[np.int16] = field(repr=False)
    seconds_left: int = 0


class SpentError(Exception):
    """A meter has no room for a query; nothing was charged.

    Args:
        by: ``account``, ``payer``, ``index``, or ``key`` for one revoked meanwhile; for the
            operator's log alone.
        seconds_left: Until the next window.
    """

    def __init__(self, by: str, seconds_left: int) -> None:
        super().__init__(by)
        self.by, self.seconds_left = by, seconds_left


def window_of(created: int, length: int, now: float) -> tuple[int, int]:
    """Return the number of the audit window, from 0, and the seconds until the next.

    Args:
        created: When the tenant was, seconds since the epoch.
        length: Length of a window, seconds.
        now: Seconds since the epoch; before ``created`` it counts as that.
    """
    number, into = divmod(max(0, int(now) - created), length)
    return number, length - into


class Meters:
    """Charges queries; for one thread, since odometers stay in memory between transactions."""

    def __init__(self) -> None:
        self._meters: OrderedDict[tuple[int, int], Odometer] = OrderedDict()

    def forget(self) -> None:
        """Drop what is in memory: a transaction failed, and the database alone knows the truth."""
        self._meters.clear()

    def charge(self, connection: Connection, requests: Sequence[ChargeRequest]) -> list[str]:
        """Charge queries in one transaction of the caller's, each wholly or not at all.

        After anything but a confirmed commit, :meth:`forget` must be called.

        Args:
            connection: Connection in a transaction that may write.
            requests: Requests of any tenants.

        Returns:
            For each query, in order, the meter that refused it; empty where it is paid for.
        """
        # In order of their rows, so that two workers never wait for each other.
        for tenant in sorted({request.tenant for request in requests}):
            connection.execute(_LOCK, {"t": tenant})
        ids = sorted({request.account for request in requests})
        live = set(connection.execute(_LIVE, {"ids": ids}).scalars())
        before = read_counts(connection, (key for request in requests for key in _owners(request)))
        after = dict(before)
        policies = {(request.tenant, request.window): request.policy for request in requests}
        opened = {key: self._open(connection, *key, policies[key]) for key in sorted(policies)}
        fresh: dict[tuple[int, int], list[bytes]] = {key: [] for key in opened}
        outcomes = []
        for request in requests:
            window = request.tenant, request.window
            outcome = _try(request, after, live, opened[window])
            if not outcome:
                fresh[window].append(request.vector.astype("<i2").tobytes())
            outcomes.append(outcome)
        write_counts(connection, {key: n for key, n in after.items() if before.get(key) != n})
        for key, vectors in fresh.items():
            _append(connection, key, opened[key], vectors)
        return outcomes

    def _open(
        self, connection: Connection, tenant: int, window: int, policy: TenantPolicy
    ) -> _Index:
        """Return a window's odometer, brought up to the last charge."""
        key = {"t": tenant, "w": window}
        row = connection.execute(_WINDOW, key).one_or_none()
        if row is None or row.final is not None:
            # A window opens, or a clock that was set back returns to it: the others are over.
            _close_others(connection, tenant, window, policy)
            grant = _grant(connection, tenant, policy, 0.0 if row is None else row.final)
            values = {"final": None, "granted": grant}
            if row is None:
                connection.execute(insert(windows).values(tenant=tenant, number=window, **values))
            else:
                this_window = and_(windows.c.tenant == tenant, windows.c.number == window)
                connection.execute(update(windows).where(this_window).values(**values))
            row = connection.execute(_WINDOW, key).one()
        granted = policy.budget if row.granted is None else row.granted
        if not granted:
            return _Index(None, row.charged, row.folded)
        # The meter in memory serves where it lies between the stored state and the last charge.
        meter = self._meters.pop((tenant, window), None)
        current = meter is not None and row.folded <= meter.queries <= row.charged
        if meter is None or not current or meter.terms.budget != granted:
            meter = policy.meter(connection.execute(_STATE, key).scalar_one(), granted)
        if meter.queries < row.charged:
            meter.add(charged_vectors(connection, tenant, window, meter.queries))
        self._meters[tenant, window] = meter
        if len(self._meters) > _MOST_METERS:
            self._meters.popitem(last=False)
        return _Index(meter, row.charged, row.folded)


def _close_others(connection: Connection, tenant: int, window: int, policy: TenantPolicy) -> None:
    """Settle the spending of a tenant's other windows, and erase their vectors."""
    of_tenant = windows.c.tenant == tenant
    rest = select(windows).where(of_tenant, windows.c.final.is_(None), windows.c.number != window)
    # Each open window becomes final with the mu that it has spent.
    for row in connection.execute(rest).all():
        meter = meter_of(connection, policy, row)
        values = {"folded": row.charged, "state": meter.to_bytes(), "final": meter.mu()}
        this_window = and_(of_tenant, windows.c.number == row.number)
        connection.execute(update(windows).where(this_window).values(**values))
    connection.execute(delete(charges).where(charges.c.tenant == tenant))


def _grant(connection: Connection, tenant: int, policy: TenantPolicy, before: float) -> float:
    """Return the mu that a window may spend: its budget, or the rest for life if that is less.

    The mu that the window has spent ``before`` is part of the used mu.
    """
    room = max(0.0, policy.life**2 - used_for_life(connection, tenant, policy)) + before * before
    return min(policy.budget, math.sqrt(room))


def used_for_life(connection: Connection, tenant: int, policy: TenantPolicy) -> float:
    """Return the square of the mu that counts as spent by all windows of a tenant."""
    query = select(tenants.c.used).where(tenants.c.id == tenant)
    used = float(connection.execute(query).scalar() or 0.0)
    every = select(windows.c.granted, windows.c.final).where(windows.c.tenant == tenant)
    for row in connection.execute(every):
        granted = policy.budget if row.granted is None else row.granted
        used += (granted if row.final is None else row.final) ** 2
    return used


@dataclass(slots=True)
class _Index:
    # None: the budget for life is spent.
    meter: Odometer | None
    charged: int
    folded: int


def _try(request: ChargeRequest, counts: dict[Owner, int], live: set[int], index: _Index) -> str:
    """Charge one query in memory if all three meters have room; return which has none."""
    account, payer = _owners(request)
    by_account, by_payer = counts.get(account, 0), counts.get(payer, 0)
    limit = request.policy.claim.payer_queries
    if request.account not in live:
        return "key"
    if index.meter is None:
        return "index"
    if by_account >= request.policy.claim.queries:
        return "account"
    if limit is not None and by_payer >= limit:
        return "payer"
    if not index.meter.charge(request.vector):  # last: it remembers each query that it accepts
        return "index"
    # All three have room: the query takes its place in each.
    counts[account], counts[payer] = by_account + 1, by_payer + 1
    return ""


def _owners(request: ChargeRequest) -> tuple[Owner, Owner]:
    account = ("account", request.account, request.window)
    return account, ("payer", request.payer, request.window)


def _append(
    connection: Connection, key: tuple[int, int], index: _Index, vectors: list[bytes]
) -> None:
    """Store new charges; now and then the odometer itself, in their stead."""
    meter = index.meter
    if not vectors or meter is None:
        return
    tenant, window = key
    charged = index.charged + len(vectors)
    connection.execute(_CHARGED, {"t": tenant, "w": window, "n": charged})
    # Fold: the stored odometer replaces the vectors of its charges.
    if charged - index.folded >= _FOLD:
        this_window = and_(windows.c.tenant == tenant, windows.c.number == window)
        values = {"folded": charged, "state": meter.to_bytes()}
        connection.execute(update(windows).where(this_window).values(**values))
        folded = and_(charges.c.tenant == tenant, charges.c.window == window)
        connection.execute(delete(charges).where(folded))
        return
    # Otherwise the vectors are appended, to be folded later.
    rows = [
        {"tenant": tenant, "window": window, "number": index.charged + i, "vector": vector}
        for i, vector in enumerate(vectors)
    ]
    connection.execute(_CHARGE, rows)


def meter_of(connection: Connection, policy: TenantPolicy, window: Row[Any]) -> Odometer:
    """Return the meter of an index's window: its stored state, and what was charged since."""
    meter = policy.meter(window.state, window.granted)
    if window.folded < window.charged:
        meter.add(charged_vectors(connection, window.tenant, window.number, window.folded))
    return meter


def charged_vectors(
    connection: Connection, tenant: int, window: int, start: int
) -> NDArray[np.int16]:
    """Return the vectors of a window's charges from number ``start`` on, shape (n, dimension)."""
    rows = connection.execute(_LATER, {"t": tenant, "w": window, "n": start}).scalars()
    return np.stack([np.frombuffer(vector, "<i2") for vector in rows])


# One thread per process charges queries: all that wait share one transaction.
#
# A commit has to reach the disk, which takes milliseconds. Two hundred queries in flight would
# wait for two hundred of them.

_TOGETHER = 64
"""Most queries of one transaction: the others of its tenants wait that long."""


class Reserver:
    """Charges queries of one process, in the order they come.

    Args:
        store: Where the meters are.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._meters = Meters()
        self._waiting: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="meters", daemon=True)
        self._thread.start()

    def window(self, principal: Principal) -> tuple[int, int]:
        """Return the number of the tenant's window and the seconds until the next."""
        return window_of(principal.created, principal.policy.claim.window, self._clock())

    def charge(self, principal: Principal, vector: NDArray[np.int16]) -> Future[None]:
        """Charge a query of an account in the window under way, as :meth:`reserve` does."""
        number, seconds_left = self.window(principal)
        return self.reserve(
            ChargeRequest(
                principal.tenant,
                principal.account,
                principal.payer,
                principal.policy,
                number,
                vector,
                seconds_left,
            )
        )

    def reserve(self, request: ChargeRequest) -> Future[None]:
        """Charge a query; it is paid for, durably, once the result is there.

        The result's error is :class:`SpentError`, or :class:`StoreGoneError` where the database
        failed; the query may have been charged then.
        """
        pending: _Pending = (request, Future())
        self._waiting.put(pending)
        return pending[1]

    def close(self) -> None:
        """Finish what waits and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            batch, last = self._drain_queue()
            # Cancelled requests are not charged.
            live = [pending for pending in batch if pending[1].set_running_or_notify_cancel()]
            if live:
                self._charge(live)
            if last:
                return

    def _drain_queue(self) -> tuple[list[_Pending], bool]:
        """Return the requests that wait, at least one, and whether they are the last."""
        batch: list[_Pending] = []
        # Block for the first request only; then take all that wait.
        while len(batch) < _TOGETHER:
            if len(batch) == 1 and not self._waiting.empty():
                time.sleep(0.002)  # others are on their way: one transaction for all
            try:
                pending = self._waiting.get(block=not batch)
            except queue.Empty:
                break
            if pending is None:
                return batch, True
            batch.append(pending)
        return batch, False

    def _charge(self, batch: list[_Pending]) -> None:
        try:
            with self._store.writing() as connection:
                outcomes = self._meters.charge(connection, [request for request, _ in batch])
        except BaseException as error:  # keep the thread alive and fail every waiting query
            self._meters.forget()
            tenants = sorted({request.tenant for request, _ in batch})
            if isinstance(error, InputError) and len(tenants) > 1:
                # The stored state of one tenant cannot be read; nothing was committed. Charge each
                # tenant alone, so that the others go on.
                for tenant in tenants:
                    self._charge([pending for pending in batch if pending[0].tenant == tenant])
                return
            for _, future in batch:
                future.set_exception(error)
            return
        for (request, future), refused_by in zip(batch, outcomes, strict=True):
            if refused_by:
                future.set_exception(SpentError(refused_by, request.seconds_left))
            else:
                future.set_result(None)


_Pending = tuple[ChargeRequest, "Future[None]"]
