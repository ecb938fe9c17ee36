"""API keys: shown once, stored as salted hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

__all__ = ["ApiKey", "StoredKey", "matches", "new_key", "split_key"]

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
