"""Which records a provider has to prove: drawn after the close, from randomness nobody chose.

The numbers are SHAKE256 of a public random value (the beacon) and the closing checkpoint. The
checkpoint fixes all records before the beacon is known, so a provider cannot know in time which
of them will be looked at. A beacon that the provider chose or foresaw is worth nothing.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.bundle import MAX_RECORDS
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import (
    BLINDING_BYTES,
    HASH_BYTES,
    canonical,
    parse,
    parse_hex,
    parse_u64,
    u64_text,
)
from ragwitness.crypto.notes import Checkpoint
from ragwitness.crypto.records import QueryRecord
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.ranges import probability
from ragwitness.privacy.release import slot_noise
from ragwitness.privacy.streams import NoiseRecord, noise_key

CHALLENGE_VERSION = "ragwitness/challenge/v1"

_LEAST_BEACON, _MOST_BEACON = 16, 256
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a verifier asks a provider to prove.

    Attributes:
        beacon: The public random value.
        population: Query records of the window.
        records: Places among them, ascending.
    """

    beacon: bytes
    population: int
    records: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        return canonical(
            {
                "beacon": self.beacon.hex(),
                "population": u64_text(self.population),
                "records": list(self.records),
                "version": CHALLENGE_VERSION,
            }
        )


def make_challenge(beacon: bytes, close: Checkpoint, population: int, count: int) -> Challenge:
    """Draw the records to be proved.

    Args:
        beacon: Public randomness of 16 to 256 bytes, unknown until the log was closed.
        close: The closing checkpoint.
        population: Query records of the window.
        count: How many to draw; all of them is Mode A.

    Raises:
        InputError: A value is outside its range.
    """
    if not _LEAST_BEACON <= len(beacon) <= _MOST_BEACON:
        raise InputError(
            f"A beacon has {_LEAST_BEACON} to {_MOST_BEACON} bytes, not {len(beacon)}.",
            "Take a public random value of 32 bytes that was drawn after the close.",
        )
    if not 1 <= count <= population or count > MAX_RECORDS:
        raise InputError(
            f"{count:,} of {population:,} records cannot be challenged;"
            f" one bundle holds 1 to {min(MAX_RECORDS, max(1, population)):,}."
        )
    return Challenge(beacon, population, draw_records(beacon, close, population, count))


def parse_challenge(data: bytes) -> Challenge:
    """Return a challenge; whether its records were drawn rightly is not checked here.

    Raises:
        VerificationError: ``challenge.*``.
    """
    value: Any = parse(data, _LONGEST, "challenge")
    version = value.get("version") if isinstance(value, dict) else None
    if version != CHALLENGE_VERSION:
        raise VerificationError(
            "challenge.version", f"This is not a challenge of version {CHALLENGE_VERSION!r}."
        )
    texts = [value.get("beacon"), value.get("population")]
    records = value.get("records")
    if (
        len(value) != 4
        or not all(isinstance(text, str) for text in texts)
        or not isinstance(records, list)
        or any(isinstance(at, bool) or not isinstance(at, int) for at in records)
    ):
        raise VerificationError("challenge.format", "A challenge lacks a field or has another.")
    size = len(texts[0]) // 2
    if not _LEAST_BEACON <= size <= _MOST_BEACON:
        raise VerificationError("challenge.beacon", f"A beacon has not {size} bytes.")
    population = parse_u64(texts[1], "challenge.population")
    inside = all(0 <= at < population for at in records)
    if not records or not inside or records != sorted(set(records)) or len(records) > MAX_RECORDS:
        raise VerificationError(
            "challenge.records", "The challenged records are not distinct, in order and in range."
        )
    return Challenge(parse_hex(texts[0], size, "challenge.beacon"), population, tuple(records))


def draw_records(beacon: bytes, close: Checkpoint, population: int, count: int) -> tuple[int, ...]:
    """Return ``count`` distinct places below ``population``, ascending, uniform in the beacon.

    A partial Fisher-Yates shuffle; each step's number is the next 8 bytes of SHAKE256 that lie
    below the largest multiple of its range, so that no place is likelier than another.
    """
    head = canonical([CHALLENGE_VERSION, beacon.hex(), close.text, str(population), str(count)])
    # Beacon and close both: neither alone may decide, and each count has a draw of its own.
    stream = _Stream(head)
    moved: dict[int, int] = {}
    # Fisher-Yates over the first ``count`` places; only those that moved are held.
    for at in range(count):
        other = at + stream.below(population - at)
        moved[at], moved[other] = moved.get(other, other), moved.get(at, at)
    return tuple(sorted(moved[at] for at in range(count)))


def detection(population: int, bad: int, count: int) -> float:
    """Return the probability that ``count`` records drawn without repeats hold one of ``bad``.

    Exact (hypergeometric): 1 - C(N - b, n) / C(N, n). The paper's 1 - (1 - gamma)^n, for
    drawing with repeats, is smaller.
    """
    return float(1 - _miss(population, bad, count))


def records_for(population: int, share: float, miss: float) -> int:
    """Return the fewest records that leave ``share`` of bad ones unseen at most ``miss`` often.

    Args:
        population: Query records of the window.
        share: Share of bad records that must be found, within (0, 1].
        miss: How often they may go unseen, within (0, 1).

    Raises:
        InputError: A value is outside its range.
    """
    probability("miss", miss)
    if population < 1:
        raise InputError("The window has no query, so that nothing can be challenged.")
    if not 0 < share <= 1:
        raise InputError(f"A share of bad records lies within (0, 1], not {share:g}.")
    # The share as it is written: the float .05 is a little above 1/20, and 5 of 100 would not do.
    bad = max(1, math.ceil(Fraction(str(share)) * population))
    # Bisection: the chance to miss all bad ones falls with every record that is drawn.
    most = Fraction(miss)
    enough = population - bad + 1  # so many leave no room for good ones alone
    few = range(1, enough)
    return 1 + bisect_left(few, True, key=lambda count: _miss(population, bad, count) <= most)


def _miss(population: int, bad: int, count: int) -> Fraction:
    """C(N - b, n) / C(N, n), the same with b and n exchanged: over the smaller of the two."""
    if not 0 <= bad <= population or not 0 <= count <= population:
        raise InputError("More records are counted than the window has.")
    few, many = min(bad, count), max(bad, count)
    if few + many > population:
        return Fraction(0)
    return Fraction(math.perm(population - many, few), math.perm(population, few))


class _Stream:
    """Whole numbers out of SHAKE256."""

    def __init__(self, head: bytes) -> None:
        self._shake, self._at, self._bytes = hashlib.shake_256(head), 0, b""

    def below(self, bound: int) -> int:
        # Numbers above the largest multiple of ``bound`` are thrown away, so that none is likelier.
        limit = (1 << 64) - (1 << 64) % bound
        while True:
            if self._at == len(self._bytes):
                self._bytes = self._shake.digest(max(4096, 2 * len(self._bytes)))
            found = int.from_bytes(self._bytes[self._at : self._at + 8], "big")
            self._at += 8
            if found < limit:
                return found % bound


# What a provider opens of a challenged record: ``records/<i>.json`` of a bundle.

VERSION = "ragwitness/disclosure/v1"
_MOST_BYTES = 256 << 10
_MOST_PATH = 64
_HEX = ("answer_blinding", "query", "query_blinding", "seed")
_FIELDS = {*_HEX, "ids", "seed_path", "text", "version"}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A challenged record, opened to whoever holds the bundle.

    Attributes:
        query: SHA-256 of the query as the client sent it, 32 bytes.
        query_blinding: 32 bytes.
        ids: The answer's slots, best first.
        answer_blinding: 32 bytes.
        seed: The record's sub-seed, 32 bytes.
        seed_path: From the sub-seed's leaf to the root of the open record.
        text: The query, where the provider keeps it.
    """

    query: bytes
    query_blinding: bytes
    ids: tuple[int, ...]
    answer_blinding: bytes
    seed: bytes
    seed_path: tuple[bytes, ...]
    text: str | None = None

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        texts = {name: getattr(self, name).hex() for name in _HEX}
        rest = {"ids": list(self.ids), "text": self.text, "version": VERSION}
        return canonical({**texts, **rest, "seed_path": [part.hex() for part in self.seed_path]})

    @classmethod
    def parse(cls, data: bytes) -> Disclosure:
        """Return what :meth:`encode` wrote.

        Raises:
            VerificationError: ``opening.version``, ``opening.fields``, or by
                :func:`~ragwitness.crypto.hashing.parse` ``opening.*``.
        """
        value: Any = parse(data, _MOST_BYTES, "opening")
        if not isinstance(value, dict) or value.get("version") != VERSION:
            raise VerificationError("opening.version", f"This does not open a record by {VERSION}.")
        ids, path, text = value.get("ids"), value.get("seed_path"), value.get("text")
        if (
            value.keys() != _FIELDS
            or not isinstance(ids, list)
            or not all(type(slot) is int and 0 <= slot < 1 << 32 for slot in ids)
            or not isinstance(path, list)
            or len(path) > _MOST_PATH
            or not isinstance(text, str | None)
            or not all(isinstance(one, str) for one in (*path, *(value[name] for name in _HEX)))
        ):
            raise VerificationError("opening.fields", "What opens a record is not in its form.")
        sizes = dict.fromkeys(_HEX, HASH_BYTES) | {"answer_blinding": BLINDING_BYTES}
        texts = {name: parse_hex(value[name], sizes[name], "opening.fields") for name in _HEX}
        hashes = tuple(parse_hex(part, HASH_BYTES, "opening.fields") for part in path)
        return cls(ids=tuple(ids), seed_path=hashes, text=text, **texts)


def noise_of(
    mechanism: Mechanism, record: QueryRecord, seed: bytes, query: bytes, beacon: bytes = b""
) -> NDArray[np.int64]:
    """Return the noise of an answer, of all slots, from nothing that its provider could choose.

    Args:
        mechanism: Mechanism that answered.
        record: Record of the answer.
        seed: The record's sub-seed, 32 bytes.
        query: SHA-256 of the query, 32 bytes.
        beacon: Beacon of the window's noise; none where its log has none.
    """
    request = noise_record_of(record, query)
    return slot_noise(mechanism, noise_key(seed, int(record.number), request, beacon))


def noise_record_of(record: QueryRecord, query: bytes) -> NoiseRecord:
    """Return what decides the noise of an answer, from its record.

    Args:
        record: Record of the answer.
        query: SHA-256 of the query, 32 bytes.
    """
    return NoiseRecord(
        window=record.window,
        tenant=record.tenant,
        account=record.account,
        sequence=int(record.sequence),
        nonce=record.nonce,
        checkpoint=record.checkpoint,
        query=query.hex(),
        mechanism=record.mechanism,
    )
