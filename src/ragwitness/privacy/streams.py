"""The key of each answer's noise: derived, so that it cannot be chosen, and opened one by one.

::

    window seed ──HKDF──► sub-seed of one record ──HKDF(coins)──► key ──SHAKE256──► noise
    beacon, request, number ──SHAKE256──► public coins ──┘

Nobody chooses a noise alone: the sub-seed is the provider's, committed to before the beacon and the
client's nonce were drawn, which with the rest of the request make the public coins. A provider
commits to the sub-seeds before the window (their Merkle root) and opens those of
challenged records alone: an opened sub-seed takes the noise off that one answer and says nothing
of the others (``docs/design/mechanism.md``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256, shake_256

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ragwitness.core.errors import InputError
from ragwitness.crypto import hashing as jcs
from ragwitness.privacy.sampler import Bits, ShakeBits

SEED_BYTES = 32
"""Length of a window's seed, of a record's, and of a key."""

BEACON_BYTES = 32
"""Length of the beacon of a window's noise."""

_NOISE = "ragwitness/noise/v1"
_MIXED = "ragwitness/noise/v2"
_COINS = "ragwitness/coins/v1"
_SUB_SEED = "ragwitness/sub-seed/v1"


@dataclass(frozen=True, slots=True)
class NoiseRecord:
    """The inputs of one answer's noise; the provider can choose none of them after the question.

    The policy fixes ``window`` and ``mechanism``, the log ``account`` and ``sequence``, the client
    the rest. The answer and the time are left out on purpose: by either a provider could look
    for noise that it likes. ``query`` is in, so that no two questions ever share their noise, not
    even where a crash makes a service count the same number twice.

    Attributes:
        window: Identifier of the audit window.
        tenant: Whose index is asked.
        account: Who asks.
        sequence: How many queries of this account in this window came before.
        nonce: The client's own random text.
        checkpoint: The log's checkpoint that the client names in its request, the last it saw.
        query: SHA-256 of the query as the client sent it, in hex.
        mechanism: ``digest`` of what answers, in hex.
    """

    window: str
    tenant: str
    account: str
    sequence: int
    nonce: str
    checkpoint: str
    query: str
    mechanism: str


def sub_seed_number(place: int, queries: int, sequence: int) -> int:
    """Return the number of a query's sub-seed, which is known before the window opens.

    A number by order of arrival would let a provider that dislikes a noise slip in a query of its
    own; this one follows from the account's place and its own count alone.

    Args:
        place: Place of the account among those admitted, from 0.
        queries: Most queries of one account.
        sequence: How many queries of this account came before.
    """
    return place * queries + sequence


def sub_seed(window_seed: bytes, window: str, number: int) -> bytes:
    """Return the secret of one record; it tells nothing of the window's seed or other records.

    All numbers are known before the window opens, so that a Merkle tree over them can be
    committed.

    Args:
        window_seed: 32 secret bytes.
        window: Identifier of the audit window.
        number: See :func:`sub_seed_number`.

    Returns:
        32 bytes.

    Raises:
        InputError: The seed has another length, or the number is negative or above 2⁶⁴ - 1.
    """
    # HKDF with the window's seed as key and the record's number as context.
    info = {"domain": _SUB_SEED, "number": jcs.u64_text(number), "window": window}
    return hkdf_sha256(_seed(window_seed), canonical(info))


def record_key(seed: bytes, record: NoiseRecord) -> bytes:
    """Return the key of one answer's noise (A2: the noise is a function of the record).

    Args:
        seed: The record's :func:`sub_seed`, 32 bytes.
        record: The request.

    Returns:
        32 bytes.

    Raises:
        InputError: The seed has another length, the sequence is not an unsigned 64-bit integer, or
            a field holds half a surrogate pair, which has no UTF-8.
    """
    # Every field of the record is in the context, under its name (A2).
    info = asdict(record) | {
        "sequence": jcs.u64_text(record.sequence, "sequence"),
        "domain": _NOISE,
    }
    return hkdf_sha256(_seed(seed), canonical(info))


def public_coins(beacon: bytes, record: NoiseRecord, number: int) -> bytes:
    """Return an answer's public coins, which its provider could not know when it committed.

    Args:
        beacon: The public value that was drawn after the commitment, 32 bytes; none (a window
            that logs no beacon, which no verdict passes) leaves the client's nonce alone.
        record: The request: nonce and checkpoint are the client's, under its signature where it
            has a key, and ``query`` is the SHA-256 of the question.
        number: See :func:`sub_seed_number`.

    Returns:
        32 bytes of SHAKE256 over the canonical JSON of all of it.

    Raises:
        InputError: The beacon has another length, a number is no unsigned 64-bit integer, or a
            field has no UTF-8.
    """
    if len(beacon) not in (0, BEACON_BYTES):
        raise InputError(f"A beacon of noise has {BEACON_BYTES} bytes, not {len(beacon)}.")
    info = asdict(record) | {
        "sequence": jcs.u64_text(record.sequence, "sequence"),
        "number": jcs.u64_text(number),
        "beacon": beacon.hex(),
        "domain": _COINS,
    }
    return shake_256(canonical(info)).digest(SEED_BYTES)


def noise_key(seed: bytes, number: int, record: NoiseRecord, beacon: bytes = b"") -> bytes:
    """Return the key of one answer's noise as whoever was shown its sub-seed derives it.

    Args:
        seed: The record's :func:`sub_seed`, 32 bytes.
        number: See :func:`sub_seed_number`.
        record: The request.
        beacon: Of the window; none where its log has none, as in windows of the first version.

    Raises:
        InputError: As for :func:`record_key` and :func:`public_coins`.
    """
    if not beacon:
        return record_key(seed, record)
    # The public coins are context and the secret is the key: neither side chooses the result.
    coins = public_coins(beacon, record, number).hex()
    return hkdf_sha256(_seed(seed), canonical({"coins": coins, "domain": _MIXED}))


def answer_key(window_seed: bytes, number: int, record: NoiseRecord, beacon: bytes = b"") -> bytes:
    """Return the key of one answer's noise as whoever holds the window's seed derives it.

    Args:
        window_seed: 32 secret bytes.
        number: See :func:`sub_seed_number`.
        record: The request.
        beacon: Beacon of the window, as for :func:`noise_key`.

    Raises:
        InputError: As for :func:`sub_seed` and :func:`noise_key`.
    """
    # Step 1: the record's own secret, committed to before the window and opened if challenged.
    seed = sub_seed(window_seed, record.window, number)
    # Step 2: bound to the request, which the client has a part in: its nonce and its checkpoint.
    return noise_key(seed, number, record, beacon)


def slot_bits(key: bytes, number: int) -> ShakeBits:
    """Return stream ``number`` of a key, SHAKE256(key ‖ number as 8 bytes, big-endian).

    The exact sampler has one per slot, since it takes as many bytes as it needs; that of the
    table one per block of slots.
    """
    return ShakeBits(key + number.to_bytes(8, "big"))


def canonical(fields: Mapping[str, str]) -> bytes:
    """Return the one JSON text of an object of strings (RFC 8785, JCS), in UTF-8.

    Numbers are given as decimal strings: JSON's own lose digits above 2⁵³. Names are ASCII, for
    which Python's order is that of the standard.

    Raises:
        InputError: A value is not a string that UTF-8 can hold.
    """
    if not all(name.isascii() and isinstance(value, str) for name, value in fields.items()):
        raise InputError("Only strings under ASCII names have a canonical form here.")
    return jcs.canonical(fields)


def hkdf_sha256(secret: bytes, info: bytes, *, salt: bytes = b"", size: int = 32) -> bytes:
    """Return ``size`` bytes by HKDF with SHA-256 (RFC 5869, extract and expand).

    Args:
        secret: Input key material.
        info: The purpose of the bytes.
        salt: Optional; none counts as 32 zero bytes.
        size: Number of bytes, at most 8,160.
    """
    return HKDF(SHA256(), size, salt or None, info).derive(secret)


def _seed(seed: bytes) -> bytes:
    if len(seed) != SEED_BYTES:
        raise InputError(
            f"A seed has {SEED_BYTES} bytes, not {len(seed)}.", "Draw one with os.urandom(32)."
        )
    return seed


# A stream that follows from a seed, which was committed to, and from a beacon that came later.

_HEX = re.compile(r"(?:0x)?((?:[0-9a-f]{2})+)")


def beacon_bits(seed: bytes, beacon: str, domain: str, label: str) -> Bits:
    """Return a stream of bytes that hangs on seed, beacon, domain and label alone.

    Args:
        seed: 32 secret bytes.
        beacon: The public randomness as text; empty for none.
        domain: Kind of the draw, e.g. ``"ragwitness/canary-stream/v1"``.
        label: Which of the draws.

    Raises:
        InputError: The seed has another length than 32 bytes.
    """
    salt = sha256(beacon_value(beacon).encode("utf-8", "surrogatepass")).digest()
    info = jcs.canonical({"domain": domain, "label": label})
    return ShakeBits(hkdf_sha256(_seed(seed), info, salt=salt))


def beacon_value(text: str) -> str:
    """Return what counts of a beacon's value: its letters and digits, in one case."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in plain if char.isalnum())


def beacon_bytes(text: str) -> str:
    """Return a beacon's bytes in hex, small letters, without ``0x`` and blanks.

    Raises:
        InputError: It is no whole number of bytes in hex.
    """
    match = _HEX.fullmatch("".join(text.split()).lower())
    if match is None:
        raise InputError(
            f"The beacon {text!r} is not bytes in hex.",
            "Give its digits 0-9 and a-f, two a byte, with or without 0x in front; a decimal"
            " number that its source prints is given as the hex of its bytes.",
        )
    return match[1]
