"""The paper's circuits: what they prove, what they cost, and the lie that the optimised lets by."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.groth16 import holds
from ragwitness.crypto.proofs.groth16.zksnake import make_key, prove
from ragwitness.crypto.proofs.native import to_native_g1
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.provider import ProverSetup, commit_columns, prove_selection
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.crypto.proofs.selection.prove import _prove
from ragwitness.crypto.proofs.selection.statement import SelectionClaim
from ragwitness.crypto.proofs.selection.verify import verify_selections
from ragwitness.crypto.proofs.setup import MASKS, Shape, VerifierSetup, make_srs
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.mechanism.release import select
from research.proof_cost import paper_circuits as paper
from research.proof_cost.paper_circuits import (
    naive_circuit,
    naive_inputs,
    noise_step,
    paper_circuit,
    paper_inputs,
    paper_noise,
)
from tests.support.circuits import violated

_SMALL = Shape(slots=13, top=3, dimension=4, scale=16, reach=400)
_QUIET = Shape(slots=13, top=4, dimension=8, scale=64, reach=60)
_ISSUE = Shape(slots=64, top=4, dimension=32, scale=128, reach=4000)
_SEED, _RECORD = 987654321, 11


def _index(shape: Shape, seed: int = 0) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Rows and a query of norm at most the scale."""
    rng = np.random.default_rng(seed)
    most = int(shape.scale / shape.dimension**0.5)
    vectors = rng.integers(-most, most + 1, (shape.slots + 1, shape.dimension)).astype(np.int16)
    return vectors[:-1], vectors[-1]


def _lie(
    shape: Shape, rows: NDArray[np.int16], query: NDArray[np.int16]
) -> tuple[NDArray[np.int64], list[int]]:
    """Scores that leave only the worst documents as they are, and these documents."""
    true = rows.astype(np.int64) @ query.astype(np.int64)
    worst = np.argsort(true + paper_noise(shape, _SEED, _RECORD))[: shape.top]
    said = np.full(shape.slots, -(shape.scale**2))
    said[worst] = true[worst]
    return said, sorted(worst.tolist())


@pytest.mark.parametrize("seed", range(5))
def test_honest_answers_are_accepted(seed: int) -> None:
    rows, query = _index(_SMALL, seed)
    inputs = paper_inputs(_SMALL, rows, query, _SEED, seed)
    noisy = rows.astype(np.int64) @ query + paper_noise(_SMALL, _SEED, seed)
    assert sorted(noisy[list(inputs["ids"])]) == sorted(noisy)[-3:]
    naive = naive_inputs(_SMALL, rows, query, _SEED, seed)
    for circuit, given in ((paper_circuit(_SMALL), inputs), (naive_circuit(_SMALL), naive)):
        assert violated(circuit, circuit.witness(given)) is None


def test_the_noise_is_a_binomial_spread_to_the_reach() -> None:
    shape = Shape(slots=1024, top=1, dimension=1, scale=1, reach=62_000)
    noise = paper_noise(shape, _SEED, _RECORD)
    step = noise_step(shape)
    assert step == 2000
    assert np.abs(noise).max() <= shape.reach
    assert abs(noise.mean()) < 4 * step * 15.5**0.5 / 32  # four standard errors
    assert noise.var() == pytest.approx(15.5 * step**2, rel=0.2)
    assert (noise != paper_noise(shape, _SEED, _RECORD + 1)).mean() > 0.8


@pytest.mark.slow
def test_the_optimised_circuit_proves_that_the_worst_documents_are_the_best() -> None:
    """Found in research; LINK and the naive circuit refuse the same lie."""
    rows, query = _index(_ISSUE)
    said, worst = _lie(_ISSUE, rows, query)
    honest = paper_inputs(_ISSUE, rows, query, _SEED, _RECORD)
    forged = paper_inputs(_ISSUE, rows, query, _SEED, _RECORD, said)
    assert sorted(forged["ids"]) == worst
    assert not set(worst) & set(honest["ids"])
    same = ("root", "seed_hash", "record", "query")  # all that anyone knows before the answer
    assert all(forged[name] == honest[name] for name in same)
    circuit = paper_circuit(_ISSUE)
    wires = circuit.witness(forged)
    key = make_key(circuit)
    proof = prove(key, circuit, wires)
    assert holds(key.verifying, wires[1 : 1 + circuit.publics], proof)


def test_the_naive_circuit_refuses_that_lie() -> None:
    rows, query = _index(_QUIET)
    said, worst = _lie(_QUIET, rows, query)
    forged = paper_inputs(_QUIET, rows, query, _SEED, _RECORD, said)
    told = {name: forged[name] for name in ("ids", "chosen", "threshold")}
    honest = dict(naive_inputs(_QUIET, rows, query, _SEED, _RECORD))
    assert sorted(told["ids"]) == worst
    with pytest.raises(InputError, match="no loser is above the winners"):
        naive_circuit(_QUIET).witness(honest | told)


def _link_setup(shape: Shape) -> ProverSetup:
    """A setup without the norms' circuit, which takes most of a small setup's time."""
    srs, key = make_srs(shape), make_key(link_circuit(shape))
    masks = srs.powers[shape.slots :]
    public = VerifierSetup(shape, srs.tau, masks, key.verifying, key.verifying)
    return ProverSetup(public, [to_native_g1(point) for point in srs.powers], lambda _: key)


def test_link_refuses_that_lie() -> None:
    rows, query = _index(_QUIET)
    said, worst = _lie(_QUIET, rows, query)
    noise = paper_noise(_QUIET, _SEED, _RECORD)
    ids = select(said + noise, _QUIET.top).ids
    assert sorted(ids) == worst
    setup = _link_setup(_QUIET)
    secret = commit_columns(rows, setup)
    with pytest.raises(InputError, match="puts"):
        prove_selection(setup, secret, query, noise, ids, b"record")
    claim = SelectionClaim(secret.public, query, noise, ids, b"record")
    forged = _prove(
        setup, secret, claim, said, ((0,) * MASKS,)
    ).encode()  # what the honest prover never does
    with pytest.raises(VerificationError) as refused:
        verify_selections(setup.verifier, [claim], [forged])
    assert refused.value.check == "link.scores"


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("seed", 0, "the seed"),
        ("record", 0, "no loser|the winners"),
        ("ids", 1, "the winners are those that are named|the path"),
        ("scores_hash", 0, "those committed to"),
        ("scores", 2, "those committed to"),
        ("rows", 0, "in the committed index"),
        ("paths", 3, "in the committed index"),
        ("query", 0, "the index's"),
        ("threshold", 0, "no loser"),
        ("chosen", 0, "winners|0 or 1|no loser"),
    ],
)
def test_every_input_of_the_optimised_circuit_is_bound(name: str, place: int, said: str) -> None:
    rows, query = _index(_SMALL)
    inputs = dict(paper_inputs(_SMALL, rows, query, _SEED, 3))
    changed = list(inputs[name])
    changed[place] = (changed[place] + 1) % R
    with pytest.raises(InputError, match=said):
        paper_circuit(_SMALL).witness(inputs | {name: changed})


def test_only_one_set_of_bits_is_accepted() -> None:
    circuit = Circuit("bits")
    [value] = circuit.public("value")
    bits = paper._strict_bits(circuit, value, "bits")
    first = next(iter(bits[0].terms))
    for number in (0, 5, R - 1, R // 3):
        wires = circuit.witness({"value": [number]})
        assert violated(circuit, wires) is None
        other = number + R  # the same modulo R
        if other >> 254:
            continue
        for place in range(254):
            wires[first + place] = other >> place & 1
        _follow(circuit, wires, first)
        assert violated(circuit, wires) == "bits"


def _follow(circuit: Circuit, wires: list[int], first: int) -> None:
    """Give every wire behind the bits the value that its own row asks for."""
    for row in circuit.constraints:
        [wire, *more] = row.c.terms or [0]
        if wire >= first + 254 and not more:
            a, b = (sum(f * wires[w] for w, f in one.terms.items()) for one in (row.a, row.b))
            wires[wire] = a * b % R


def test_constraints_grow_as_the_gadgets_say() -> None:
    def size(circuit: Circuit) -> int:
        return len(circuit.constraints)

    def shape(slots: int, dimension: int = 4) -> Shape:
        return Shape(slots, 3, dimension, 16, 400)

    ones = (R - 1).bit_count()
    strict = 254 + ones + 1  # bits, the run along R - 1, and their sum
    margin = (2 * (16**2 + noise_step(shape(32)) * 31)).bit_length()
    optimised = (243 + strict) / 4 + 10 + 1 + 1 + margin + 1
    naive = (243 + strict) / 4 + 1 + 1 + margin + 4 * (6 + 1) + 216 + 243
    more = size(paper_circuit(shape(96))) - size(paper_circuit(shape(64)))
    # Packed, 96 scores fill one scalar more; the tree has a level more, which each winner's path
    # pays.
    assert more == 32 * optimised + (300 - 264) + 3 * (243 + 2)
    grown = size(naive_circuit(shape(32))) - size(naive_circuit(shape(16)))
    assert grown == 16 * naive
    wide = size(naive_circuit(shape(8, 8))) - size(naive_circuit(shape(8, 4)))
    assert wide == 8 * 4 * (6 + 1)
