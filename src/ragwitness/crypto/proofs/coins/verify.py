"""COINS, the verifier's side: committed columns hold the bits of committed plus public numbers.

The argument is in docs/design/noise.md. What needs pairings is returned, so that it can share one
product with the selection's equations, which speak of the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragwitness.crypto.proofs.coins.statement import (
    CoinChunk,
    CoinClaim,
    CoinConversation,
    CoinProof,
    check_claim,
    identity_holds,
    total_of,
)
from ragwitness.crypto.proofs.opening import Equation, opening_terms, weighted
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.selection.verify import ClaimError
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.errors import InputError, VerificationError


def coin_equations(
    setup: VerifierSetup, claims: Sequence[CoinClaim], proofs: Sequence[bytes]
) -> tuple[list[CoinProof], list[Equation]]:
    """Check proofs of coins but for their pairings.

    Args:
        setup: Made by someone the verifier trusts.
        claims: What is claimed; committed and public numbers are the verifier's own.
        proofs: One per claim, of :func:`~ragwitness.crypto.proofs.coins.prove.prove_coins`.

    Returns:
        The proofs, read, and the equations that are left, ``place`` being the claim's: all hold if
        :func:`~ragwitness.crypto.proofs.selection.verify.verify_selections` returns with them.

    Raises:
        ClaimError: ``coins.claim``, ``coins.size``, ``point.field``, ``point.curve``,
            ``coins.statement`` (made for other numbers, another setup or context) or ``coins.bits``
            (a column holds something else than bits). ``place`` is the claim's.
        InputError: There are not as many proofs as claims.
    """
    if len(claims) != len(proofs):
        raise InputError(f"{len(claims)} claims need as many proofs, not {len(proofs)}.")
    read: list[CoinProof] = []
    equations: list[Equation] = []
    for place, (claim, data) in enumerate(zip(claims, proofs, strict=True)):
        try:
            check_claim(claim, setup.shape.slots)
            points = claim.points()
            proof = CoinProof.parse(data, claim.bits, len(points))
        except VerificationError as error:
            raise ClaimError(error.check, f"Proof {place}: {error.message}", place) from error
        if proof.statement != claim.digest(setup.digest_bytes):
            raise ClaimError(
                "coins.statement",
                f"Proof {place} was made for other numbers, or another setup or record.",
                place,
            )
        read.append(proof)
        for chunk, (part, point) in enumerate(zip(proof.chunks, points, strict=True)):
            equations += _check_chunk(setup, claim, part, point, (place, chunk))
    return read, equations


def _check_chunk(
    setup: VerifierSetup, claim: CoinClaim, proof: CoinChunk, committed: G1, at: tuple[int, int]
) -> Iterator[Equation]:
    """Replay one chunk's conversation, check the identity, and yield what needs pairings."""
    (place, chunk), slots, values = at, setup.shape.slots, proof.values
    # Rounds 1 to 5. Challenge: κ; ξ, ω; z; weights.
    talk = CoinConversation.begin(setup, claim, chunk)
    kappa = talk.weight(proof.columns)
    xi, omega = talk.point(proof.ends, proof.masks, proof.constant)
    z = talk.place(proof.sides)
    weights = talk.weights(values, proof.end)

    # Check: the identity at z, so that every column holds bits (soundness, step 3).
    total = total_of(xi, omega, slots, proof.end, proof.constant)
    if not identity_holds((kappa, xi, omega, z), slots, values, total):
        raise ClaimError(
            "coins.bits", f"Proof {place}, chunk {chunk}: a column does not hold bits.", place
        )

    # Round 6, openings. Check: all columns at ξz; columns, B and Q at 1/z; A and P at z; G at ξ.
    first, second = weights.first, weights.second
    columns = list(zip(weights.columns, proof.columns, strict=True))
    upper, lower = (
        sum(w * x for w, x in zip(weights.columns, part, strict=True))
        for part in (values.upper, values.lower)
    )
    (a, b), (p, q) = proof.masks, proof.sides
    low = lower + first * values.b + second * values.q
    openings = (
        (columns, xi * z % R, upper),
        ([*columns, (first, b), (second, q)], pow(z, -1, R), low),
        ([(1, a), (first, p)], z, values.a + first * values.p),
        ([(1, proof.ends)], xi, proof.end),
    )
    *four, fifth = proof.quotients
    terms = weighted(
        opening_terms(held, point, value % R, quotient, setup.tau)
        for (held, point, value), quotient in zip(openings, four, strict=True)
    )
    yield Equation("coins.opening", place, chunk, terms)

    # Check: [a] - Σ 2^i [B_i] - 2^bits [carry] opens to -p at z, so the bits are those of a + p.
    part = claim.public[chunk * slots : (chunk + 1) * slots]
    value = 0
    for number in reversed(part):
        value = (value * z + number) % R
    held = [(-(1 << i), point) for i, point in enumerate(proof.columns[:-1])]
    terms = opening_terms([(1, committed), *held], z, -value % R, fifth, setup.tau)
    yield Equation("coins.sum", place, chunk, terms)
