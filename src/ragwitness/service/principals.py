"""Who asks: everything a request may touch follows from its key, and from nothing else in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from sqlalchemy import select

from ragwitness.service.keys import StoredKey, matches, split_key
from ragwitness.service.meters import Reading
from ragwitness.service.policy import Policy
from ragwitness.service.schema import accounts, spent, tenants
from ragwitness.service.store import Store

__all__ = ["Principal", "authenticate", "read_meters"]


@dataclass(frozen=True, slots=True)
class Principal:
    """An account and what belongs to it.

    Attributes:
        tenant: Row of its tenant.
        tenant_name: Name of its tenant.
        account: Row of the account.
        account_name: Name of the account.
        payer: Row of its payer.
        created: When the tenant was made, seconds since the epoch.
        edition: Of the tenant's index; 0 where nothing was ever added.
        policy: Of the tenant.
    """

    tenant: int
    tenant_name: str
    account: int
    account_name: str
    payer: int
    created: int
    edition: int
    policy: Policy = field(repr=False)


_parse = lru_cache(maxsize=256)(Policy.from_json)


def authenticate(store: Store, header: str | None) -> Principal | None:
    """Return who sent an ``Authorization`` header; None for whoever may not ask.

    A missing, malformed, unknown, wrong or revoked key takes the same steps.

    Raises:
        StoreGoneError: The database failed.
    """
    key_id, secret = split_key(header)
    query = (
        select(accounts, tenants.c.name.label("tenant_name"), tenants.c.policy)
        .add_columns(tenants.c.created, tenants.c.edition)
        .join(tenants, tenants.c.id == accounts.c.tenant)
        .where(accounts.c.key_id == key_id)
    )
    with store.reading() as connection:
        row = connection.execute(query).one_or_none()
    live = row is not None and row.revoked is None
    stored = StoredKey(row.key_id, row.salt, row.digest) if row is not None and live else None
    if not matches(secret, stored) or row is None:
        return None
    return Principal(
        tenant=row.tenant,
        tenant_name=row.tenant_name,
        account=row.id,
        account_name=row.name,
        payer=row.payer,
        created=row.created,
        edition=row.edition,
        policy=_parse(row.policy),
    )


def read_meters(store: Store, principal: Principal, window: int) -> Reading:
    """Return an account's own meters.

    Raises:
        StoreGoneError: The database failed.
    """
    owners = {"account": principal.account, "payer": principal.payer}
    query = select(spent.c.kind, spent.c.owner, spent.c.queries).where(
        spent.c.window == window, spent.c.owner.in_(owners.values())
    )
    with store.reading() as connection:
        found = {(row.kind, row.owner): row.queries for row in connection.execute(query)}
    return Reading(*(found.get(pair, 0) for pair in owners.items()))
