"""Parts that circuits are made of: ranges, polynomials, Poseidon; and their plain counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.poseidon import blocks, parameters
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

__all__ = ["boolean", "hash_inputs", "horner", "pack", "pack_values", "power_sums", "ranged"]

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
        if known.is_full(round_):
            boxes += [_row(columns, state[place]) for place in range(width)]
            columns = [-1, *range(len(boxes) - width, len(boxes))]
            state = _fresh(width)
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
