"""What an operator sees: tenants, accounts, and how much of each budget is spent."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.service.meters import life_of, load_odometer, window_of
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import (
    Store,
    accounts,
    charges,
    documents,
    payers,
    spent,
    tenants,
    windows,
)
from ragwitness.service.tenants import find_tenant


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in a list.

    Attributes:
        name: Of the tenant.
        documents: Slots in use.
        capacity: Slots in all.
        accounts: Accounts that are not revoked.
        embedder: Name of its embedder.
        account_epsilon: Promised to an account, at ``account_delta``.
        account_delta: Of an account.
        joint_epsilon: Budget of the index per window, at ``joint_delta``.
        joint_delta: Of the index.
    """

    name: str
    documents: int
    capacity: int
    accounts: int
    embedder: str
    account_epsilon: float
    account_delta: float
    joint_epsilon: float | None
    joint_delta: float


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account's meter in the window under way.

    Attributes:
        name: Of the account.
        payer: Who pays for it.
        queries: Charged.
        payer_queries: Charged to all accounts of the payer.
        revoked: Whether its access has ended.
    """

    name: str
    payer: str
    queries: int
    payer_queries: int
    revoked: bool


@dataclass(frozen=True, slots=True)
class TenantBudget:
    """What a tenant's index has spent.

    Attributes:
        tenant: Name.
        window: Number of the window under way.
        seconds_left: Until the next.
        queries: Charged in this window, over all accounts.
        mu: Odometer of this window.
        budget: mu it may not pass.
        epsilon: Spent in this window, at ``delta``.
        joint_epsilon: Budget of a window.
        delta: Of both.
        all_windows: Windows in which anything was charged.
        all_epsilon: Spent by all windows together, at ``delta``.
        life_epsilon: Of the contents over all windows and tenants that hold them, the windows
            under way counted as what they may spend, at ``delta``.
        lifetime_epsilon: What that may not pass; None for a tenant made without such a promise.
        shares: Other tenants that the budget for life is shared with.
        account_limit: Queries of an account per window.
        payer_limit: Queries of a payer per window.
        accounts: Meters of the accounts.
    """

    tenant: str
    window: int
    seconds_left: int
    queries: int
    mu: float
    budget: float
    epsilon: float
    joint_epsilon: float | None
    delta: float
    all_windows: int
    all_epsilon: float
    life_epsilon: float
    lifetime_epsilon: float | None
    shares: tuple[str, ...]
    account_limit: int
    payer_limit: int | None
    accounts: tuple[AccountRow, ...]


def list_tenants(store: Store) -> list[TenantRow]:
    """Return all tenants by name."""
    with store.reading() as connection:
        rows = connection.execute(select(tenants).order_by(tenants.c.name)).all()
        return [
            _tenant(connection, row.id, row.name, TenantPolicy.from_json(row.policy))
            for row in rows
        ]


def budget_of(store: Store, tenant: str, now: float | None = None) -> TenantBudget:
    """Return the meters of a tenant.

    Raises:
        InputError: No such tenant.
    """
    with store.reading(frozen=True) as connection:
        row = find_tenant(connection, tenant)
        policy = TenantPolicy.from_json(row.policy)
        claim = policy.claim
        moment = time.time() if now is None else now
        # The window under way; one in which nothing was charged has spent nothing.
        window, left = window_of(row.created, claim.window, moment)
        every = _mus(connection, row.id, policy)
        queries, mu = every.get(window, (0, 0.0))
        most, used = life_of(connection, row.life)
        # Gaussian composition over windows: the squares of mu add up.
        together = math.sqrt(sum(one * one for _, one in every.values()))
        return TenantBudget(
            tenant=tenant,
            window=window,
            seconds_left=left,
            queries=queries,
            mu=mu,
            budget=policy.budget,
            epsilon=epsilon_at(claim.joint_delta, mu),
            joint_epsilon=claim.joint_epsilon,
            delta=claim.joint_delta,
            all_windows=len(every),
            all_epsilon=epsilon_at(claim.joint_delta, together),
            life_epsilon=epsilon_at(claim.joint_delta, math.sqrt(used)),
            lifetime_epsilon=None if math.isinf(most) else epsilon_at(claim.joint_delta, most),
            shares=_shares(connection, row),
            account_limit=claim.queries,
            payer_limit=claim.payer_queries,
            accounts=_accounts(connection, row.id, window),
        )


def _shares(connection: Connection, row: Any) -> tuple[str, ...]:
    query = select(tenants.c.name).where(tenants.c.life == row.life, tenants.c.id != row.id)
    return tuple(connection.execute(query.order_by(tenants.c.name)).scalars())


def _tenant(connection: Connection, tenant: int, name: str, policy: TenantPolicy) -> TenantRow:
    claim = policy.claim
    # Occupied slots and live accounts; an operator alone sees either number.
    held = select(func.count()).select_from(documents).where(documents.c.tenant == tenant)
    live = select(func.count()).select_from(accounts)
    live = live.where(accounts.c.tenant == tenant, accounts.c.revoked.is_(None))
    return TenantRow(
        name,
        connection.execute(held).scalar_one(),
        claim.capacity,
        connection.execute(live).scalar_one(),
        claim.embedder,
        claim.epsilon,
        claim.delta,
        claim.joint_epsilon,
        claim.joint_delta,
    )


def _mus(connection: Connection, tenant: int, policy: TenantPolicy) -> dict[int, tuple[int, float]]:
    """Charges and odometer of each window."""
    found = {}
    for row in connection.execute(select(windows).where(windows.c.tenant == tenant)).all():
        if not row.charged:
            continue
        # The stored state covers the first `folded` charges; those that came later are added again.
        meter = load_odometer(row.state, policy, row.granted)
        later = select(charges.c.vector).where(
            charges.c.tenant == tenant,
            charges.c.window == row.number,
            charges.c.number >= row.folded,
        )
        vectors = list(connection.execute(later).scalars())
        if vectors:
            meter.add(np.stack([np.frombuffer(one, "<i2") for one in vectors]))
        found[row.number] = (meter.queries, meter.mu())
    return found


def _accounts(connection: Connection, tenant: int, window: int) -> tuple[AccountRow, ...]:
    query = select(spent.c.kind, spent.c.owner, spent.c.queries).where(spent.c.window == window)
    # Meters of all owners in this window; rows of other tenants match no account below.
    used = {(row.kind, row.owner): row.queries for row in connection.execute(query)}
    people = select(accounts, payers.c.name.label("paid_by")).join(
        payers, payers.c.id == accounts.c.payer
    )
    rows = connection.execute(people.where(accounts.c.tenant == tenant).order_by(accounts.c.name))
    return tuple(
        AccountRow(
            row.name,
            row.paid_by,
            used.get(("account", row.id), 0),
            used.get(("payer", row.payer), 0),
            row.revoked is not None,
        )
        for row in rows
    )
