"""The provider's side of an answer's proof (rounds as in :mod:`.answers`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.proofs.argument import Proof, SecretColumns
from ragwitness.crypto.proofs.arithmetic import (
    Point,
    R,
    Shape,
    dot,
    encode_point,
    lagrange_at,
    powers,
    vanishing,
)
from ragwitness.crypto.proofs.prover import (
    Quotient,
    RootsDomain,
    SecretColumn,
    SecretGroup,
    ceremony_domain,
    draw_scalars,
    opening_quotient,
)
from ragwitness.crypto.proofs.selection import (
    AnswerChallenges,
    AnswerClaim,
    AnswerConversation,
    PublicChunk,
    check_claim,
    chunk_factors,
    linear_weights,
    row_weights,
)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkWitness:
    """One chunk's secret columns.

    Attributes:
        bits: Those of the margins: the opened columns.
        scores: ⟨v_j, q⟩: y without noise.
        upper: U.
        own: A.
    """

    bits: SecretGroup
    scores: SecretColumn
    upper: SecretColumn
    own: SecretColumn


def prove_answer(shape: Shape, claim: AnswerClaim, secret: SecretColumns) -> bytes:
    """Prove that the claim's slots are the highest, best first, ties by slot.

    Args:
        shape: Shape of the window's proofs.
        claim: The claim.
        secret: The index and its blinds.

    Returns:
        The proof. Two proofs of one claim share only the hashes of the claim.

    Raises:
        InputError: The answer is not the one that query, noise and index give, or a value does not
            fit the shape.
        MissingExtraError: The curve's package is not installed.
    """
    try:
        check_claim(claim, shape)
    except VerificationError as error:
        raise InputError(
            error.message, "Use the policy, the noise and the index of one window."
        ) from error
    return argue(shape, claim, *witness(shape, claim, secret)).encode()


def witness(
    shape: Shape, claim: AnswerClaim, secret: SecretColumns
) -> tuple[list[int], list[ChunkWitness]]:
    """Return the winners' numbers and each chunk's columns.

    Raises:
        InputError: The answer is not the one that query, noise and index give.
    """
    chunks = claim.chunks(shape)
    scores = [chunk_scores(shape, claim, secret, chunk) for chunk in chunks]
    # Only the mechanism's own answer can be proved.
    rows = [noisy_scores(column, chunk) for column, chunk in zip(scores, chunks, strict=True)]
    noisy = np.concatenate(rows)[: len(claim.noise)]
    best = tuple(np.argsort(-noisy, kind="stable")[: len(claim.ids)].tolist())
    if best != claim.ids:
        raise InputError(
            f"The answer names the slots {list(claim.ids)}; score plus noise puts {list(best)}"
            " first.",
            "No proof can be made of another answer than the mechanism's.",
        )
    # The winners' noisy scores.
    numbers = [int(noisy[slot]) for slot in claim.ids]
    pairs = zip(chunks, scores, strict=True)
    return numbers, [chunk_witness(shape, chunk, numbers, column) for chunk, column in pairs]


def chunk_scores(
    shape: Shape, claim: AnswerClaim, secret: SecretColumns, chunk: PublicChunk
) -> SecretColumn:
    """Return one chunk's scores without noise."""
    # Scores and their blinds are both linear in the columns.
    rows, query = secret.group(chunk.number, shape), claim.query.astype(np.int64)
    blinds = [dot(query.tolist(), row) for row in zip(*rows.blinds, strict=True)]
    return SecretColumn((rows.values @ query).tolist(), blinds)


def noisy_scores(scores: SecretColumn, chunk: PublicChunk) -> NDArray[np.int64]:
    """Return y of one chunk."""
    return np.array(scores.values, np.int64) + np.array(chunk.noise, np.int64)


def chunk_witness(
    shape: Shape, chunk: PublicChunk, numbers: Sequence[int], scores: SecretColumn
) -> ChunkWitness:
    """Return one chunk's columns, given the K winners' numbers."""
    # Margins of all slots, and their bits.
    upper, winners = image(shape, chunk, numbers)
    sign = np.ones(shape.slots, np.int64)
    sign[[slot for _, slot in chunk.here]] = -1
    margins = sign * (np.array(upper) - noisy_scores(scores, chunk)) - np.array(chunk.late)
    matrix = margins[:, None] >> np.arange(shape.bits) & 1
    # Fresh blinds for every secret column.
    drawn = draw_scalars(2 * matrix.shape[1] + 2)
    *blinds, ends = [drawn[i : i + 2] for i in range(0, len(drawn), 2)]
    group = SecretGroup(matrix, blinds)
    numbers_columns = [SecretColumn(v, [b]) for v, b in zip((upper, winners), ends, strict=True)]
    return ChunkWitness(group, scores, *numbers_columns)


def image(shape: Shape, chunk: PublicChunk, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return U's and A's values on H, given the K winners' numbers."""
    upper, winners = (
        [numbers[-1]] * chunk.real + [0] * (shape.slots - chunk.real),
        [0] * shape.slots,
    )
    for rank, slot in chunk.here:
        upper[slot] = numbers[min(rank + 1, len(numbers) - 1)]
        winners[slot] = numbers[rank]
    return upper, winners


def answer_quotient(
    shape: Shape, claim: AnswerClaim, parts: Sequence[ChunkWitness], kappa: int, domain: RootsDomain
) -> list[int]:
    """Return T's coefficients, T = F / Z."""
    quotient = Quotient(domain)
    chunks, rows = claim.chunks(shape), row_weights(claim, shape, kappa)
    for chunk, witness, weights in zip(chunks, parts, rows, strict=True):
        *squares, _, margin, winner = weights
        # Every opened column is 0 or 1, and is the margins' bits.
        quotient.squares(witness.bits, squares)
        quotient.add(1, witness.bits.summed(linear_weights(weights)))
        # U - y - o, whose other part those bits are.
        y = [(1, witness.scores), (1, SecretColumn(chunk.noise, []))]
        scores = SecretColumn.total(shape.slots, y)
        quotient.add(margin, witness.upper)
        quotient.add(-margin, scores)
        quotient.add(-margin, SecretColumn(chunk.late, []))
        # s (2 margin (y - U) + winner (y - A)): the other sign at winners, and their own numbers.
        terms = [
            (2 * margin + winner, scores),
            (-2 * margin, witness.upper),
            (-winner, witness.own),
        ]
        picks = np.zeros((shape.slots, 1), np.int64)
        for _, slot in chunk.here:
            picks[slot] += 1
        quotient.products(picks, SecretColumn.total(shape.slots, terms).group, [1])
    return quotient.coefficients()


def argue(
    shape: Shape,
    claim: AnswerClaim,
    numbers: Sequence[int],
    parts: Sequence[ChunkWitness],
    domain: RootsDomain | None = None,
) -> Proof:
    """Return the proof of these columns; false columns give one that does not verify."""
    domain = domain or ceremony_domain(shape.slots)
    chunks, heads, top = claim.chunks(shape), claim.heads(shape), len(numbers)
    # Round 1, statement.
    talk = AnswerConversation(heads)
    # Round 2, columns: bits, U, A, and the first messages about U and A. Challenge: κ, c.
    masks = draw_scalars(top + 2 * len(parts))
    hidden, points = list[list[SecretColumn]](), list[Point]()
    for chunk, witness in zip(chunks, parts, strict=True):
        blinds = masks[top + 2 * chunk.number :]
        pairs = zip(image(shape, chunk, masks[:top]), blinds, strict=False)
        hidden.append([SecretColumn(column, [blind]) for column, blind in pairs])
        points += witness.bits.commit(domain)
        columns = (witness.upper, witness.own, *hidden[-1])
        points += [domain.commit(column.values, column.blinds) for column in columns]
    sent = [encode_point(point) for point in points]
    kappa, c = talk.columns(sent)
    # Round 3, responses; T = F / Z. Challenge: ζ.
    ends = [column.blinds[0] for witness in parts for column in (witness.upper, witness.own)]
    secrets = [*numbers, *ends]
    responses = [(mask + c * x) % R for mask, x in zip(masks, secrets, strict=True)]
    quotient = answer_quotient(shape, claim, parts, kappa, domain)
    sent.append(encode_point(domain.commit_coefficients(quotient)))
    zeta = talk.point(responses, sent[-1])
    # Round 4, values: every bit's column at ζ. Challenge: μ.
    basis, vanish = lagrange_at(shape.slots, zeta), vanishing(shape.slots, zeta)
    values = [value for witness in parts for value in witness.bits.at(basis, vanish, zeta)]
    challenges = AnswerChallenges(kappa, c, zeta, talk.weight(values))
    # Round 5, opening.
    factors, at_quotient = chunk_factors(claim, shape, challenges, responses, values)
    weights = iter(powers(challenges.mu, len(values)))
    summed = list[tuple[int, SecretColumn]]()
    for witness, masked, factor in zip(parts, hidden, factors, strict=True):
        summed += [
            (1, witness.bits.summed([next(weights) for _ in witness.bits.blinds])),
            (factor.scores, witness.scores),
            (factor.upper, witness.upper),
            (factor.own, witness.own),
            *zip(factor.masks, masked, strict=True),
        ]
    joint = SecretColumn.total(shape.slots, summed)
    opened = opening_quotient(domain, joint, at_quotient, quotient, zeta)
    sent.append(encode_point(domain.commit_coefficients(opened)))
    return Proof(heads, tuple(sent), (*responses, *values))
