"""The provider's side of the norm proof, once per window and chunk (rounds as in :mod:`.norms`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.proofs.argument import Proof, SecretColumns, check_integer_rows
from ragwitness.crypto.proofs.arithmetic import (
    R,
    Shape,
    combine,
    encode_point,
    lagrange_at,
    powers,
    roots,
    vanishing,
)
from ragwitness.crypto.proofs.norms import (
    PROJECTIONS,
    NormChallenges,
    NormConversation,
    Projections,
    bit_counts,
    linear_weights,
    norm_factors,
    projection_bits,
    row_weights,
    verify_norms,
)
from ragwitness.crypto.proofs.prover import (
    Quotient,
    RootsDomain,
    SecretColumn,
    SecretGroup,
    ceremony_domain,
    draw_scalars,
    opening_quotient,
    weighted,
)


@dataclass(frozen=True, slots=True, eq=False)
class NormWitness:
    """One chunk's secrets.

    Attributes:
        rows: The columns V_c.
        bits: N_i, then P_i.
        shown: The projections s_i in rows 0 to 308, and 0 below: the numbers of P's bits, less T.
        image: Y⁽ⁱ⁾ for every projection.
        blinds: Three, of the running sum: its values at τ, wτ (by T) and wζ are shown.
    """

    rows: SecretGroup
    bits: SecretGroup
    shown: list[int] = field(repr=False)
    image: SecretGroup
    blinds: list[int] = field(repr=False)


def prove_norms(shape: Shape, secret: SecretColumns, context: bytes) -> bytes:
    """Return the proof that every row's norm is at most the scale.

    The two blinds of a column hide its commitment and one value, those of one proof: make one proof
    for a set of commitments, and commit anew for another window. A second proof of the same
    commitments would show a second value. It is verified before it is returned.

    Args:
        shape: Shape of the window's proofs.
        secret: Rows and blinds of all chunks.
        context: Window and tenant of the proof.

    Raises:
        InputError: The rows do not fit the shape, or are not those that were committed to.
        MissingExtraError: The curve's package is not installed.
    """
    # Refuse long rows, which cannot be proved, before anything is computed.
    check_integer_rows(secret.rows, shape)
    domain, proofs = ceremony_domain(shape.slots), []
    for chunk in range(len(secret.blinds)):
        talk = NormConversation(shape, secret.public, context, chunk)
        witness = norm_witness(shape, secret.group(chunk, shape), talk)
        proofs.append(argue(shape, talk, witness, domain).encode())
    proof = b"".join(proofs)
    # The provider verifies first: a proof that fails could still reveal the rows.
    try:
        verify_norms(shape, secret.public, context, proof)
    except VerificationError as error:
        raise InputError(
            f"The norm proof does not verify ({error.check}): rows or blinds are not those that"
            " were committed to.",
            "Commit the index again: ragwitness attest commit.",
        ) from error
    return proof


def norm_witness(shape: Shape, rows: SecretGroup, talk: NormConversation) -> NormWitness:
    """Return the secrets of a chunk's proof."""
    drawn, (small, long) = talk.projections, bit_counts(shape)
    # The integers behind the bits: remainders and projections.
    matrix = rows.values.astype(np.int64)
    remainders = shape.scale**2 - (matrix**2).sum(axis=1)
    image = matrix @ drawn.columns.T.astype(np.int64)
    projected = np.zeros(shape.slots, np.int64)
    projected[:PROJECTIONS] = (drawn.rows.T * image).sum(axis=0)
    digits = [remainders[:, None] >> np.arange(small) & 1]
    digits.append((projected + (1 << projection_bits(shape)))[:, None] >> np.arange(long) & 1)
    # Two blinds of each column of bits, three of the running sum.
    scalars = draw_scalars(2 * (small + long) + 3)
    pairs = [scalars[i : i + 2] for i in range(0, 2 * (small + long), 2)]
    # Blinds of the projected columns.
    ends = zip(*rows.blinds, strict=True)
    inner = [combine(drawn.columns.astype(np.int64), row) for row in ends]
    return NormWitness(
        rows,
        SecretGroup(np.concatenate(digits, axis=1), pairs),
        projected.tolist(),
        SecretGroup(image, list(zip(*inner, strict=True))),
        scalars[-3:],
    )


def running_sum(drawn: Projections, held: NormWitness, xi: int) -> SecretColumn:
    """Return G: before each row the sum of Σ_i ξ^i b⁽ⁱ⁾ Y⁽ⁱ⁾ - ξ-column · s of all rows above."""
    xis = powers(xi, PROJECTIONS)
    steps = weighted(drawn.rows.T * held.image.values, xis)
    ends = [r * s for r, s in zip(xis, held.shown[:PROJECTIONS], strict=True)]
    steps = [x - y for x, y in zip(steps, ends + [0] * (len(steps) - PROJECTIONS), strict=True)]
    sums = accumulate(steps[:-1], lambda total, step: (total + step) % R, initial=0)
    return SecretColumn(list(sums), held.blinds)


def norm_quotient(
    shape: Shape,
    drawn: Projections,
    held: NormWitness,
    running: SecretColumn,
    challenges: tuple[int, int],
    domain: RootsDomain,
) -> list[int]:
    """Return T's coefficients, T = F / Z, for ξ and κ."""
    quotient, (xi, kappa), count = Quotient(domain), challenges, len(held.bits.blinds)
    weights, slots = row_weights(shape, kappa), shape.slots
    *bit_weights, squares, sums = weights
    xis, (small, _) = powers(xi, PROJECTIONS), bit_counts(shape)
    # Bits; norms.
    quotient.squares(held.bits, bit_weights)
    quotient.add(1, held.bits.summed(linear_weights(shape, weights)))
    quotient.squares(held.rows, [squares] * shape.dimension)
    quotient.add(squares, SecretColumn([-(shape.scale**2)] * slots, []))
    # G(wX) - G: with Z(wX) = Z(X), blinds β₀ + β₁wX + β₂w²X².
    turned = [*running.values[1:], running.values[0]]
    turns = powers(roots(slots)[1], len(running.blinds))
    blinds = [blind * turn % R for blind, turn in zip(running.blinds, turns, strict=True)]
    quotient.add(sums, SecretColumn(turned, blinds))
    quotient.add(-sums, running)
    # Σ ξ^i b Y, and the ξ-column with the projections by their bits.
    quotient.products(drawn.rows.T.astype(np.int64), held.image, [-sums * x % R for x in xis])
    bit_values = [0] * small + [1 << i for i in range(count - small)]
    terms = [
        (1, held.bits.summed(bit_values)),
        (-1, SecretColumn([1 << projection_bits(shape)] * slots, [])),
    ]
    projected = SecretColumn.total(slots, terms)
    column = np.array([[*xis, *[0] * (slots - PROJECTIONS)]], object).T
    quotient.products(column, projected.group, [sums])
    return quotient.coefficients()


def argue(shape: Shape, talk: NormConversation, held: NormWitness, domain: RootsDomain) -> Proof:
    """Return the proof of these columns; false columns give one that does not verify."""
    drawn, turn = talk.projections, roots(shape.slots)[1]
    # Round 2, bits. Challenge: ξ.
    sent = [encode_point(point) for point in held.bits.commit(domain)]
    xi = talk.bits(sent)
    # Round 3, running sum. Challenge: κ.
    running = running_sum(drawn, held, xi)
    sent.append(encode_point(domain.commit(running.values, running.blinds)))
    kappa = talk.running(sent[-1])
    # Round 4, quotient. Challenge: ζ.
    quotient = norm_quotient(shape, drawn, held, running, (xi, kappa), domain)
    sent.append(encode_point(domain.commit_coefficients(quotient)))
    zeta = talk.quotient(sent[-1])
    # Round 5, values. Challenge: μ.
    basis, vanish = lagrange_at(shape.slots, zeta), vanishing(shape.slots, zeta)
    values = [x for group in (held.rows, held.bits) for x in group.at(basis, vanish, zeta)]
    turned = zeta * turn % R
    turned_basis = lagrange_at(shape.slots, turned)
    values += running.group.at(turned_basis, vanish, turned)
    challenges = NormChallenges(xi, kappa, zeta, talk.values(values))
    # Round 6, openings.
    _, at_running, at_quotient = norm_factors(shape, drawn, challenges, values)
    weights = powers(challenges.mu, len(values) - 1)
    terms = [
        (1, held.rows.summed(weights[: shape.dimension])),
        (1, held.bits.summed(weights[shape.dimension :])),
        (at_running, running),
    ]
    joint = SecretColumn.total(shape.slots, terms)
    for column, factor, at in ((joint, at_quotient, zeta), (running, 0, turned)):
        opened = opening_quotient(domain, column, factor, quotient, at)
        sent.append(encode_point(domain.commit_coefficients(opened)))
    return Proof(talk.head, tuple(sent), tuple(values))
