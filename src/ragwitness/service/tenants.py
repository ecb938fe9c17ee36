"""Operations of an operator: tenants, accounts and keys, and the spending of each budget."""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from ragwitness.core.errors import InputError
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.service.meters import meter_of, used_for_life, window_of
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.principals import new_key
from ragwitness.service.store import Store
from ragwitness.service.tables import (
    CLOSED,
    accounts,
    ballots,
    charges,
    contents,
    documents,
    payers,
    spent,
    tenants,
    windows,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def create_tenant(store: Store, name: str, claim: Claim, *more: str) -> TenantPolicy:
    """Make a tenant with a policy that never changes.

    Args:
        store: The database.
        name: Name of the tenant, unique.
        claim: The promise to its accounts.
        more: Names of others with the same policy; all are made, or none.

    Returns:
        The policy, with the noise and the budget that follow from the claim.

    Raises:
        InputError: The name is taken or unusable, or the claim is refused.
    """
    policy = make_policy(claim, dimension_of(claim))
    with store.writing() as connection:
        for new_name in (name, *more):
            _check_name("tenant", new_name)
            if _find(connection, new_name) is not None:
                raise InputError(f"There is a tenant {new_name!r} already.", "Take another name.")
            # Numbers are drawn, not counted: a server that still holds an erased tenant's index
            # knows it by its number, and a number reveals no other tenant.
            number = 1 + secrets.randbelow((1 << 31) - 1)
            values = {"policy": policy.to_json(), "created": int(time.time())}
            connection.execute(insert(tenants).values(id=number, name=new_name, **values))
    return policy


def dimension_of(claim: Claim) -> int:
    """Return the dimension of a claim's embedder, by measure; 0 where nothing is embedded.

    ``none`` is 1: a retriever before the library gives the scores, and each query is charged as the
    worst that there is.
    """
    if claim.mechanism != "noise" or claim.embedder == "none":
        return int(claim.mechanism == "noise")
    return int(load_embedder(claim.embedder).embed(["dimension"]).shape[1])


def erase_tenant(store: Store, tenant: str) -> dict[str, Any]:
    """Erase a tenant: documents, accounts, keys, meters, charges, placements and its name.

    Returns:
        A receipt: what was erased, how many rows of each, when, and what remains.

    Raises:
        InputError: No such tenant.
        StoreGoneError: The database failed.
    """
    counts = {"meters": 0}
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        # All its rows, those first that point to others.
        for kind, table in (("account", accounts), ("payer", payers)):
            owners = select(table.c.id).where(table.c.tenant == row.id)
            meters = and_(spent.c.kind == kind, spent.c.owner.in_(owners))
            counts["meters"] += connection.execute(delete(spent).where(meters)).rowcount
        every = (accounts, payers, documents, contents, ballots, charges, windows)
        for table in every:
            erased = connection.execute(delete(table).where(table.c.tenant == row.id))
            counts[table.name] = erased.rowcount
        connection.execute(delete(tenants).where(tenants.c.id == row.id))
    # Pages and write-ahead log that held them.
    store.vacuum()
    return {
        "erased": tenant,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rows": counts,
        "remains": [
            "copies outside the database: backups, replicas, PostgreSQL's write-ahead log until it"
            " is recycled, audit windows in their folders",
            "the index in the memory of a running server, until it is restarted",
            "its answers: another tenant with the same documents has another budget",
        ],
    }


def count_as_spent(store: Store, now: float | None = None) -> dict[str, int]:
    """Count as spent all windows that may have been used since a restored copy was made.

    Every window that is open, and every one that may have been open since, is spent in full. The
    window under way answers nothing, and its noise was drawn for the copy alone.

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
            of_tenant = windows.c.tenant == row.id
            stored = connection.execute(select(windows).where(of_tenant)).all()
            current, _ = window_of(row.created, policy.claim.window, moment)
            # Unsure: windows that are open in the copy, and all after the last closed one.
            over = {window.number for window in stored if window.final is not None}
            unsure = {window.number for window in stored if window.final is None}
            unsure |= set(range(max(over, default=-1) + 1, current + 1))
            # The budget for each of them, whatever was granted; a window that is over stays.
            used = row.used + len(unsure) * policy.budget**2
            connection.execute(update(tenants).where(tenants.c.id == row.id).values(used=used))
            gone = windows.c.number.in_({*unsure, current})
            connection.execute(delete(windows).where(of_tenant, gone))
            connection.execute(delete(charges).where(charges.c.tenant == row.id))
            closed = {"tenant": row.id, "number": current}
            connection.execute(insert(windows).values(closed | CLOSED))
            counted[row.name] = len(unsure)
    return counted


# Accounts and their keys.


def add_account(store: Store, tenant: str, name: str, payer: str | None = None) -> str:
    """Admit an account: :func:`add_accounts` for one."""
    return add_accounts(store, tenant, [name], payer)[0]


def add_accounts(
    store: Store, tenant: str, names: Sequence[str], payer: str | None = None
) -> list[str]:
    """Admit accounts, all or none, and return their keys, which cannot be shown again.

    Args:
        store: The database.
        tenant: Name of the tenant.
        names: Names of the accounts, each unique within the tenant.
        payer: The payer of all of them; None: each for itself.

    Raises:
        InputError: No such tenant, or a name is taken or unusable.
    """
    keys = [new_key() for _ in names]
    with store.writing() as connection:
        row = find_tenant(connection, tenant, lock=True)
        for name, (_, stored) in zip(names, keys, strict=True):
            _check_name("account", name)
            # Each payer has a meter, so that more accounts do not buy more queries.
            _check_name("payer", payer or name)
            if _account(connection, row.id, name) is not None:
                raise InputError(
                    f"{tenant} has an account {name!r} already.",
                    f"Take another name, or: ragwitness service tenants rotate-key {tenant} {name}",
                )
            paid_by = _payer(connection, row.id, payer or name)
            values = {"tenant": row.id, "payer": paid_by, "name": name}
            connection.execute(insert(accounts).values(**values, **stored))
    return [text for text, _ in keys]


def rotate_key(store: Store, tenant: str, name: str) -> str:
    """Give an account another key; the old one ends with this. Its meters go on.

    A revoked account gets its access back.

    Raises:
        InputError: No such tenant or account.
    """
    text, stored = new_key()
    # The row stays: a new key must not begin a new allowance.
    _change(store, tenant, name, {**stored, "revoked": None})
    return text


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
                "ragwitness service tenants budget names its accounts.",
            )
        connection.execute(update(accounts).where(accounts.c.id == account.id).values(**values))


def _payer(connection: Connection, tenant: int, name: str) -> int:
    this_payer = and_(payers.c.tenant == tenant, payers.c.name == name)
    number = connection.execute(select(payers.c.id).where(this_payer)).scalar()
    if number is None:
        result = connection.execute(insert(payers).values(tenant=tenant, name=name))
        number = result.inserted_primary_key[0]  # type: ignore[index]
    return int(number)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"The {what}'s name {name!r} cannot be used.",
            "Use 1 to 64 letters, digits, dots, hyphens and underscores.",
        )


# Lists and budgets.


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in a list.

    Attributes:
        name: Name of the tenant.
        documents: Slots in use.
        accounts: Accounts that are not revoked.
        claim: The promise to its accounts.
    """

    name: str
    documents: int
    accounts: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account's meter in the window under way.

    Attributes:
        name: Name of the account.
        payer: Its payer.
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
    """The spending of a tenant's index.

    Attributes:
        tenant: Name.
        window: Number of the window under way.
        seconds_left: Until the next.
        queries: Charged in this window, over all accounts.
        mu: Odometer of this window.
        budget: mu it may not pass.
        epsilon: Spent in this window, at ``delta``.
        joint_epsilon: Budget of a window.
        delta: Failure probability of both.
        life_epsilon: Spent over all windows, at ``delta``; one under way counts with its grant.
        lifetime_epsilon: Bound of ``life_epsilon``.
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
    life_epsilon: float
    lifetime_epsilon: float
    account_limit: int
    payer_limit: int | None
    accounts: tuple[AccountRow, ...]


def list_tenants(store: Store) -> list[TenantRow]:
    """Return all tenants by name."""
    # Counted by the database, tenant by tenant.
    filled = select(func.count()).where(documents.c.tenant == tenants.c.id)
    live = select(func.count()).where(
        accounts.c.tenant == tenants.c.id, accounts.c.revoked.is_(None)
    )
    columns = (filled.scalar_subquery().label("filled"), live.scalar_subquery().label("live"))
    with store.reading() as connection:
        rows = connection.execute(select(tenants, *columns).order_by(tenants.c.name)).all()
    return [
        TenantRow(row.name, row.filled, row.live, TenantPolicy.from_json(row.policy).claim)
        for row in rows
    ]


def budget_of(store: Store, tenant: str, now: float | None = None) -> TenantBudget:
    """Return the meters of a tenant.

    Raises:
        InputError: No such tenant, or nothing of it is metered.
    """
    with store.reading(frozen=True) as connection:
        row = find_tenant(connection, tenant)
        policy = TenantPolicy.from_json(row.policy)
        claim, life = policy.claim, policy.life
        moment = time.time() if now is None else now
        # The window under way; one in which nothing was charged has spent nothing.
        number, seconds_left = window_of(row.created, claim.window, moment)
        this_window = and_(
            windows.c.tenant == row.id, windows.c.number == number, windows.c.charged > 0
        )
        window = connection.execute(select(windows).where(this_window)).one_or_none()
        mu = meter_of(connection, policy, window).mu() if window else 0.0
        used = used_for_life(connection, row.id, policy)
        return TenantBudget(
            tenant=tenant,
            window=number,
            seconds_left=seconds_left,
            queries=window.charged if window else 0,
            mu=mu,
            budget=policy.budget,
            epsilon=epsilon_at(claim.joint_delta, mu),
            joint_epsilon=claim.joint_epsilon,
            delta=claim.joint_delta,
            life_epsilon=epsilon_at(claim.joint_delta, math.sqrt(used)),
            lifetime_epsilon=epsilon_at(claim.joint_delta, life),
            account_limit=claim.queries,
            payer_limit=claim.payer_queries,
            accounts=_accounts(connection, row.id, number),
        )


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
