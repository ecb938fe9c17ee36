"""What an operator sees: tenants, accounts, and how much of each budget is spent."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ragwitness.privacy.odometer import AnswerMeter, Odometer
from ragwitness.service.meters import meter_of, used_for_life, window_of
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store
from ragwitness.service.tables import accounts, documents, payers, spent, tenants, windows
from ragwitness.service.tenants import find_tenant


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in a list.

    Attributes:
        name: Name of the tenant.
        documents: Slots in use.
        capacity: Slots in all.
        accounts: Accounts that are not revoked.
        embedder: Name of its embedder.
        mechanism: How documents are found, ``codes`` or ``noise``.
        epsilon: Promised of a document for life with codes, to an account with noise.
        joint_epsilon: With noise, budget of the index per window, at ``joint_delta``.
        joint_delta: Delta of the index.
    """

    name: str
    documents: int
    capacity: int
    accounts: int
    embedder: str
    mechanism: str
    epsilon: float
    joint_epsilon: float | None
    joint_delta: float


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account's meter in the window under way.

    Attributes:
        name: Name of the account.
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
        unit: What the next two are counted in: ``mu``, or answers of one noise of coins.
        mu: Odometer of this window; of answers, their square root.
        budget: mu it may not pass.
        epsilon: Spent in this window, at ``delta``.
        joint_epsilon: Budget of a window.
        delta: Failure probability of both.
        all_windows: Windows in which anything was charged.
        all_epsilon: Spent by all windows together, at ``delta``.
        life_epsilon: Of the tenant over all windows, those under way counted as what they may
            spend, at ``delta``.
        lifetime_epsilon: What that may not pass; None for a tenant made without such a promise.
        account_limit: Queries of an account per window.
        payer_limit: Queries of a payer per window.
        accounts: Meters of the accounts.
    """

    tenant: str
    window: int
    seconds_left: int
    queries: int
    unit: str
    mu: float
    budget: float
    epsilon: float
    joint_epsilon: float | None
    delta: float
    all_windows: int
    all_epsilon: float
    life_epsilon: float
    lifetime_epsilon: float | None
    account_limit: int
    payer_limit: int | None
    accounts: tuple[AccountRow, ...]


def held_in_common(store: Store) -> dict[str, int]:
    """Return how many texts of each tenant another tenant holds as well: for the operator alone.

    Accounts that ask both learn of such a text twice; no meter and no answer knows of it.
    """
    texts = select(documents.c.text).group_by(documents.c.text)
    twice = texts.having(func.count(documents.c.tenant.distinct()) > 1)
    query = select(tenants.c.name, func.count(documents.c.text.distinct()))
    query = query.join(documents, documents.c.tenant == tenants.c.id)
    query = query.where(documents.c.text.in_(twice)).group_by(tenants.c.name)
    with store.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query.order_by(tenants.c.name))}


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
        every = {
            number: (meter.queries, meter.mu())
            for number, meter in _meters(connection, row.id, policy).items()
        }
        used = used_for_life(connection, row.id, policy)
        # Gaussian composition over windows: the squares of mu add up.
        together = math.sqrt(sum(one * one for _, one in every.values()))
        queries, mu = every.get(window, (0, 0.0))
        return TenantBudget(
            tenant=tenant,
            window=window,
            seconds_left=left,
            queries=queries,
            unit=policy.unit,
            mu=mu,
            budget=policy.budget,
            epsilon=policy.epsilon_of(mu),
            joint_epsilon=claim.joint_epsilon,
            delta=claim.joint_delta,
            all_windows=len(every),
            all_epsilon=policy.epsilon_of(together),
            life_epsilon=policy.epsilon_of(math.sqrt(used)),
            lifetime_epsilon=None if math.isinf(policy.life) else policy.epsilon_of(policy.life),
            account_limit=claim.queries,
            payer_limit=claim.payer_queries,
            accounts=_accounts(connection, row.id, window),
        )


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
        claim.mechanism,
        claim.epsilon,
        claim.joint_epsilon,
        claim.joint_delta,
    )


def _meters(
    connection: Connection, tenant: int, policy: TenantPolicy
) -> dict[int, Odometer | AnswerMeter]:
    """Meter of each window in which anything was charged."""
    query = select(windows).where(windows.c.tenant == tenant, windows.c.charged > 0)
    rows = connection.execute(query).all()
    return {row.number: meter_of(connection, policy, row) for row in rows}


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
