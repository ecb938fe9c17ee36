"""What fixes the circuits: sizes and bounds, nothing about an index's contents."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.errors import InputError

__all__ = ["MASKS", "MOST_DIMENSION", "MOST_REACH", "MOST_SCALE", "MOST_SLOTS", "MOST_TOP", "Shape"]

MASKS = 3
"""Random coefficients behind the slots of every column and of every sum of columns."""

MOST_SLOTS = 1 << 12
MOST_TOP = 32
MOST_DIMENSION = 1 << 14
MOST_SCALE = 1 << 12
MOST_REACH = 1 << 40


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one setup. An index larger than ``slots`` is cut into chunks of that many.

    Attributes:
        slots: Of one chunk, n; 2 to 4,096.
        top: Slots that an answer names, K; 1 to 32, and at most ``slots``.
        dimension: Of the vectors, d.
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
        _within("slots", self.slots, 2, MOST_SLOTS)
        _within("top", self.top, 1, min(self.slots, MOST_TOP))
        _within("dimension", self.dimension, 1, MOST_DIMENSION)
        _within("scale", self.scale, 1, MOST_SCALE)
        _within("reach", self.reach, 0, MOST_REACH)

    @property
    def bits(self) -> int:
        """Such that the difference of two doubled noisy scores, ties and all, is below 2^bits."""
        return (4 * (self.scale**2 + self.reach) + 4).bit_length()

    @property
    def coefficients(self) -> int:
        """Of a committed polynomial, D = n + 3: the slots, then the masks."""
        return self.slots + MASKS


def _within(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(
            f"A proof's shape needs {name} from {least:,} to {most:,}, not {value!r}.",
            "Larger indexes are cut into chunks: choose slots, and a capacity that it divides.",
        )
