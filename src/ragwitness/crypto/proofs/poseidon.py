"""Poseidon over BN254 (Grassi et al., USENIX Security 2021) as circomlib computes it.

The published Grain LFSR makes the constants again, and published hashes test them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from ragwitness.crypto.proofs.field import R, check_scalars
from ragwitness.errors import InputError

__all__ = ["FULL_ROUNDS", "MAX_INPUTS", "Parameters", "blocks", "parameters", "poseidon"]

FULL_ROUNDS = 8
_PARTIAL_ROUNDS = (56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68)
MAX_INPUTS = len(_PARTIAL_ROUNDS)
"""Inputs of one permutation; longer lists are chained."""

_FIELD_BITS = 254

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Constants of one width.

    Attributes:
        width: t, the elements of the state.
        partial: Rounds with one S-box.
        constants: One row of ``width`` elements for each round.
        matrix: The linear layer, ``width`` rows.
    """

    width: int
    partial: int
    constants: tuple[tuple[int, ...], ...]
    matrix: tuple[tuple[int, ...], ...]

    def is_full(self, round_: int) -> bool:
        """Return whether every element of the state passes the S-box in this round."""
        half = FULL_ROUNDS // 2
        return not half <= round_ < half + self.partial


@cache
def parameters(width: int) -> Parameters:
    """Return the constants for t = ``width``, 2 … 17."""
    partial = _PARTIAL_ROUNDS[width - 2]
    rounds = FULL_ROUNDS + partial
    bits = _grain(width, partial)
    flat = [_below_modulus(bits) for _ in range(rounds * width)]
    while True:
        seeds = [_number(bits) % R for _ in range(2 * width)]
        if len(set(seeds)) == len(seeds):
            break
    matrix = tuple(tuple(pow(x + y, -1, R) for y in seeds[width:]) for x in seeds[:width])
    constants = tuple(tuple(flat[i * width : (i + 1) * width]) for i in range(rounds))
    return Parameters(width, partial, constants, matrix)


def poseidon(inputs: Sequence[int]) -> int:
    """Return the hash of a list of field elements.

    Up to 16 inputs: circomlib's ``Poseidon(n)``, whose width separates the lengths. More: the
    permutation of width 17 in overwrite mode. Its capacity element starts as the length, which
    bounds lists of different length apart although the last block is filled with zeros; each
    block replaces the other 16 elements, and the capacity element is the result. Collisions cost
    about 2¹²⁷ either way.

    Args:
        inputs: At least one, each in [0, R).

    Raises:
        InputError: There is none, or one is outside the field.
    """
    capacity, parts = blocks(check_scalars("inputs of poseidon", inputs))
    for part in parts:
        capacity = _permute([capacity, *part])[0]
    return capacity


def blocks(inputs: Sequence[_T]) -> tuple[int, list[list[_T | int]]]:
    """Return the first capacity element and the blocks that follow it, one per permutation.

    Raises:
        InputError: There is nothing to hash.
    """
    if not inputs:
        raise InputError("Poseidon needs at least one input.")
    if len(inputs) <= MAX_INPUTS:
        return 0, [list(inputs)]
    filled: list[_T | int] = [*inputs, *([0] * (-len(inputs) % MAX_INPUTS))]
    starts = range(0, len(filled), MAX_INPUTS)
    return len(inputs), [filled[start : start + MAX_INPUTS] for start in starts]


def _permute(state: list[int]) -> list[int]:
    known = parameters(len(state))
    for round_, constants in enumerate(known.constants):
        state = [value + constant for value, constant in zip(state, constants, strict=True)]
        boxed = len(state) if known.is_full(round_) else 1
        state[:boxed] = [pow(value, 5, R) for value in state[:boxed]]
        state = [sum(a * b for a, b in zip(row, state, strict=True)) % R for row in known.matrix]
    return state


def _grain(width: int, partial: int) -> Iterator[int]:
    """Yield the bits of the Grain LFSR in self-shrinking mode (Poseidon, app. E)."""
    fields = ((1, 2), (0, 4), (_FIELD_BITS, 12), (width, 12), (FULL_ROUNDS, 10), (partial, 10))
    text = "".join(f"{value:0{bits}b}" for value, bits in fields) + "1" * 30
    clock = _lfsr([int(bit) for bit in text])
    for _ in range(160):
        next(clock)
    for keep, bit in zip(clock, clock, strict=False):
        if keep:
            yield bit


def _lfsr(state: list[int]) -> Iterator[int]:
    """Yield new bits of b[i+80] = b[i+62] + b[i+51] + b[i+38] + b[i+23] + b[i+13] + b[i].

    18 at a time, as many as do not depend on one another.
    """
    word = int("".join(map(str, state)), 2)  # b[i] is the highest bit
    while True:
        new = 0
        for tap in (62, 51, 38, 23, 13, 0):
            new ^= word >> (80 - 18 - tap)
        new &= (1 << 18) - 1
        word = (word << 18 | new) & ((1 << 80) - 1)
        yield from map(int, f"{new:018b}")


def _number(bits: Iterator[int]) -> int:
    return int("".join(map(str, itertools.islice(bits, _FIELD_BITS))), 2)


def _below_modulus(bits: Iterator[int]) -> int:
    while (value := _number(bits)) >= R:
        pass
    return value
