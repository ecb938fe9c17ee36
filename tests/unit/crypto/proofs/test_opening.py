"""Openings and masks: against plain polynomial arithmetic, and what they hide."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from ragwitness.crypto.proofs.curve import msm, product_holds
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_multiples,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.opening import divide, mask_responses, mask_terms, opening_terms
from ragwitness.crypto.proofs.points import G1_GENERATOR, G2_GENERATOR, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.provider import commit_columns, prove_selection
from ragwitness.crypto.proofs.selection.statement import SelectionProof
from tests.unit.crypto.proofs.selection.proving_link import claim_of

pytestmark = pytest.mark.usefixtures("arithmetic")

SLOTS = 6
TAU = 0x1234567890ABCDEF1234567890ABCDEF
POWERS = [
    from_native_g1(point)
    for point in native_multiples(to_native_g1(G1_GENERATOR), [TAU**i for i in range(SLOTS + 3)])
]
[SECOND] = [from_native_g2(point) for point in native_multiples(to_native_g2(G2_GENERATOR), [TAU])]


def at(coefficients: Sequence[int], point: int) -> int:
    return sum(c * pow(point, i, R) for i, c in enumerate(coefficients)) % R


@pytest.mark.parametrize("degree", [0, 1, 2, 8])
def test_division_leaves_the_value(degree: int) -> None:
    rng = random.Random(degree)
    coefficients = [rng.randrange(-R, R) for _ in range(degree + 1)]
    point, other = rng.randrange(R), rng.randrange(R)
    value, quotient = divide(coefficients, point)
    assert value == at(coefficients, point)
    assert len(quotient) == degree
    assert (at(quotient, other) * (other - point) + value - at(coefficients, other)) % R == 0


def test_an_opening_holds_for_its_value_point_and_commitment_alone() -> None:
    rng = random.Random(5)
    coefficients = [rng.randrange(R) for _ in range(SLOTS + 3)]
    committed = msm(POWERS, coefficients)
    value, quotient = divide(coefficients, 99)
    witness = msm(POWERS[:-1], quotient)
    assert product_holds(opening_terms([(1, committed)], 99, value, witness, SECOND))
    assert product_holds(
        opening_terms([(3, committed), (-2, committed)], 99, value, witness, SECOND)
    )
    assert not product_holds(opening_terms([(1, committed)], 99, value + 1, witness, SECOND))
    assert not product_holds(opening_terms([(1, committed)], 98, value, witness, SECOND))
    assert not product_holds(opening_terms([(2, committed)], 99, value, witness, SECOND))


def test_a_mask_is_shown_to_be_one_and_nothing_beside_it() -> None:
    rng = random.Random(6)
    masks, nonces = ([rng.randrange(R) for _ in range(3)] for _ in range(2))
    bases = POWERS[SLOTS:]
    mask, first, challenge = msm(bases, masks), msm(bases, nonces), rng.randrange(R)
    responses = mask_responses(masks, nonces, challenge)
    assert product_holds(mask_terms(mask, first, challenge, responses, bases))
    for slot in range(SLOTS):  # a score changed by 1 on the way
        lied = msm([*bases, POWERS[slot]], [*masks, 1])
        assert not product_holds(mask_terms(lied, first, challenge, responses, bases))
    assert not product_holds(mask_terms(mask, first, challenge + 1, responses, bases))


def test_a_masks_proof_can_be_simulated_without_the_mask() -> None:
    """Zero knowledge: whoever knows the challenge first needs no secret for a proof that holds."""
    rng = random.Random(7)
    bases = POWERS[SLOTS:]
    mask, challenge = POWERS[2], rng.randrange(R)
    responses = [rng.randrange(R) for _ in range(3)]
    first = msm([*bases, mask], [*responses, -challenge])
    assert product_holds(mask_terms(mask, first, challenge, responses, bases))


def test_one_mask_lets_a_guess_be_confirmed_and_three_fit_every_guess() -> None:
    """Commitment and value are two functions of the masks: one mask is not enough to hide."""
    rng = random.Random(8)
    scores = [rng.randrange(1000) for _ in range(SLOTS)]
    guess = [*scores[:-1], scores[-1] + 1]
    r = rng.randrange(R)

    one = rng.randrange(R)
    seen = msm(POWERS[: SLOTS + 1], [*scores, one]), at([*scores, one], r)
    for candidate, confirmed in ((scores, True), (guess, False)):
        mask = (seen[1] - at(candidate, r)) * pow(r, -SLOTS, R) % R
        assert (msm(POWERS[: SLOTS + 1], [*candidate, mask]) == seen[0]) is confirmed

    three = [rng.randrange(R) for _ in range(3)]
    seen = msm(POWERS, [*scores, *three]), at([*scores, *three], r)
    for last in range(3):  # whatever the third mask would be, two others make the guess fit
        left = (at([*scores, *three], TAU) - at(guess, TAU)) * pow(TAU, -SLOTS, R) - last * TAU**2
        right = (seen[1] - at(guess, r)) * pow(r, -SLOTS, R) - last * r**2
        slope = (left - right) * pow(TAU - r, -1, R) % R
        fitted = [(left - slope * TAU) % R, slope, last]
        assert (msm(POWERS, [*guess, *fitted]), at([*guess, *fitted], r)) == seen
        assert fitted != three


def test_two_proofs_of_one_statement_have_nothing_in_common(link_setup: ProverSetup) -> None:
    rows = np.arange(-16, 16).reshape(8, 4).astype(np.int16) // 4
    secret = commit_columns(rows, link_setup)
    claim = claim_of(secret, np.array([3, -2, 5, 7], np.int16), np.arange(8) - 4)
    one, two = (
        SelectionProof.parse(
            prove_selection(link_setup, secret, claim.query, claim.noise, claim.ids, claim.context),
            1,
        )
        for _ in range(2)
    )
    assert (one.statement, one.noise) == (two.statement, two.noise)
    assert one.threshold != two.threshold
    [left], [right] = one.chunks, two.chunks
    for name in ("mask", "first", "margins", "value", "noisy", "quotient"):
        assert getattr(left, name) != getattr(right, name)
    assert not set(left.responses) & set(right.responses)
    assert len({left.groth16.a, left.groth16.c, right.groth16.a, right.groth16.c}) == 4
