"""The provider's side of an answer's proof (rounds as in :mod:`.answers`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import tagged_hash
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


@dataclass(frozen=True, slots=True)
class SecretCoins:
    """What opens an answer's commitment to its noise; never published.

    Attributes:
        numbers: One per slot.
        seed: 32 secret bytes, from which the blinds follow, one a chunk: a proof shows the
            commitment, and no value of the column.
    """

    numbers: tuple[int, ...] = field(repr=False)
    seed: bytes = field(repr=False)

    def column(self, shape: Shape, chunk: int) -> SecretColumn:
        """Return a chunk's column; 0 behind the last number."""
        drawn = tagged_hash("ragwitness/coin-blind/v1", self.seed, str(chunk).encode())
        wide = drawn + tagged_hash("ragwitness/coin-blind/v1", drawn)
        values = shape.part(self.numbers, chunk)
        return SecretColumn(values, [int.from_bytes(wide, "big") % R])

    def commit(self, shape: Shape) -> tuple[bytes, ...]:
        """Return the commitment to each chunk, 48 bytes."""
        domain = ceremony_domain(shape.slots)
        columns = (self.column(shape, i) for i in range(shape.chunks(len(self.numbers))))
        return tuple(encode_point(domain.commit(c.values, c.blinds)) for c in columns)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkWitness:
    """One chunk's secret columns.

    Attributes:
        bits: Coins, their carry, margins: what is opened.
        committed: Secret numbers a; zeros for public noise.
        scores: ⟨v_j, q⟩: y without noise.
        upper: U.
        own: A.
    """

    bits: SecretGroup
    committed: SecretColumn
    scores: SecretColumn
    upper: SecretColumn
    own: SecretColumn


def prove_answer(
    shape: Shape,
    claim: AnswerClaim,
    secret: SecretColumns,
    coins: SecretCoins | None = None,
) -> bytes:
    """Prove that the claim's slots are the highest, best first, ties by slot.

    Args:
        shape: Shape of the window's proofs.
        claim: What is claimed.
        secret: The index and its blinds.
        coins: What opens the claim's coins.

    Returns:
        The proof. Two proofs of one claim have nothing in common but the hashes of what is claimed.

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
    if (claim.coins is None) != (coins is None):
        raise InputError("The claim's noise is closed, and nothing opens it; or the reverse.")
    return argue(shape, claim, *witness(shape, claim, secret, coins)).encode()


@dataclass(frozen=True, slots=True, eq=False)
class ChunkScores:
    """What one chunk's scores are made of.

    Attributes:
        scores: ⟨v_j, q⟩.
        committed: Secret numbers a; zeros for public noise.
        tossed: Bits of a + p and the carry, shape (n, bits + 1); no columns for public noise.
        noisy: y.
    """

    scores: SecretColumn
    committed: SecretColumn
    tossed: NDArray[np.int64]
    noisy: NDArray[np.int64]


def witness(
    shape: Shape, claim: AnswerClaim, secret: SecretColumns, coins: SecretCoins | None
) -> tuple[list[int], list[ChunkWitness]]:
    """Return the winners' numbers and each chunk's columns.

    Raises:
        InputError: The answer is not the one that query, noise and index give.
    """
    chunks = claim.chunks(shape)
    found = [noisy_scores(shape, claim, secret, coins, chunk) for chunk in chunks]
    # No proof can be made of another answer than the mechanism's.
    whole = np.concatenate([part.noisy for part in found])[: len(claim.noise)]
    best = tuple(np.argsort(-whole, kind="stable")[: len(claim.ids)].tolist())
    if best != claim.ids:
        raise InputError(
            f"The answer names the slots {list(claim.ids)}; score plus noise puts {list(best)}"
            " first.",
            "No proof can be made of another answer than the mechanism's.",
        )
    numbers = [int(whole[slot]) for slot in claim.ids]
    pairs = zip(chunks, found, strict=True)
    return numbers, [chunk_witness(shape, chunk, numbers, part) for chunk, part in pairs]


def noisy_scores(
    shape: Shape,
    claim: AnswerClaim,
    secret: SecretColumns,
    coins: SecretCoins | None,
    chunk: PublicChunk,
) -> ChunkScores:
    """Return y of one chunk and its parts: scores, public noise, and what the coins add."""
    rows, query = secret.group(chunk.number, shape), claim.query.astype(np.int64)
    blinds = [dot(query.tolist(), row) for row in zip(*rows.blinds, strict=True)]
    scores = rows.values @ query
    committed, tossed = _tossed(shape, claim, coins, chunk)
    noisy = scores + np.array(chunk.noise, np.int64)
    if claim.coins:
        noisy += tossed[:, :-1] @ np.array(claim.coins.coefficients, np.int64)
    return ChunkScores(SecretColumn(scores.tolist(), blinds), committed, tossed, noisy)


def chunk_witness(
    shape: Shape, chunk: PublicChunk, numbers: Sequence[int], held: ChunkScores
) -> ChunkWitness:
    """Return one chunk's columns, given the K winners' numbers."""
    upper, own = image(shape, chunk, numbers)
    sign = np.ones(shape.slots, np.int64)
    sign[[slot for _, slot in chunk.here]] = -1
    margins = sign * (np.array(upper) - held.noisy) - np.array(chunk.late)
    digits = margins[:, None] >> np.arange(shape.bits) & 1
    matrix = np.concatenate([held.tossed, digits], axis=1)
    drawn = draw_scalars(2 * matrix.shape[1] + 2)
    *blinds, ends = [drawn[i : i + 2] for i in range(0, len(drawn), 2)]
    group = SecretGroup(matrix, blinds)
    both = [SecretColumn(v, [b]) for v, b in zip((upper, own), ends, strict=True)]
    return ChunkWitness(group, held.committed, held.scores, *both)


def _tossed(
    shape: Shape, claim: AnswerClaim, coins: SecretCoins | None, chunk: PublicChunk
) -> tuple[SecretColumn, NDArray[np.int64]]:
    """Return the secret numbers a, and the bits of a + p with the carry; none for public noise."""
    if claim.coins is None or coins is None:
        return SecretColumn([0] * shape.slots, [0]), np.zeros((shape.slots, 0), np.int64)
    committed = coins.column(shape, chunk.number)
    width = claim.coins.bits // 8 + 1
    sums = (a + p for a, p in zip(committed.values, chunk.public, strict=True))
    raw = np.frombuffer(b"".join(s.to_bytes(width, "little") for s in sums), np.uint8)
    bits = np.unpackbits(raw.reshape(-1, width), axis=1, bitorder="little")
    return committed, bits[:, : claim.coins.bits + 1].astype(np.int64)


def image(shape: Shape, chunk: PublicChunk, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return U's and A's values on H, given the K winners' numbers."""
    upper, own = [numbers[-1]] * chunk.real + [0] * (shape.slots - chunk.real), [0] * shape.slots
    for place, slot in chunk.here:
        upper[slot] = numbers[min(place + 1, len(numbers) - 1)]
        own[slot] = numbers[place]
    return upper, own


def answer_quotient(
    shape: Shape, claim: AnswerClaim, parts: Sequence[ChunkWitness], kappa: int, domain: RootsDomain
) -> list[int]:
    """Return T's coefficients, T = F / Z."""
    made = Quotient(domain)
    chunks, rows = claim.chunks(shape), row_weights(claim, shape, kappa)
    for chunk, part, weights in zip(chunks, parts, rows, strict=True):
        *squares, total, margin, winner = weights
        # Every opened column is 0 or 1, and is the sums' and margins' bits.
        made.squares(part.bits, squares)
        made.add(1, part.bits.summed(linear_weights(claim, shape, weights)))
        # a + p, and U - y - o, whose other parts those bits are.
        y = [(1, part.scores), (1, SecretColumn(chunk.noise, []))]
        if claim.coins:
            made.add(total, part.committed)
            made.add(total, SecretColumn(chunk.public, []))
            left = part.bits.values.shape[1] - claim.coins.bits
            y.append((1, part.bits.summed([*claim.coins.coefficients, *[0] * left])))
        scores = SecretColumn.total(shape.slots, y)
        made.add(margin, part.upper)
        made.add(-margin, scores)
        made.add(-margin, SecretColumn(chunk.late, []))
        # s (2 margin (y - U) + winner (y - A)): the other sign at winners, and their own numbers.
        both = [(2 * margin + winner, scores), (-2 * margin, part.upper), (-winner, part.own)]
        picks = np.zeros((shape.slots, 1), np.int64)
        for _, slot in chunk.here:
            picks[slot] += 1
        made.products(picks, SecretColumn.total(shape.slots, both).group, [1])
    return made.coefficients()


def argue(
    shape: Shape,
    claim: AnswerClaim,
    numbers: Sequence[int],
    parts: Sequence[ChunkWitness],
    domain: RootsDomain | None = None,
) -> Proof:
    """Return the proof that these columns give; of false ones one that does not verify."""
    domain = domain or ceremony_domain(shape.slots)
    chunks, heads, top = claim.chunks(shape), claim.heads(shape), len(numbers)
    # Round 1, statement.
    talk = AnswerConversation(heads)
    # Round 2, columns: bits, U, A, and the first messages about U and A. Challenge: κ, c.
    masks = draw_scalars(top + 2 * len(parts))
    hidden, points = list[list[SecretColumn]](), list[Point]()
    for chunk, part in zip(chunks, parts, strict=True):
        blinds = masks[top + 2 * chunk.number :]
        both = zip(image(shape, chunk, masks[:top]), blinds, strict=False)
        hidden.append([SecretColumn(column, [blind]) for column, blind in both])
        points += part.bits.commit(domain)
        columns = (part.upper, part.own, *hidden[-1])
        points += [domain.commit(column.values, column.blinds) for column in columns]
    sent = [encode_point(point) for point in points]
    kappa, c = talk.columns(sent)
    # Round 3, responses; T = F / Z. Challenge: ζ.
    ends = [column.blinds[0] for part in parts for column in (part.upper, part.own)]
    known = [*numbers, *ends]
    responses = [(mask + c * x) % R for mask, x in zip(masks, known, strict=True)]
    quotient = answer_quotient(shape, claim, parts, kappa, domain)
    sent.append(encode_point(domain.commit_coefficients(quotient)))
    zeta = talk.point(responses, sent[-1])
    # Round 4, values: every bit's column at ζ. Challenge: μ.
    basis, vanish = lagrange_at(shape.slots, zeta), vanishing(shape.slots, zeta)
    values = [value for part in parts for value in part.bits.at(basis, vanish, zeta)]
    held = AnswerChallenges(kappa, c, zeta, talk.weight(values))
    # Round 5, opening.
    factors, at_quotient = chunk_factors(claim, shape, held, responses, values)
    weights = iter(powers(held.mu, len(values)))
    summed = list[tuple[int, SecretColumn]]()
    for part, masked, factor in zip(parts, hidden, factors, strict=True):
        summed += [
            (1, part.bits.summed([next(weights) for _ in part.bits.blinds])),
            (factor.committed, part.committed),
            (factor.scores, part.scores),
            (factor.upper, part.upper),
            (factor.own, part.own),
            *zip(factor.masks, masked, strict=True),
        ]
    joint = SecretColumn.total(shape.slots, summed)
    opened = opening_quotient(domain, joint, at_quotient, quotient, zeta)
    sent.append(encode_point(domain.commit_coefficients(opened)))
    return Proof(heads, tuple(sent), (*responses, *values))
