"""LINK accepts exactly what ``select`` chooses."""

import itertools

import numpy as np
import pytest

from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.setup import Shape
from ragwitness.errors import InputError
from ragwitness.privacy.mechanism.release import select
from tests.support.circuits import violated
from tests.unit.crypto.proofs.circuits.link_fields import link_inputs, order_of, tie_breaks

SMALL = Shape(slots=4, top=2, dimension=1, scale=2, reach=3)
SHAPE = Shape(slots=8, top=3, dimension=1, scale=2, reach=3)


def _accepts(circuit, inputs):
    try:
        circuit.witness(inputs)
    except InputError:
        return False
    return True


@pytest.mark.slow
def test_true_selections_with_many_ties():
    rng, circuit = np.random.default_rng(0), link_circuit(SHAPE)
    ties = 0
    for case in range(200):
        noisy = rng.integers(-1 - case % 7, 2 + case % 7, 8)
        found = select(noisy, 3)
        ties += len(set(found.noisy)) < 3
        assert _accepts(circuit, link_inputs(SHAPE, noisy, found.ids, seed=case)), noisy
    assert ties > 70


@pytest.mark.slow
def test_every_other_answer_is_refused():
    """All ordered pairs of slots, for scores of which many are equal."""
    rng, circuit = np.random.default_rng(1), link_circuit(SMALL)
    for case in range(40):
        noisy = rng.integers(-1, 2 + case % 3, 4)
        true = select(noisy, 2).ids
        for ids in itertools.permutations(range(4), 2):
            accepted = _accepts(circuit, link_inputs(SMALL, noisy, ids, seed=case))
            assert accepted == (ids == true), (noisy, ids)


def test_margins_of_the_largest_size():
    shape, circuit = SMALL, link_circuit(SMALL)
    edge = shape.scale**2 + shape.reach
    for noisy in itertools.product((-edge, edge), repeat=4):
        ids = select(np.array(noisy), 2).ids
        assert _accepts(circuit, link_inputs(shape, noisy, ids)), noisy


def test_the_lowest_scores_are_no_answer():
    """What the paper's optimised circuit proves (research notes, 1.1)."""
    noisy = list(range(8))
    with pytest.raises(InputError, match="margin of slot"):
        link_circuit(SHAPE).witness(link_inputs(SHAPE, noisy, (2, 1, 0)))


def test_swapped_neighbours_are_named():
    with pytest.raises(InputError, match="order of places 0 and 1"):
        link_circuit(SHAPE).witness(link_inputs(SHAPE, list(range(8)), (6, 7, 5)))


def _honest():
    return link_inputs(SHAPE, [3, -1, 2, 2, 0, 5, 2, 1], (5, 0, 2))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("margins", 0, 5, "commitment to the margins"),
        ("threshold", 0, 5, "commitment to the threshold"),
        ("salt", 0, 5, "commitment to the threshold"),
        ("masks", 1, 5, "commitment to the margins"),
        ("value", 0, 5, "value at the point"),
        ("point", 0, 5, "value at the point"),
        ("ids", 0, 6, "margin of slot"),
        ("ids", 1, 5, "margin of slot"),
        ("ids", 0, 8, "margin of slot|named slots"),
        ("active", 2, 0, "margin of slot"),
        ("order", 0, R - 20, "order of places 0 and 1"),
        ("best", 0, 12, "the best scores"),
        ("scores", 1, R - 3, "commitment to the margins"),
    ],
)
def test_a_changed_input_is_named(name, place, value, message):
    inputs = _honest()
    assert _accepts(link_circuit(SHAPE), inputs)
    inputs[name] = [*inputs[name]]
    assert inputs[name][place] != value
    inputs[name][place] = value
    with pytest.raises(InputError, match=message):
        link_circuit(SHAPE).witness(inputs)


def test_a_threshold_of_the_provers_choice_is_refused():
    """Any ``best`` but the slots' own, with its commitment made to fit."""
    noisy, ids = [3, -1, 2, 2, 0, 5, 2, 1], (5, 0, 2)
    breaks = tie_breaks(ids, 8)
    true = [2 * noisy[slot] + breaks[slot] for slot in ids]
    for change in itertools.product((-1, 0, 1), repeat=3):
        best = [a + b for a, b in zip(true, change, strict=True)]
        inputs = link_inputs(SHAPE, noisy, ids, best=best)
        assert _accepts(link_circuit(SHAPE), inputs) == (not any(change)), change


@pytest.mark.slow
def test_no_wire_is_free():
    circuit = link_circuit(SMALL)
    wires = circuit.witness(link_inputs(SMALL, [1, 0, 1, -2], (0, 2)))
    assert violated(circuit, wires) is None
    for place in range(1, len(wires)):
        changed = list(wires)
        changed[place] = (changed[place] + 1) % R
        assert violated(circuit, changed), place


def test_other_winners_than_the_named_are_refused():
    """The booleans are the prover's: every choice of them, with all that follows computed."""
    circuit = link_circuit(SMALL)
    honest = circuit.witness(link_inputs(SMALL, [1, 0, 1, -2], (0, 2)))
    first = circuit.inputs["masks"].stop
    assert honest[first : first + 4] == [1, 0, 1, 0]
    for winners in itertools.product((0, 1), repeat=4):
        changed = [*honest[:first], *winners, *honest[first + 4 :]]
        assert (violated(circuit, changed) is None) == (winners == (1, 0, 1, 0))


def test_chunks_share_one_threshold():
    rng, circuit = np.random.default_rng(2), link_circuit(SMALL)
    empty = 0
    for case in range(20):
        noisy = rng.integers(-2, 3, 12)
        ids = select(noisy, 2).ids
        chunks = [link_inputs(SMALL, noisy, ids, chunk=c, seed=case) for c in range(3)]
        assert all(_accepts(circuit, chunk) for chunk in chunks), noisy
        empty += sum(not any(chunk["active"]) for chunk in chunks)
        wrong = tuple(reversed(ids))
        chunks = [link_inputs(SMALL, noisy, wrong, chunk=c, seed=case) for c in range(3)]
        assert not all(_accepts(circuit, chunk) for chunk in chunks), noisy
    assert empty > 5


def test_one_place():
    shape = Shape(slots=4, top=1, dimension=1, scale=2, reach=3)
    for slot in range(4):
        accepted = _accepts(link_circuit(shape), link_inputs(shape, [1, 2, 2, 0], (slot,)))
        assert accepted == (slot == 1)


def test_all_slots_are_winners():
    shape = Shape(slots=3, top=3, dimension=1, scale=2, reach=3)
    for ids in itertools.permutations(range(3)):
        assert _accepts(link_circuit(shape), link_inputs(shape, [1, 2, 1], ids)) == (
            ids == (1, 0, 2)
        )


def test_the_order_input_is_small():
    for ids in itertools.permutations(range(5), 3):
        assert set(order_of(ids, tie_breaks(ids, 5))) <= {0, 1, 2, 3}


@pytest.mark.slow
def test_constraints_per_document():
    """What docs/design/circuits.md states; the dimension does not matter."""
    shape = Shape(slots=256, top=4, dimension=384, scale=4096, reach=200_000)
    assert shape.bits == 27
    assert len(link_circuit(shape).constraints) / 256 < 37
