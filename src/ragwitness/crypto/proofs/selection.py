"""An answer names the highest noisy scores of the committed index: claim, bytes, verifier.

Claimed is that ``ids`` are the K highest of y_j = ⟨v_j, q⟩ + e_j, best first, ties to the lower
slot. The index's columns commit to the rows v; the noise e is public. In every row of H, per chunk,
with s = 1 at winners and o = 1 where a tie would be lost (docs/design/link.md):

- margins' bits M_i are 0 or 1
- (1 - 2s)(U - y) - o = Σ 2^i M_i ≥ 0: losers lie below U, winners above it
- s(y - A) = 0: A holds the winners' own numbers

U is the next winner's number at each winner, the last one's at all losers. That [U] and [A] hold
those K numbers at those places and nothing else is shown by linear algebra beside (Schnorr).

Rounds; prover and verifier name them in their code:

- Round 1, statement: hash of the claim without its noise; hash of the noise
- Round 2, columns: per chunk every bit's, U, A, and first messages R_U, R_A → κ, c
- Round 3, responses: K + 2 a chunk, and [T] → ζ
- Round 4, values: every bit's column at ζ → μ
- Round 5, opening: π
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.argument import (
    ColumnOpening,
    Columns,
    Proof,
    ProofForm,
    first_false,
    opened,
)
from ragwitness.crypto.proofs.arithmetic import (
    MOST_CHUNKS,
    Point,
    ProofTranscript,
    R,
    Shape,
    dot,
    lagrange_at,
    multiexp,
    powers,
    vanishing,
)

DOMAIN = "ragwitness/answer/v1"


@dataclass(frozen=True, slots=True, eq=False)
class AnswerClaim:
    """ids = select(V·query + noise, K), where V is what the columns commit to.

    Attributes:
        columns: Commitments to the index.
        query: Integer vector q, int16, shape (dimension,).
        noise: Public noise of every slot, int64, shape (capacity,); the verifier derives it itself.
        ids: Slots of the answer, best first, ties by slot.
        context: Other bytes that bind the proof, e.g. the hash of the log's record.
    """

    columns: Columns
    query: NDArray[np.int16]
    noise: NDArray[np.int64]
    ids: tuple[int, ...]
    context: bytes

    def heads(self, shape: Shape) -> bytes:
        """Return two hashes, 32 bytes each: of the claim without its noise, and of the noise."""
        # Everything but the noise.
        statement = tagged_hash(
            "ragwitness/answer-statement/v1",
            shape.digest,
            self.columns.encode(),
            self.query.astype("<i2").tobytes(),
            np.array(self.ids, "<u8").tobytes(),
            self.context,
        )
        noise = self.noise.astype("<i8").tobytes()
        return statement + tagged_hash("ragwitness/answer-noise/v1", noise)

    def form(self, shape: Shape) -> ProofForm:
        """Return the form of a proof of this claim."""
        chunks = len(self.columns.chunks)
        scalars = len(self.ids) + 2 * chunks + shape.bits * chunks
        return ProofForm("link", 64, chunks * (shape.bits + 4) + 2, scalars)

    def chunks(self, shape: Shape) -> list[PublicChunk]:
        """Return the public part of each chunk."""
        return [PublicChunk(self, shape, chunk) for chunk in range(len(self.columns.chunks))]


def check_claim(claim: AnswerClaim, shape: Shape) -> None:
    """Check sizes and bounds: outside them the proof's arithmetic would not be that of integers.

    Raises:
        VerificationError: ``link.claim``.
    """
    # Index, noise, query and answer in the shape's sizes.
    chunks, ids = claim.columns.chunks, claim.ids
    query, noise = claim.query, claim.noise
    if not 1 <= len(chunks) <= MOST_CHUNKS or {*map(len, chunks)} != {shape.dimension}:
        raise _claim("the index has no chunks, too many, or of another dimension")
    if noise.dtype != np.int64 or noise.ndim != 1 or shape.chunks(len(noise)) != len(chunks):
        raise _claim("the noise is not int64 for the slots of the index")
    if query.dtype != np.int16 or query.shape != (shape.dimension,):
        raise _claim(f"the query is not an int16 vector of dimension {shape.dimension}")
    if int((query.astype(np.int64) ** 2).sum()) > shape.scale**2:
        raise _claim(f"the query's norm is above {shape.scale:,}")
    inside = all(isinstance(slot, int) and 0 <= slot < len(noise) for slot in ids)
    if not len(set(ids)) == len(ids) == shape.top or not inside:
        raise _claim(f"the answer does not name {shape.top} different slots")
    # ‖q‖ ≤ S and |noise| ≤ reach keep every margin below 2^bits.
    if noise.min() < -shape.reach or noise.max() > shape.reach:
        raise _claim(f"the noise of a slot is above {shape.reach:,}")


def _claim(why: str) -> VerificationError:
    return VerificationError("link.claim", f"The claim cannot be proved: {why}.")


class PublicChunk:
    """The public part of one chunk.

    Attributes:
        number: From 0.
        real: Slots below the index's capacity.
        here: Ranks of the answer's slots in this chunk, with these slots.
        noise: Public noise of the n slots. Behind the capacity it keeps y at 0 or below.
        late: o, 1 where a tie would be lost, so where a margin starts at 1.
    """

    def __init__(self, claim: AnswerClaim, shape: Shape, number: int) -> None:
        ids, slots = claim.ids, shape.slots
        start = number * slots
        self.number = number
        self.real = min(slots, len(claim.noise) - start)
        self.here = [(k, slot - start) for k, slot in enumerate(ids) if slot // slots == number]
        self.noise = shape.part(claim.noise.tolist(), number)
        # A loser before the last winner would win a tie with it, as would the lower of neighbours.
        self.late = [int(start + slot < ids[-1]) for slot in range(self.real)]
        self.late += [0] * (slots - self.real)
        ties = [*(int(slot_a > slot_b) for slot_a, slot_b in pairwise(ids)), 0]
        for rank, slot in self.here:
            self.late[slot] = ties[rank]


@dataclass(frozen=True, slots=True)
class AnswerChallenges:
    """The challenges, in the transcript's order."""

    kappa: int
    c: int
    zeta: int
    mu: int


class AnswerConversation:
    """The transcript: prover and verifier call the same methods in one order."""

    def __init__(self, heads: bytes) -> None:
        # Round 1, statement.
        self._talk = ProofTranscript(DOMAIN, heads)

    def columns(self, points: Sequence[bytes]) -> tuple[int, int]:
        """Absorb every chunk's columns; return κ and c."""
        # Round 2, columns. With κ known first, errors of two bits could be fitted to cancel. With c
        # known first, R_U could make up for a wrong number of one slot.
        self._talk.absorb_points("columns", points)
        return self._talk.challenge("kappa"), self._talk.challenge("c")

    def point(self, responses: Sequence[int], quotient: bytes) -> int:
        """Absorb the responses and [T]; return ζ."""
        # Round 3, responses. An identity of polynomials is fitted at a point known first.
        self._talk.absorb_scalars("responses", responses)
        self._talk.absorb_points("quotient", [quotient])
        return self._talk.challenge("zeta")

    def weight(self, values: Sequence[int]) -> int:
        """Absorb all values; return μ."""
        # Round 4, values. Wrong ones would cancel under weights that are known first.
        self._talk.absorb_scalars("values", values)
        return self._talk.challenge("mu")


def row_weights(claim: AnswerClaim, shape: Shape, kappa: int) -> Iterator[list[int]]:
    """Yield each chunk's powers of κ: one per opened column; of margins and winners."""
    # One power more than is used, where proofs of 0.3.0 had a sum of closed noise: those of opened
    # noise stay valid.
    width = shape.bits + 3
    every = powers(kappa, width * len(claim.columns.chunks))
    return (every[i : i + width] for i in range(0, len(every), width))


def linear_weights(weights: Sequence[int]) -> list[int]:
    """Return each opened column's factor in F, besides that of its square."""
    *bit_weights, _, margin, _ = weights
    # -w of M² - M, and the margin's own sum.
    return [(-w - (margin << i)) % R for i, w in enumerate(bit_weights)]


@dataclass(frozen=True, slots=True)
class ChunkFactors:
    """Factors of a chunk's unopened columns at ζ, and the constant."""

    scores: int
    upper: int
    own: int
    masks: tuple[int, int]
    constant: int


def chunk_factors(
    claim: AnswerClaim,
    shape: Shape,
    held: AnswerChallenges,
    responses: Sequence[int],
    values: Sequence[int],
) -> tuple[list[ChunkFactors], int]:
    """Return each chunk's factors, and that of T, in the sum that must be 0 at ζ.

    Args:
        claim: The claim.
        shape: Shape of the window's proofs.
        held: All challenges.
        responses: About the K winners' numbers, then two blinds of each chunk.
        values: Values of all opened columns at ζ, chunk after chunk.

    Raises:
        VerificationError: ``link.opening``; ζ lies in H.
    """
    vanish, width, top = vanishing(shape.slots, held.zeta), shape.bits, len(claim.ids)
    if not vanish:
        raise VerificationError("link.opening", "The challenge is a root of unity.")
    basis = lagrange_at(shape.slots, held.zeta)
    chunks = claim.chunks(shape)
    # Powers of μ behind those of the opened columns: two a chunk, then F - Z·T.
    *place_factors, last = place_weights(held.mu, len(values), len(chunks))
    factors = []
    for chunk, weights in zip(chunks, row_weights(claim, shape, held.kappa), strict=True):
        at_zeta = values[chunk.number * width : (chunk.number + 1) * width]
        *squares, _, margin, winner = weights
        picks = sum(basis[slot] for _, slot in chunk.here) % R  # s
        sign = margin * (1 - 2 * picks)
        # F's constant part: bits' squares and sums, what is public of y and of o.
        scores = winner * picks - sign
        constant = scores * dot(chunk.noise, basis) - margin * dot(chunk.late, basis)
        constant += dot(squares, (v * v for v in at_zeta))
        constant += dot(linear_weights(weights), at_zeta)
        constant *= last
        # R + c·[·] - Σ response · base, of U and of A.
        up, down = place_factors[2 * chunk.number : 2 * chunk.number + 2]
        ends = responses[top + 2 * chunk.number :]
        for factor, row, end in zip((up, down), number_rows(chunk, top, basis), ends, strict=False):
            constant -= factor * (dot(row, responses[:top]) + end * vanish)
        factors.append(
            ChunkFactors(
                scores=last * scores % R,
                upper=(last * sign + held.c * up) % R,
                own=(held.c * down - last * winner * picks) % R,
                masks=(up, down),
                constant=constant % R,
            )
        )
    return factors, -last * vanish % R


def place_weights(mu: int, opened_columns: int, chunks: int) -> list[int]:
    """Return the powers of μ behind those of the opened columns: two a chunk, then F - Z·T's."""
    first = pow(mu, opened_columns, R)
    return [first * power % R for power in powers(mu, 2 * chunks + 1)]


def number_rows(chunk: PublicChunk, top: int, basis: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the factors of each winner's number in U and in A.

    Args:
        chunk: One chunk.
        top: K.
        basis: L_j at a point; or unit vectors' entry at one slot.
    """
    winners = [0] * top
    for rank, slot in chunk.here:
        winners[rank] = basis[slot]
    upper = [0, *winners[:-1]] if top > 1 else [0]
    # The last number is at all slots but those of winners that have a next one.
    upper[-1] = sum(basis[: chunk.real]) - sum(winners[: top - 2])
    return upper, winners


def verify_answers(shape: Shape, answers: Mapping[str, tuple[AnswerClaim, bytes]]) -> None:
    """Check proofs of answers; returning means that all hold.

    Args:
        shape: Shape of the window's proofs, by its policy.
        answers: By a name for messages, the claim and its proof, of
            :func:`~ragwitness.crypto.proofs.prove_selection.prove_answer`. The claim's noise, query
            and answer are the verifier's own.

    Raises:
        VerificationError: ``link.claim`` (a claim does not fit the shape), ``link.size``,
            ``point.…``, ``link.statement`` (another query, index, answer, shape or context),
            ``link.noise`` (other noise) or ``link.opening``; the message begins with the
            name.
        MissingExtraError: The curve's package is not installed.
    """
    # Read every proof and replay its conversation.
    openings = []
    for name, (claim, data) in answers.items():
        try:
            openings.append([_opening(shape, claim, data)])
        except VerificationError as error:
            raise VerificationError(error.check, f"{name}: {error.message}") from error
    # Everything that needs pairings, of all proofs together.
    wrong = first_false(openings)
    if wrong is not None:
        raise VerificationError(
            "link.opening",
            f"{list(answers)[wrong]}: the named slots are not shown to be the highest noisy scores"
            " of the committed index, in order.",
        )


def _opening(shape: Shape, claim: AnswerClaim, data: bytes) -> ColumnOpening:
    """Replay the conversation; return the sum that must be 0 at ζ."""
    check_claim(claim, shape)
    proof, heads = Proof.parse(data, claim.form(shape)), claim.heads(shape)
    # Round 1, statement. The hashes bind nothing by themselves, since every challenge depends on
    # them anyway; they give the failure its name.
    if proof.head[:32] != heads[:32]:
        raise VerificationError(
            "link.statement", "It was made for another query, index, answer, policy or record."
        )
    if proof.head != heads:
        raise VerificationError("link.noise", "It was made with other noise than is due.")
    points = proof.read()
    chunks, width = len(claim.columns.chunks), shape.bits
    size, split = width + 4, len(claim.ids) + 2 * chunks
    responses, values = proof.scalars[:split], proof.scalars[split:]
    # Rounds 2 to 4. Challenge: κ, c; ζ; μ.
    talk = AnswerConversation(heads)
    kappa, c = talk.columns(proof.points[:-2])
    zeta = talk.point(responses, proof.points[-2])
    challenges = AnswerChallenges(kappa, c, zeta, talk.weight(values))
    # Round 5, opening. Check: all values, the places of U and A, and F = Z·T, at ζ.
    bits = [p for i in range(chunks) for p in points[i * size : i * size + width]]
    terms, constant, _ = opened(bits, values, challenges.mu)
    factors, at_quotient = chunk_factors(claim, shape, challenges, responses, values)
    terms.append((points[-2], at_quotient))
    for i, chunk in enumerate(factors):
        upper, winners, *masks = points[i * size + width : (i + 1) * size]
        scores: Point = multiexp(claim.columns.points[i], claim.query.tolist())
        terms += [(scores, chunk.scores), (upper, chunk.upper), (winners, chunk.own)]
        terms += zip(masks, chunk.masks, strict=True)
        constant += chunk.constant
    return ColumnOpening(terms, constant, zeta, points[-1])
