"""What an operator sees: tenants, accounts, and how much of each budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from ragwitness.privacy.odometer.answers import AnswerMeter
from ragwitness.privacy.odometer.spectral import Odometer
from ragwitness.service.meters import life_of, meter_of, window_of
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import (
    Store,
    accounts,
    content_digest,
    documents,
    lives,
    payers,
    spent,
    tenants,
    windows,
)
from ragwitness.service.tenants import find_tenant
from ragwitness.service.texts import spent_by_texts


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in a list.

    Attributes:
        name: Name of the tenant.
        documents: Slots in use.
        capacity: Slots in all.
        accounts: Accounts that are not revoked.
        embedder: Name of its embedder.
        account_epsilon: Promised to an account, at ``account_delta``.
        account_delta: Delta of an account.
        joint_epsilon: Budget of the index per window, at ``joint_delta``.
        joint_delta: Delta of the index.
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
        life_epsilon: Of the contents over all windows and tenants that hold them, the windows
            under way counted as what they may spend, at ``delta``.
        lifetime_epsilon: What that may not pass; None for a tenant made without such a promise.
        shares: Other tenants that the budget for life is shared with.
        account_limit: Queries of an account per window.
        payer_limit: Queries of a payer per window.
        accounts: Meters of the accounts.
        left_out: Documents, where each has its own budget, that have no room for a perfect match in
            this window any more; None where the budget is the index's. ``mu`` and the epsilons are
            those of the document that has spent most.
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
    shares: tuple[str, ...]
    account_limit: int
    payer_limit: int | None
    accounts: tuple[AccountRow, ...]
    left_out: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentSpending:
    """What all answers so far have told of each document of an index: a secret of the index.

    Attributes:
        tenant: Name.
        queries: Answered over all windows by all tenants that the budget for life is shared with.
        delta: Failure probability of all epsilons.
        documents: Id and epsilon of each document, most first, of its being there or not.
        index_epsilon: Epsilon of the worst document that there could be, by the same queries.
    """

    tenant: str
    queries: int
    delta: float
    documents: tuple[tuple[str, float], ...]
    index_epsilon: float


def spending_of(store: Store, tenant: str) -> DocumentSpending:
    """Return what each document of a tenant has spent for life, by the odometer of each window.

    A document counts as there in every window, also before it was added, so that removing and
    adding it again gives nothing back. What tenants have spent that were erased counts in full.

    Raises:
        InputError: No such tenant.
    """
    with store.reading(frozen=True) as connection:
        row = find_tenant(connection, tenant)
        policy = TenantPolicy.from_json(row.policy)
        query = select(documents.c.name, documents.c.text, documents.c.vector)
        held = connection.execute(
            query.where(documents.c.tenant == row.id).order_by(documents.c.name)
        ).all()
        gone = select(lives.c.used).where(lives.c.id == row.life)
        erased = float(connection.execute(gone).scalar() or 0.0)
        if policy.claim.meter == "documents":
            return _spending_of_texts(connection, row, policy, held, erased)
        squares, worst, queries = np.full(len(held), erased), erased, 0
        # 1. Tenants with a text in common are asked about the same documents; texts that they do
        #    not hold count too, since they may have held them.
        for other in connection.execute(select(tenants).where(tenants.c.life == row.life)).all():
            theirs = TenantPolicy.from_json(other.policy)
            vectors = _vectors_for(held, policy, theirs)
            # 2. Gaussian composition over windows: the squares of mu add up, document by document.
            for meter in _meters(connection, other.id, theirs).values():
                queries += meter.queries
                mu = meter.mu()
                worst += mu * mu
                squares += mu * mu if vectors is None else meter.mu_of_documents(vectors) ** 2
    delta = policy.claim.joint_delta
    found = [
        (one.name, policy.epsilon_of(math.sqrt(square)))
        for one, square in zip(held, squares.tolist(), strict=True)
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    together = policy.epsilon_of(math.sqrt(worst))
    return DocumentSpending(tenant, queries, delta, tuple(found), together)


def _spending_of_texts(
    connection: Connection, row: Any, policy: TenantPolicy, held: Sequence[Any], erased: float
) -> DocumentSpending:
    """Return what each document has spent of its own budget, exactly."""
    delta = policy.claim.joint_delta
    told = spent_by_texts(connection, row.life)
    found = [
        (one.name, policy.epsilon_of(math.sqrt(told.get(content_digest(one.text), 0.0) + erased)))
        for one in held
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    query = select(func.sum(windows.c.charged)).join(tenants, tenants.c.id == windows.c.tenant)
    queries = connection.execute(query.where(tenants.c.life == row.life)).scalar() or 0
    # No text passes its budget for life, whatever is asked: the worst that there could be.
    worst = policy.epsilon_of(policy.text_life)
    return DocumentSpending(row.name, int(queries), delta, tuple(found), worst)


def _vectors_for(
    held: Sequence[Any], mine: TenantPolicy, theirs: TenantPolicy
) -> NDArray[np.int16] | None:
    """Vectors of documents as another tenant's index would hold them; None where it is unknown."""
    alike = mine.claim.embedder == theirs.claim.embedder
    if not alike or mine.mechanism.scale != theirs.mechanism.scale:
        return None
    whole = np.frombuffer(b"".join(one.vector for one in held), "<i2")
    return whole.reshape(len(held), mine.mechanism.dimension)


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
        left_out = None
        if claim.meter == "documents":
            every, left_out = _text_windows(connection, row, policy, window)
            lived = max(spent_by_texts(connection, row.life).values(), default=0.0)
            # A text that is replaced costs twice what its own meter says.
            twice = (policy.budget / policy.text_budget) ** 2
            most, used, together = policy.life, lived * twice, math.sqrt(lived * twice)
        else:
            every = {
                number: (meter.queries, meter.mu())
                for number, meter in _meters(connection, row.id, policy).items()
            }
            most, used = life_of(connection, row.life)
            # Gaussian composition over windows: the squares of mu add up.
            together = math.sqrt(sum(one * one for _, one in every.values()))
        queries, mu = every.get(window, (0, 0.0))
        others = select(tenants.c.name).where(tenants.c.life == row.life, tenants.c.id != row.id)
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
            lifetime_epsilon=None if math.isinf(most) else policy.epsilon_of(most),
            shares=tuple(connection.execute(others.order_by(tenants.c.name)).scalars()),
            account_limit=claim.queries,
            payer_limit=claim.payer_queries,
            accounts=_accounts(connection, row.id, window),
            left_out=left_out,
        )


def _text_windows(
    connection: Connection, row: Any, policy: TenantPolicy, window: int
) -> tuple[dict[int, tuple[int, float]], int]:
    """Queries of each window, with mu of its text that spent most; and texts without room now."""
    twice = policy.budget / policy.text_budget
    query = select(windows.c.number, windows.c.charged).where(windows.c.tenant == row.id)
    every, told = {}, {}
    for one in connection.execute(query.where(windows.c.charged > 0)).all():
        spent_there = spent_by_texts(connection, row.life, (row.id, one.number))
        if one.number == window:
            told = spent_there
        most = max(spent_there.values(), default=0.0)
        every[one.number] = (one.charged, twice * math.sqrt(most))
    # A perfect match moves a score by its sensitivity, which is this for a free slot's other side.
    match = replace(policy.terms, relation="add-remove").worst_mu(1) ** 2
    room = policy.text_budget**2
    return every, sum(squares + match > room for squares in told.values())


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
