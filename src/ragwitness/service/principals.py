"""Accounts and their keys: the key of a request alone decides what it may touch."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, select

from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store, read_counts
from ragwitness.service.tables import accounts, tenants

# API keys: shown once, stored as salted hashes, compared in constant time.

_KEY = re.compile(r"rw_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_DECOY_SALT = secrets.token_bytes(16)
_DECOY_DIGEST = secrets.token_bytes(32)


def new_key() -> tuple[str, dict[str, object]]:
    """Draw a key: 64 bits to find it by, 256 secret ones.

    The secret is random, so that a fast hash is enough: there is no dictionary to try.

    Returns:
        The text that the client sends, which cannot be shown again, and its columns in the
        database: the identifier, a salt, and the HMAC-SHA256 of the secret part under the salt.
    """
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    salt = secrets.token_bytes(16)
    stored: dict[str, object] = {"key_id": key_id, "salt": salt, "digest": _digest(salt, secret)}
    return f"rw_{key_id}_{secret}", stored


def split_key(header: str | None) -> tuple[str, str]:
    """Return identifier and secret of an ``Authorization`` header.

    Anything but a key of ours gives a pair that no account has, so that all refusals take one
    path.
    """
    scheme, _, key = (header or "").partition(" ")
    match = _KEY.fullmatch(key.strip()) if scheme.lower() == "bearer" else None
    return (match[1], match[2]) if match else ("", "")


def _digest(salt: bytes, secret: str) -> bytes:
    return hmac.digest(salt, secret.encode(), hashlib.sha256)


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
        edition: Edition of the tenant's index; 0 where nothing was ever added.
        policy: Policy of the tenant.
    """

    tenant: int
    tenant_name: str
    account: int
    account_name: str
    payer: int
    created: int
    edition: int
    policy: TenantPolicy = field(repr=False)


_OWNER = (  # written once: to put it together takes as long as to ask it
    select(accounts, tenants.c.name.label("tenant_name"), tenants.c.policy)
    .add_columns(tenants.c.created, tenants.c.edition)
    .join(tenants, tenants.c.id == accounts.c.tenant)
    .where(accounts.c.key_id.in_(bindparam("given", expanding=True)))
)
_parse = lru_cache(maxsize=256)(TenantPolicy.from_json)


def key_owners(store: Store, key_ids: Iterable[str]) -> dict[str, Any]:
    """Return the rows of some keys, by identifier; none of an unknown key.

    Raises:
        StoreGoneError: The database failed.
    """
    with store.reading() as connection:
        return {row.key_id: row for row in connection.execute(_OWNER, {"given": [*key_ids]})}


def confirm(secret: str, row: Any) -> Principal | None:
    """Return whose key it is; None for a missing, malformed, unknown, wrong or revoked key.

    All of these take the same steps and the same time.

    Args:
        secret: As sent.
        row: Of the key's identifier, from :func:`key_owners`; None where there is none.
    """
    # Everything of the principal follows from the row of its key: no field of the request is used.
    # One path for every refusal: the secret is compared even where there is no account.
    live = row is not None and row.revoked is None
    salt, digest = (row.salt, row.digest) if live else (_DECOY_SALT, _DECOY_DIGEST)
    same = hmac.compare_digest(_digest(salt, secret), digest)
    if not (same and live):
        return None
    # The row of the key decides everything else.
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


def read_meters(store: Store, principal: Principal, window: int) -> dict[str, int]:
    """Return an account's own meters: the queries of ``account`` and of its ``payer``.

    Raises:
        StoreGoneError: The database failed.
    """
    owners = {
        kind: (kind, row, window)
        for kind, row in (("account", principal.account), ("payer", principal.payer))
    }
    with store.reading() as connection:
        counts = read_counts(connection, owners.values())
    return {kind: counts.get(owner, 0) for kind, owner in owners.items()}
