"""The records that a provider has to prove: drawn after the close, from public randomness.

The numbers are SHAKE256 of a public random value (the beacon) and the closing checkpoint. The
checkpoint fixes all records before the beacon is known, so a provider cannot know in time which
records are drawn. A beacon that the provider chose or foresaw is worth nothing.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from ragwitness.attest.bundle import MAX_RECORDS
from ragwitness.core.errors import InputError, require
from ragwitness.crypto.hashing import canonical
from ragwitness.crypto.notes import Checkpoint
from ragwitness.crypto.records import (
    STRICT,
    U64,
    Hex,
    HexBytes,
    QueryRecord,
    Slots,
    encode_form,
    parse_form,
)
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.ranges import probability
from ragwitness.privacy.release import slot_noise
from ragwitness.privacy.streams import NoiseRecord, noise_key

CHALLENGE_VERSION: Final = "ragwitness/challenge/v1"

_LEAST_BEACON, _MOST_BEACON = 16, 256
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Challenge:
    """A verifier's choice of records that the provider has to prove.

    Attributes:
        beacon: The public random value.
        population: Query records of the window.
        records: Places among them, ascending.
    """

    beacon: HexBytes
    population: U64
    records: tuple[int, ...]
    version: Literal["ragwitness/challenge/v1"] = CHALLENGE_VERSION
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        return encode_form(self)


def make_challenge(beacon: bytes, close: Checkpoint, population: int, count: int) -> Challenge:
    """Draw the records to be proved.

    Args:
        beacon: Public randomness of 16 to 256 bytes, unknown until the log was closed.
        close: The closing checkpoint.
        population: Query records of the window.
        count: Number of records to draw; all of them is Mode A.

    Raises:
        InputError: A value is outside its range.
    """
    if not _LEAST_BEACON <= len(beacon) <= _MOST_BEACON:
        raise InputError(
            f"A beacon has {_LEAST_BEACON} to {_MOST_BEACON} bytes, not {len(beacon)}.",
            "Take a public random value of 32 bytes that was drawn after the close.",
        )
    # One bundle has room for a limited number of records.
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
    challenge = parse_form(Challenge, data, _LONGEST, "challenge")
    # Limits that the types do not express.
    size, records = len(challenge.beacon), challenge.records
    fits = _LEAST_BEACON <= size <= _MOST_BEACON
    require(fits, "challenge.beacon", f"A beacon has not {size} bytes.")
    inside = all(0 <= number < challenge.population for number in records)
    ordered = 1 <= len(records) <= MAX_RECORDS and list(records) == sorted(set(records))
    form = "The challenged records are not distinct, in order and in range."
    require(inside and ordered, "challenge.records", form)
    return challenge


def draw_records(beacon: bytes, close: Checkpoint, population: int, count: int) -> tuple[int, ...]:
    """Return ``count`` distinct places below ``population``, ascending, uniform in the beacon.

    A partial Fisher-Yates shuffle; each step's number is the next 8 bytes of SHAKE256 that lie
    below the largest multiple of its range, so that no place is likelier than another.
    """
    head = canonical([CHALLENGE_VERSION, beacon.hex(), close.text, str(population), str(count)])
    # Beacon and close together decide, and each count has another draw.
    numbers = _uniform_words(head)
    moved: dict[int, int] = {}
    # Fisher-Yates over the first ``count`` places; the table holds those that moved.
    for position in range(count):
        bound = population - position
        limit = (1 << 64) - (1 << 64) % bound
        target = position + next(word for word in numbers if word < limit) % bound
        moved[position], moved[target] = moved.get(target, target), moved.get(position, position)
    return tuple(sorted(moved[position] for position in range(count)))


def _uniform_words(head: bytes) -> Iterator[int]:
    """Yield the 64-bit words of SHAKE256, without end."""
    shake, start, size = hashlib.shake_256(head), 0, 4096
    while True:
        data = shake.digest(size)
        for offset in range(start, size, 8):
            yield int.from_bytes(data[offset : offset + 8], "big")
        start, size = size, 2 * size


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
        miss: Probability that they go unseen, within (0, 1).

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
    allowed = Fraction(miss)
    # A sample above population - bad holds a bad record for certain.
    counts = range(1, population - bad + 1)
    return 1 + bisect_left(counts, True, key=lambda count: _miss(population, bad, count) <= allowed)


def _miss(population: int, bad: int, count: int) -> Fraction:
    """C(N - b, n) / C(N, n), the same with b and n exchanged: over the smaller of the two."""
    if not 0 <= bad <= population or not 0 <= count <= population:
        raise InputError("More records are counted than the window has.")
    # A product over the smaller number, of whole numbers.
    few, many = min(bad, count), max(bad, count)
    if few + many > population:
        return Fraction(0)
    return Fraction(math.perm(population - many, few), math.perm(population, few))


# The opening of a challenged record: ``records/<i>.json`` of a bundle.

_MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A challenged record, opened to every holder of the bundle.

    Attributes:
        query: SHA-256 of the query as the client sent it, 32 bytes.
        query_blinding: 32 bytes.
        ids: The answer's slots, best first.
        answer_blinding: 32 bytes.
        seed: The record's sub-seed, 32 bytes.
        seed_path: From the sub-seed's leaf to the root of the open record.
        text: The query, where the provider keeps it.
    """

    query: Hex
    query_blinding: Hex
    ids: Slots
    answer_blinding: Hex
    seed: Hex
    seed_path: Annotated[tuple[Hex, ...], Field(max_length=64)]
    text: str | None = None
    version: Literal["ragwitness/disclosure/v1"] = "ragwitness/disclosure/v1"
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        return encode_form(self)

    @classmethod
    def parse(cls, data: bytes) -> Disclosure:
        """Return the disclosure that :meth:`encode` wrote.

        Raises:
            VerificationError: ``opening.*``.
        """
        return parse_form(cls, data, _MOST_BYTES, "opening")


def noise_of(
    mechanism: Mechanism, record: QueryRecord, seed: bytes, query: bytes, beacon: bytes = b""
) -> NDArray[np.int64]:
    """Return the noise of an answer, for all slots; its provider could choose none of the inputs.

    Args:
        mechanism: Mechanism that answered.
        record: Record of the answer.
        seed: The record's sub-seed, 32 bytes.
        query: SHA-256 of the query, 32 bytes.
        beacon: Beacon of the window's noise; none where its log has none.
    """
    request = NoiseRecord(
        window=record.window,
        tenant=record.tenant,
        account=record.account,
        sequence=int(record.sequence),
        nonce=record.nonce,
        checkpoint=record.checkpoint,
        query=query.hex(),
        mechanism=record.mechanism,
    )
    return slot_noise(mechanism, noise_key(seed, int(record.number), request, beacon))
