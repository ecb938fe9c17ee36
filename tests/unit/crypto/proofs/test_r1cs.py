"""The builder and every gadget against plain arithmetic, and against tampered wires."""

import itertools
import random

import numpy as np
import pytest

from ragwitness.crypto.proofs.gadgets import (
    boolean,
    hash_inputs,
    horner,
    pack,
    pack_values,
    poseidon,
    power_sums,
    ranged,
)
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.r1cs import Circuit, Linear, constant, evaluate
from ragwitness.errors import InputError
from tests.support.circuits import violated


def _one_input(gadget):
    circuit = Circuit("test")
    [value] = circuit.private("value")
    gadget(circuit, value)
    return circuit


@pytest.mark.parametrize("bits", range(1, 6))
def test_a_range_holds_exactly_its_numbers(bits):
    circuit = _one_input(lambda c, v: ranged(c, v, bits, "in range"))
    assert len(circuit.constraints) == bits
    for value in range(-3, 2**bits + 3):
        if 0 <= value < 2**bits:
            assert violated(circuit, circuit.witness({"value": [value]})) is None
        else:
            with pytest.raises(InputError, match="in range"):
                circuit.witness({"value": [value % R]})


def test_no_bits_make_a_number_outside_pass():
    """Whatever a cheating prover writes into the wires of the bits."""
    circuit = _one_input(lambda c, v: ranged(c, v, 3, "in range"))
    choices = [0, 1, 2, R - 1, pow(2, -1, R)]
    for value, *bits in itertools.product(range(-4, 12), choices, choices):
        held = violated(circuit, [1, value % R, *bits]) is None
        assert held == (0 <= value < 8 and bits == [value & 1, value >> 1 & 1])


@pytest.mark.parametrize("value", [0, 1, 2, R - 1])
def test_a_boolean(value):
    circuit = _one_input(lambda c, v: boolean(c, v, "a bit"))
    if value < 2:
        assert circuit.witness({"value": [value]}) == [1, value]
    else:
        with pytest.raises(InputError, match="a bit"):
            circuit.witness({"value": [value]})


def _evaluated(count, made, seed=0):
    """Run a gadget on ``count`` random scalars: its outputs, the inputs, and the circuit."""
    circuit = Circuit("test")
    values = [random.Random(seed + i).randrange(R) for i in range(count)]
    outputs = made(circuit, circuit.private("value", count))
    wires = circuit.witness({"value": values})
    assert violated(circuit, wires) is None
    return [evaluate(output, wires) for output in outputs], values, circuit


def test_linear_combinations():
    found, (a, b), circuit = _evaluated(
        2, lambda c, v: [v[0] + v[1], v[0] - v[1], 3 * v[0], v[0] * 3, 5 - v[0], v[0] + 5, 7 + v[1]]
    )
    assert found == [value % R for value in (a + b, a - b, 3 * a, 3 * a, 5 - a, a + 5, 7 + b)]
    assert not circuit.constraints
    assert (constant(4) - 4).terms == {}


def test_a_polynomial():
    found, values, circuit = _evaluated(5, lambda c, v: [horner(c, v[1:], v[0], "polynomial")])
    assert found == [sum(c * pow(values[0], i, R) for i, c in enumerate(values[1:])) % R]
    assert len(circuit.constraints) == 3


def test_power_sums():
    found, values, _ = _evaluated(4, lambda _, v: power_sums(v, 3))
    assert found == [sum(v * j**a for j, v in enumerate(values)) % R for a in range(3)]
    assert found[0] == sum(values) % R  # 0⁰ = 1


def test_packing_is_the_same_inside_and_outside_and_has_one_inverse():
    circuit = Circuit("test")
    values = [random.Random(i).randrange(2**60) for i in range(9)]
    packed = pack(circuit.private("value", 9), 60)
    wires = circuit.witness({"value": values})
    outside = pack_values(values, 60)
    assert [evaluate(part, wires) for part in packed] == outside
    assert [part >> 60 * i & 2**60 - 1 for part in outside for i in range(4)][:9] == values
    assert max(pack_values([2**60 - 1] * 4, 60)) < R
    for wrong in (-1, 2**60):
        with pytest.raises(InputError, match="packed"):
            pack_values([wrong], 60)


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 33])
def test_hashes_inside_are_those_outside(count):
    found, values, circuit = _evaluated(count, lambda c, v: [hash_inputs(c, v, "hash")])
    assert found == [poseidon(values)]
    if count == 2:
        assert len(circuit.constraints) == 3 * (8 * 3 + 57)


def test_every_wire_counts():
    """A change of any one wire breaks a constraint: nothing is left open."""
    circuit = Circuit("test")
    [result] = circuit.public("result")
    values = circuit.private("value", 3)
    for value in values:
        ranged(circuit, value, 4, "in range")
    hashed = hash_inputs(circuit, values, "hash")
    circuit.zero(circuit.product(hashed, values[0], "product") - result, "result")
    wires = circuit.witness({"value": [3, 14, 15], "result": [poseidon([3, 14, 15]) * 3 % R]})
    assert violated(circuit, wires) is None
    for place, delta in itertools.product(range(1, len(wires)), (1, R - 1)):
        changed = list(wires)
        changed[place] = (changed[place] + delta) % R
        assert violated(circuit, changed) is not None


def test_a_wrong_product_is_named():
    circuit = Circuit("test")
    [a], [b] = circuit.public("a"), circuit.private("b")
    circuit.zero(circuit.product(b, b, "square") - a, "a is the square of b")
    assert circuit.witness({"a": [9], "b": [3]}) == [1, 9, 3, 9]
    with pytest.raises(InputError, match="a is the square of b"):
        circuit.witness({"a": [8], "b": [3]})
    assert violated(circuit, [1, 9, 3, 8]) == "square"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "missing or unknown: .'value'"),
        ({"value": [1], "more": [1]}, "missing or unknown: .'more'"),
        ({"value": [1, 2]}, "has 1 values, not 2"),
        ({"value": [R]}, "outside the field"),
        ({"value": [-1]}, "outside the field"),
    ],
)
def test_inputs_are_checked(inputs, message):
    circuit = _one_input(lambda c, v: boolean(c, v, "a bit"))
    with pytest.raises(InputError, match=message):
        circuit.witness(inputs)


def test_integers_of_numpy_do_not_wrap():
    values = np.array([2**30, 2**30 - 1, 5], np.int64)
    plain = [int(value) for value in values]
    assert pack_values(values, 40) == pack_values(plain, 40)
    assert poseidon(values) == poseidon(plain)
    circuit = Circuit("test")
    hashed = hash_inputs(circuit, circuit.private("value", 3), "hash")
    assert evaluate(hashed, circuit.witness({"value": values})) == poseidon(plain)


def test_mistakes_in_writing_a_circuit():
    circuit = Circuit("test")
    circuit.public("a")
    circuit.private("b")
    with pytest.raises(ValueError, match="before everything"):
        circuit.public("c")
    with pytest.raises(ValueError, match="twice"):
        circuit.private("b")


def test_every_public_wire_has_a_row_of_its_own():
    circuit = Circuit("test")
    circuit.public("a", 2)
    rows = list(circuit.rows())
    assert [row.a.terms for row in rows] == [{0: 1}, {1: 1}, {2: 1}]
    assert all(row.b.terms == row.c.terms == Linear({}).terms for row in rows)
