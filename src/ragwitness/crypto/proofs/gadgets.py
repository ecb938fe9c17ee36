"""Parts that circuits are made of: ranges, polynomials, Poseidon; and their plain counterparts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.points import R, check_scalars
from ragwitness.crypto.proofs.r1cs import (
    NOTHING,
    Circuit,
    Linear,
    Wires,
    constant,
    evaluate,
    weighted,
)
from ragwitness.errors import InputError

# Poseidon over BN254 (Grassi et al., USENIX Security 2021) as circomlib computes it.
#
# The published Grain LFSR makes the constants again, and published hashes test them.

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
    # Round constants: numbers of 254 bits, those not below R left out (Poseidon, app. E).
    flat: list[int] = []
    while len(flat) < rounds * width:
        value = _number(bits)
        if value < R:
            flat.append(value)
    # The matrix: 1 / (x_i + y_j) for distinct x and y, a Cauchy matrix (Poseidon, §2.3).
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
        inputs: Numbers in [0, R), at least one.

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
        # Add the round's constants; S-box x⁵ on all elements or the first; multiply by the matrix.
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
    # The first 160 bits are thrown away; then the first of each pair says whether to keep the
    # second.
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


# Gadgets: what each writes into a circuit, and how many rows it takes.

_CAPACITY = R.bit_length() - 1
"""Bits that fit into one scalar without a wrap."""


def boolean(circuit: Circuit, bit: Linear, label: str) -> None:
    """Require that a combination is 0 or 1: one constraint."""
    circuit.require(bit, 1 - bit, NOTHING, label)


def ranged(circuit: Circuit, value: Linear, bits: int, label: str) -> None:
    """Require that a combination is in [0, 2^bits): ``bits`` constraints.

    The highest bit is no wire; it is what the others leave of the value.
    """
    first = circuit.allocate(bits - 1)

    def step(wires: Wires) -> None:
        number = evaluate(value, wires)
        if number >> bits:
            raise InputError(
                f"The witness does not satisfy the circuit: {label}.",
                "Only a true statement can be proved.",
            )
        for place in range(bits - 1):
            wires[first + place] = number >> place & 1

    circuit.compute(step)
    # Every low bit is 0 or 1, and so is what they leave, divided by 2^(bits - 1).
    low = [Linear({first + place: 1}) for place in range(bits - 1)]
    rest = value - weighted((1 << place, bit) for place, bit in enumerate(low))
    for bit in (*low, rest * pow(1 << bits - 1, -1, R)):
        circuit.require(bit, 1 - bit, NOTHING, label, computed=True)


def horner(circuit: Circuit, coefficients: Sequence[Linear], point: Linear, label: str) -> Linear:
    """Return Σ coefficients[i] · pointⁱ: one constraint for each but the last."""
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + circuit.product(value, point, label)
    return value


def power_sums(values: Sequence[Linear], count: int) -> list[Linear]:
    """Return Σ_j values[j] · jᵃ for a = 0 … count - 1, with 0⁰ = 1; no constraint."""
    return [
        weighted((pow(place, power, R), value) for place, value in enumerate(values))
        for power in range(count)
    ]


def pack(values: Sequence[Linear], bits: int) -> list[Linear]:
    """Return scalars that hold values in [0, 2^bits), as many in each as fit; no constraint."""
    each = _CAPACITY // bits
    return [
        weighted((1 << bits * place, value) for place, value in enumerate(values[i : i + each]))
        for i in range(0, len(values), each)
    ]


def pack_values(values: Sequence[int], bits: int) -> list[int]:
    """Return what :func:`pack` gives for these values.

    Raises:
        InputError: A value is not in [0, 2^bits).
    """
    values = [index(value) for value in values]  # numpy's would wrap around
    if any(not 0 <= value < 1 << bits for value in values):
        raise InputError(f"A value to be packed is not in [0, 2^{bits}).")
    each = _CAPACITY // bits
    return [
        sum(value << bits * place for place, value in enumerate(values[i : i + each]))
        for i in range(0, len(values), each)
    ]


def hash_inputs(circuit: Circuit, inputs: Sequence[Linear], label: str) -> Linear:
    """Return Poseidon of the inputs, as :func:`~.poseidon.poseidon` computes it."""
    start, parts = blocks(inputs)
    capacity = constant(start)
    for part in parts:
        state = [v if isinstance(v, Linear) else constant(v) for v in (capacity, *part)]
        capacity = _permutation(circuit, state, label)
    return capacity


def _permutation(circuit: Circuit, state: Sequence[Linear], label: str) -> Linear:
    """Return the first element after the permutation: three constraints for each S-box."""
    known = _template(len(state))
    base = circuit.allocate(3 * len(known.boxes))

    def localised(row: _Row) -> Linear:
        return Linear({base + 3 * box + 2 if box >= 0 else 0: f for box, f in row.items()})

    # What each S-box reads: state and constants in the first round, outputs of others later.
    first = zip(state, parameters(len(state)).constants[0], strict=True)
    values = [value + added for value, added in first]
    values += [localised(row) for row in known.boxes[len(state) :]]

    def step(wires: Wires) -> None:
        for place, value in enumerate(values):
            x = evaluate(value, wires)
            square = x * x % R
            fourth = square * square % R
            start = base + 3 * place
            wires[start : start + 3] = square, fourth, fourth * x % R

    circuit.compute(step)
    # x⁵ in three rows: x · x, x² · x², x · x⁴.
    for place, value in enumerate(values):
        square, fourth, fifth = (Linear({base + 3 * place + i: 1}) for i in range(3))
        circuit.require(value, value, square, label, computed=True)
        circuit.require(square, square, fourth, label, computed=True)
        circuit.require(value, fourth, fifth, label, computed=True)
    return localised(known.result)


_Row: TypeAlias = dict[int, int]  # S-box, or -1 for the constant one, to coefficient


@dataclass(frozen=True, slots=True)
class _Template:
    """What the S-boxes read: an empty row for each of the first round, then outputs of others."""

    boxes: tuple[_Row, ...]
    result: _Row


@cache
def _template(width: int) -> _Template:
    """Follow the permutation with the S-boxes' outputs as unknowns, once per width."""
    known = parameters(width)
    matrix = np.array(known.matrix, object)
    boxes: list[_Row] = [{} for _ in range(width)]
    columns = [-1, *range(width)]  # what the state's columns stand for
    state = _mixed(matrix, _fresh(width))
    for round_, constants in enumerate(known.constants[1:], 1):
        state[:, 0] = (state[:, 0] + np.array(constants, object)) % R
        # A full round: every element becomes an unknown of its own again.
        if known.is_full(round_):
            boxes += [_row(columns, state[place]) for place in range(width)]
            columns = [-1, *range(len(boxes) - width, len(boxes))]
            state = _fresh(width)
        # A partial round: the first element does; the others stay linear in earlier unknowns.
        else:
            boxes.append(_row(columns, state[0]))
            columns.append(len(boxes) - 1)
            unit = np.zeros((width, 1), object)
            unit[0, 0] = 1
            state[0, :] = 0
            state = np.hstack([state, unit])
        state = _mixed(matrix, state)
    return _Template(tuple(boxes), _row(columns, state[0]))


def _fresh(width: int) -> NDArray[np.object_]:
    """Each element is an unknown of its own: shape (width, 1 + width)."""
    state = np.zeros((width, 1 + width), object)
    state[:, 1:] = np.eye(width, dtype=int).astype(object)
    return state


def _mixed(matrix: NDArray[np.object_], state: NDArray[np.object_]) -> NDArray[np.object_]:
    mixed: NDArray[np.object_] = matrix.dot(state) % R
    return mixed


def _row(columns: Sequence[int], factors: NDArray[np.object_]) -> _Row:
    return {column: int(f) for column, f in zip(columns, factors, strict=True) if f}
