"""LINK, the verifier's side: an answer names the highest noisy scores of the committed index.

The argument, and what it leaves out, is in docs/design/link.md. Everything that is cheap is
checked for all proofs before the first pairing. The expensive equations of all proofs are then
checked in groups, as one product each, with random weights of 128 bits; where that fails, each is
checked alone, so that the error names the record and the step.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence

from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.groth16 import terms as groth16_terms
from ragwitness.crypto.proofs.opening import Equation, first_false, mask_terms, opening_terms
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.selection.statement import (
    SelectionClaim,
    SelectionProof,
    check_claim,
    noise_digest,
    public_inputs,
    statement_digest,
)
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.errors import InputError, VerificationError

_TOGETHER = 384  # equations in one product, so that memory does not grow with the records

_MEANING = {
    "link.mask": "what is added to the scores' commitment is not shown to be a mask alone",
    "link.scores": "the scores are not those of the committed index and this query",
    "link.selection": "the named slots are not shown to be the highest noisy scores, in order",
    "coins.opening": "the values claimed for the bits' columns are not those committed to",
    "coins.sum": "the bits are not those of the committed and the public numbers",
}


class ClaimError(VerificationError):
    """One of several proofs does not hold.

    Args:
        check: Name of the check that failed.
        message: What does not hold and why.
        place: Place of the claim in the sequence, from 0.
    """

    def __init__(self, check: str, message: str, place: int) -> None:
        super().__init__(check, message)
        self.place = place

    def __reduce__(self) -> tuple[type[ClaimError], tuple[str, str, int]]:  # type: ignore[override]
        """Travel between processes: what it was made from, not its message."""
        return type(self), (self.check, self.message, self.place)


def verify_selections(
    setup: VerifierSetup,
    claims: Sequence[SelectionClaim],
    proofs: Sequence[bytes],
    beside: Sequence[Equation] = (),
) -> None:
    """Check selection proofs; returning means that all hold.

    Args:
        setup: Made by someone the verifier trusts.
        claims: What is claimed. Their noise, queries and answers are the verifier's own.
        proofs: One per claim, of :func:`~ragwitness.crypto.proofs.provider.prove_selection`.
        beside: What is left of the proofs of their committed noise, to be checked in one product
            with them (:func:`~ragwitness.crypto.proofs.coins.verify.coin_equations`).

    Raises:
        ClaimError: ``link.claim`` (a claim does not fit the setup), ``link.size``, ``point.field``,
            ``point.curve``, ``point.subgroup``, ``link.statement`` (made for another query, index,
            answer, setup or context), ``link.noise`` (made with other noise), ``link.mask``,
            ``link.scores``, ``link.selection``, or one of ``beside``. ``place`` is the claim's.
        InputError: There are not as many proofs as claims.
        MissingExtraError: py_ecc is not installed.
    """
    if len(claims) != len(proofs):
        raise InputError(f"{len(claims)} claims need as many proofs, not {len(proofs)}.")
    # Cheap checks of all proofs: claim, sizes, points, round 1's hashes, the noise in ez.
    digest = setup.digest_bytes
    parsed = []
    for place, (claim, data) in enumerate(zip(claims, proofs, strict=True)):
        parsed.append(_parsed(setup, digest, claim, data, place))
        _check_noise(setup, claim, parsed[-1], place)
    # Equations of pairings, of all proofs, in groups.
    # In order of the claims: committed noise and selection share points, and so multiples.
    own = itertools.chain.from_iterable(
        _equations(setup, claim, proof, place)
        for place, (claim, proof) in enumerate(zip(claims, parsed, strict=True))
    )
    equations = heapq.merge(beside, own, key=lambda found: found.place)
    while group := list(itertools.islice(equations, _TOGETHER)):
        wrong = first_false(group)
        if wrong:
            where = f"Proof {wrong.place}, chunk {wrong.chunk}"
            raise ClaimError(wrong.check, f"{where}: {_MEANING[wrong.check]}.", wrong.place)


def _parsed(
    setup: VerifierSetup, digest: bytes, claim: SelectionClaim, data: bytes, place: int
) -> SelectionProof:
    try:
        check_claim(claim, setup.shape)
        proof = SelectionProof.parse(data, len(claim.columns.chunks))
    except VerificationError as error:
        raise ClaimError(error.check, f"Proof {place}: {error.message}", place) from error
    # Round 1, statement. Check: the two hashes. They bind nothing by themselves, since r depends
    # on the statement anyway; they give the failure its name.
    if proof.statement != statement_digest(digest, claim):
        raise ClaimError(
            "link.statement",
            f"Proof {place} was made for another query, index, answer, setup or context.",
            place,
        )
    if proof.noise != noise_digest(claim):
        raise ClaimError(
            "link.noise",
            f"Proof {place} was made with noise that the sub-seed does not give.",
            place,
        )
    return proof


def _check_noise(
    setup: VerifierSetup, claim: SelectionClaim, proof: SelectionProof, place: int
) -> None:
    # Round 2, commit. Challenge: r.
    point, _ = proof.challenges
    # Round 3, respond. Check: ez = e + Σ_j (2η_j + s_j) r^j in every chunk, with the verifier's
    # own noise: what is ranked is score plus *this* noise.
    for chunk, part in enumerate(proof.chunks):
        if part.noisy != (part.value + claim.shift(point, chunk, setup.shape.slots)) % R:
            raise ClaimError(
                "link.noise",
                f"Proof {place}, chunk {chunk}: what is ranked is not score plus the sub-seed's"
                " noise.",
                place,
            )


def _equations(
    setup: VerifierSetup, claim: SelectionClaim, proof: SelectionProof, place: int
) -> Iterator[Equation]:
    # Round 2, commit. Challenge: r and c.
    point, challenge = proof.challenges
    query = [2 * int(value) for value in claim.query]
    for chunk, part in enumerate(proof.chunks):
        # Round 3, respond. Check: C_Y = 2 Σ q_c C_c + 2 H + C_m opens to e at r, so e holds all
        # scores of the committed index, and its committed noise H where there is some. The first
        # sum is taken here, where its scalars are short, not in the product, where weights make
        # them long: that would only pay for some twenty records of one index.
        held = msm(claim.columns.points(chunk), query)
        noise = claim.hidden[chunk] if claim.hidden else ()
        opened = [(1, held), (1, part.mask), *((2 * scalar, at) for scalar, at in noise)]
        terms = opening_terms(opened, point, part.value, part.quotient, setup.tau)
        yield Equation("link.scores", place, chunk, terms)
        # Check: A_m + c·C_m = Σ (k_i + c·m_i) [τⁿ⁺ⁱ] (Okamoto), so C_m changes no score.
        terms = mask_terms(part.mask, part.first, challenge, part.responses, setup.masks)
        yield Equation("link.mask", place, chunk, terms)
        # Check: Groth16, so the named slots hold the highest z, in order.
        inputs = public_inputs(setup.shape, claim.ids, proof.threshold, part, chunk, point)
        terms = groth16_terms(setup.link, inputs, part.groth16)
        yield Equation("link.selection", place, chunk, terms)
