"""What fixes the form of a window's proofs: sizes and bounds, and the powers they rest on.

The powers are the first of those that the public KZG ceremony for EIP-4844 made in 2023, with more
than 140,000 contributors: a proof is sound if one of them forgot a secret number. A verifier needs
[τ]₂ alone, and it stands here; a prover reads the rest from ``powers.bin`` (:mod:`.domain`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ragwitness.core.errors import InputError
from ragwitness.crypto.canonical import canonical
from ragwitness.crypto.hashing import tagged_hash

TAU = bytes.fromhex(
    "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d"
    "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2"
    "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
)
"""[τ]₂ of the ceremony, the second of its points in G2."""

LEAST_SLOTS, MOST_SLOTS = 1 << 9, 1 << 11
"""Of a chunk: NORM needs a row for each of 309 projections, and the file holds 2,051 powers."""

MOST_TOP = 32
MOST_DIMENSION = 1 << 14
MOST_SCALE = 1 << 12
MOST_REACH = 1 << 40
MOST_CHUNKS = 1 << 10
"""Chunks of one index, here and in everything that reads a length from them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one window's proofs. An index larger than ``slots`` is cut into chunks of that many.

    Attributes:
        slots: Number of slots of one chunk, n: a power of two from 512 to 2,048. The last chunk's
            slots behind the index's capacity are never named by an answer.
        top: Slots that an answer names, K; 1 to 32.
        dimension: Dimension of the vectors, d.
        scale: Bound on the norm of rows and of queries, S.
        reach: Largest size of the noise that the sampler gives.

    Raises:
        InputError: A value is outside its range; the message names it.
    """

    slots: int
    top: int
    dimension: int
    scale: int
    reach: int

    def __post_init__(self) -> None:
        ranges = {
            "slots": (LEAST_SLOTS, MOST_SLOTS),
            "top": (1, MOST_TOP),
            "dimension": (1, MOST_DIMENSION),
            "scale": (1, MOST_SCALE),
            "reach": (0, MOST_REACH),
        }
        for name, (least, most) in ranges.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(
                    f"A proof's shape needs {name} from {least:,} to {most:,}, not"
                    f" {getattr(self, name):,}."
                )
        if self.slots & (self.slots - 1):
            raise InputError(f"A chunk's slots are a power of two, not {self.slots:,}.")

    @property
    def bits(self) -> int:
        """b: the difference of two noisy scores, less a tie, is below 2^b."""
        return (2 * (self.scale**2 + self.reach)).bit_length()

    @property
    def digest(self) -> bytes:
        """A hash, 32 bytes, of the sizes and of the ceremony's [τ]₂."""
        return tagged_hash("ragwitness/proof-shape/v1", canonical(asdict(self)), TAU)

    def chunks(self, capacity: int) -> int:
        """Return how many chunks an index of this capacity has."""
        return -(-capacity // self.slots)

    def part(self, values: Sequence[int], chunk: int, fill: int = 0) -> list[int]:
        """Return a chunk's part of one value a slot, filled up behind the last."""
        own = list(values[chunk * self.slots : (chunk + 1) * self.slots])
        return own + [fill] * (self.slots - len(own))


def chunk_slots(capacity: int) -> int:
    """Return the slots of a chunk, n, where the largest index has this capacity."""
    return min(MOST_SLOTS, max(LEAST_SLOTS, 1 << (capacity - 1).bit_length()))
