"""Which records a provider has to prove: drawn after the close, from randomness nobody chose.

The numbers are SHAKE256 of a public random value (the beacon) and the closing checkpoint. The
checkpoint fixes all records before the beacon is known, so a provider cannot know in time which
of them will be looked at. A beacon that the provider chose or foresaw is worth nothing.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ragwitness.attest.bundle import MAX_RECORDS
from ragwitness.crypto.canonical import canonical, parse, parse_u64, u64_text
from ragwitness.crypto.encoding import parse_hex
from ragwitness.crypto.notes.checkpoint import Checkpoint
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.accounting.ranges import probability

__all__ = [
    "CHALLENGE_VERSION",
    "Challenge",
    "detection",
    "draw_records",
    "make_challenge",
    "parse_challenge",
    "records_for",
]

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
            "challenge.version", f"This is no challenge of version {CHALLENGE_VERSION!r}."
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
        raise VerificationError("challenge.beacon", f"A beacon of {size} bytes is no such thing.")
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
    stream = _Stream(head)
    moved: dict[int, int] = {}
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
    bad, most = _bad(population, share), Fraction(miss)
    low, high = 1, population - bad + 1  # this many leave no room for good ones alone
    while low < high:
        middle = (low + high) // 2
        if _miss(population, bad, middle) <= most:
            high = middle
        else:
            low = middle + 1
    return low


def _bad(population: int, share: float) -> int:
    if not 0 < share <= 1:
        raise InputError(f"A share of bad records lies within (0, 1], not {share:g}.")
    # As written: the float .05 is a little above 1/20, and 5 of 100 would not be enough.
    return max(1, math.ceil(Fraction(str(share)) * population))


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
        limit = (1 << 64) - (1 << 64) % bound
        while True:
            if self._at == len(self._bytes):
                self._bytes = self._shake.digest(max(4096, 2 * len(self._bytes)))
            found = int.from_bytes(self._bytes[self._at : self._at + 8], "big")
            self._at += 8
            if found < limit:
                return found % bound
