"""The NORM circuit: it accepts bounded norms and projections with their sum, and nothing else."""

import random

import pytest

from ragwitness.crypto.proofs.circuits.norm import norm_circuit, norm_commitment
from ragwitness.crypto.proofs.gadgets import poseidon
from ragwitness.crypto.proofs.norms.polynomials import PROJECTIONS, Challenges, projection_bits
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.setup import MASKS, Shape
from ragwitness.errors import InputError
from tests.support.circuits import violated
from tests.unit.crypto.proofs.norms.norms_fields import constant

SHAPE = Shape(8, 1, 4, 100, 1000)
HALF = 1 << projection_bits(SHAPE)
MOST = SHAPE.scale**2


def _inputs(seed=0, norms=None, projections=None, shape=SHAPE):
    """A true statement about these norms and projections, if they are in range."""
    draw = random.Random(seed)
    most, half = shape.scale**2, 1 << projection_bits(shape)
    norms = norms or [0, most, *(draw.randint(0, most) for _ in range(shape.slots - 2))]
    norms = [x % R for x in norms] + [draw.randrange(R) for _ in range(MASKS)]
    drawn = [-half, half - 1, *(draw.randrange(-half, half) for _ in range(PROJECTIONS - 2))]
    projections = projections or drawn
    mask, salt = draw.randrange(R), draw.randrange(R)
    challenges = Challenges(*(draw.randrange(R) for _ in range(4)))
    result = challenges.omega * constant(norms, projections, challenges) + mask
    try:
        commitment = norm_commitment(shape, norms, projections, mask, salt)
    except InputError:
        commitment = 0
    return {
        "commitment": [commitment],
        "xi": [challenges.xi],
        "zeta": [challenges.zeta],
        "kappa": [challenges.kappa],
        "omega": [challenges.omega],
        "total": [result % R],
        "norms": norms,
        "projections": [x % R for x in projections],
        "mask": [mask],
        "salt": [salt],
    }


@pytest.mark.parametrize("shape", [SHAPE, Shape(2, 1, 1, 1, 0), Shape(17, 3, 5, 4096, 9)])
def test_true_statements_have_a_witness_that_satisfies_every_row(shape):
    circuit = norm_circuit(shape)
    for seed in range(3):
        inputs = _inputs(seed, shape=shape)
        wires = circuit.witness(inputs)
        assert violated(circuit, wires) is None
        publics = [inputs[name][0] for name in ("commitment", "xi", "zeta", "kappa", "omega")]
        assert wires[1 : circuit.publics + 1] == [*publics, *inputs["total"]]


def test_the_commitment_is_the_hash_that_the_text_states():
    inputs = _inputs(4)
    norms, projections = inputs["norms"], inputs["projections"]
    bits, wide = MOST.bit_length(), projection_bits(SHAPE) + 1
    gaps = [MOST - x for x in norms[: SHAPE.slots]]
    shifted = [(x + HALF) % R for x in projections]
    parts = []
    for values, size in ((gaps, bits), (shifted, wide)):
        each = 253 // size
        parts += [
            sum(v << size * k for k, v in enumerate(values[i : i + each]))
            for i in range(0, len(values), each)
        ]
    last = [*norms[SHAPE.slots :], *inputs["mask"], *inputs["salt"]]
    assert inputs["commitment"] == [poseidon([*parts, *last])]


@pytest.mark.parametrize(
    ("norm", "label"),
    [(MOST + 1, "norm of slot 3"), (-(1 << 14), "norm of slot 3"), (R // 2, "norm")],
)
def test_a_norm_outside_its_range_has_no_witness(norm, label):
    norms = [5] * SHAPE.slots
    norms[3] = norm
    with pytest.raises(InputError, match=label):
        norm_circuit(SHAPE).witness(_inputs(5, norms=norms))
    with pytest.raises(InputError):
        norm_commitment(SHAPE, norms, [0] * PROJECTIONS, 0, 0)


@pytest.mark.parametrize("projection", [HALF, -HALF - 1, R // 2])
def test_a_projection_outside_its_range_has_no_witness(projection):
    projections = [1] * PROJECTIONS
    projections[-1] = projection
    with pytest.raises(InputError, match="size of projection 308"):
        norm_circuit(SHAPE).witness(_inputs(6, projections=projections))
    with pytest.raises(InputError):
        norm_commitment(SHAPE, [0] * (SHAPE.slots + MASKS), projections, 0, 0)


@pytest.mark.parametrize(
    ("name", "place", "label"),
    [
        *((name, 0, "commitment") for name in ("commitment", "salt", "mask")),
        *((name, 0, "masked sum") for name in ("xi", "zeta", "kappa", "omega", "total")),
        ("norms", 2, "commitment"),
        ("norms", SHAPE.slots + 1, "commitment"),
        ("projections", 7, "commitment"),
    ],
)
def test_one_number_changed_has_no_witness(name, place, label):
    inputs = _inputs(7)
    inputs[name] = list(inputs[name])
    inputs[name][place] = (inputs[name][place] + 1) % R
    with pytest.raises(InputError, match=label):
        norm_circuit(SHAPE).witness(inputs)


@pytest.mark.slow
def test_every_wire_is_bound_by_some_row():
    """Two witnesses of one circuit with the same public inputs never differ in one wire alone."""
    circuit = norm_circuit(SHAPE)
    wires = circuit.witness(_inputs(8))
    for wire in random.Random(8).sample(range(1, circuit.wires), 100):
        changed = list(wires)
        changed[wire] = (changed[wire] + 1) % R
        assert violated(circuit, changed) is not None, wire


@pytest.mark.slow
def test_size_at_1024_slots():
    """Stated in docs/design/norms.md."""
    assert 41_000 < len(norm_circuit(Shape(1024, 4, 384, 4096, 1)).constraints) < 41_200
