"""Who asks: everything a request may touch follows from its key, and from nothing else in it."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, select

from ragwitness.core.errors import InputError
from ragwitness.service.meters import MeterReading
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store
from ragwitness.service.tables import accounts, spent, tenants

# API keys: shown once, stored as salted hashes, compared in constant time.

_KEY = re.compile(r"rw_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_DECOY_SALT = secrets.token_bytes(16)
_DECOY_DIGEST = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What the database keeps of a key.

    Attributes:
        key_id: The part by which it is found; no secret.
        salt: 16 bytes.
        digest: HMAC-SHA256 of the secret part under the salt.
    """

    key_id: str
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A new key.

    Attributes:
        text: What the client sends; nobody can show it again.
        stored: What is kept.
    """

    text: str = field(repr=False)
    stored: StoredKey


def new_key() -> ApiKey:
    """Draw a key: 64 bits to find it by, 256 secret ones.

    The secret is random, so that a fast hash is enough: there is no dictionary to try.
    """
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    salt = secrets.token_bytes(16)
    return ApiKey(f"rw_{key_id}_{secret}", StoredKey(key_id, salt, _digest(salt, secret)))


def split_key(header: str | None) -> tuple[str, str]:
    """Return identifier and secret of an ``Authorization`` header.

    What is no key of ours gives a pair that no account has, so that all refusals take one path.
    """
    scheme, _, given = (header or "").partition(" ")
    found = _KEY.fullmatch(given.strip()) if scheme.lower() == "bearer" else None
    return (found[1], found[2]) if found else ("", "")


def matches(secret: str, stored: StoredKey | None) -> bool:
    """Whether a secret is that of a stored key; takes as long where there is none.

    Args:
        secret: As sent.
        stored: Found by the key's identifier; None for no account, or a revoked one.
    """
    salt, digest = (stored.salt, stored.digest) if stored else (_DECOY_SALT, _DECOY_DIGEST)
    same = hmac.compare_digest(_digest(salt, secret), digest)
    return same and stored is not None


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
    """Return the rows of some keys, by identifier; none of a key that nobody has.

    Raises:
        StoreGoneError: The database failed.
    """
    with store.reading() as connection:
        return {row.key_id: row for row in connection.execute(_OWNER, {"given": [*key_ids]})}


def confirm(secret: str, row: Any) -> Principal | None:
    """Return whose key it is; None for whoever may not ask.

    A missing, malformed, unknown, wrong or revoked key takes the same steps.

    Args:
        secret: As sent.
        row: Of the key's identifier, from :func:`key_owners`; None where there is none.
    """
    # Everything of the principal follows from the row of its key: no field of the request is used.
    # One path for every refusal: the secret is compared even where there is no account.
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


def read_meters(store: Store, principal: Principal, window: int) -> MeterReading:
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
    return MeterReading(*(found.get(pair, 0) for pair in owners.items()))


# The rate of each key: how many requests a second the service takes from one account.


class KeyRates:
    """Requests per second of each account, by a bucket that refills (in this process alone).

    Args:
        rate: Requests per second; a bucket holds two seconds of them, and at least one.
        clock: Clock of seconds that never go back.

    Raises:
        InputError: The rate is not above 0.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"The rate of a key is above 0 requests per second, not {rate:g}.")
        self._rate, self._clock = rate, clock
        self._most = max(1.0, 2 * rate)
        self._left: dict[int, tuple[float, float]] = {}  # by account; only real ones get here

    def wait(self, account: int) -> float:
        """Take one request of an account; return 0, or the seconds until there is one."""
        now = self._clock()
        left, then = self._left.get(account, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        admitted = left >= 1
        self._left[account] = (left - admitted, now)
        return 0.0 if admitted else (1 - left) / self._rate
