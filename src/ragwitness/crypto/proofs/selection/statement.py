"""What a selection proof is about, its bytes, and the numbers that both sides read off it.

The conversation (docs/design/link.md); prover and verifier name these rounds in their code:

- Round 1, statement: hash of setup, columns, q, ids and context; hash of the noise
- Round 2, commit: per chunk C_m, A_m, hW; once hT → r, c
- Round 3, respond: k_i + c·m_i; e = Y(r) and its quotient W; ez; the circuit's proof
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.opening import MOST_CHUNKS, Columns
from ragwitness.crypto.proofs.points import G1, R, encode_g1, encode_scalar, parse_g1, parse_scalar
from ragwitness.crypto.proofs.setup import MASKS, Shape
from ragwitness.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class SelectionClaim:
    """ids = select(V·q + noise, K), where V is what the columns commit to.

    Attributes:
        columns: Commitments to the index.
        query: Integer vector q, int16, shape (dimension,).
        noise: Noise of every slot, int64, shape (capacity,); the verifier derives it itself.
        ids: Slots of the answer, best first, ties by slot.
        context: What the proof is bound to besides, e.g. the hash of the log's record.
        hidden: Noise that is committed to and not opened, on top of ``noise``: per chunk scalars
            and commitments, whose sum commits to it. Its proof is another's (COINS).
    """

    columns: Columns
    query: NDArray[np.int16]
    noise: NDArray[np.int64]
    ids: tuple[int, ...]
    context: bytes
    hidden: tuple[tuple[tuple[int, G1], ...], ...] = ()

    @property
    def early(self) -> NDArray[np.bool_]:
        """Slots up to the last named one: their ties with it are won, those behind lose theirs."""
        return np.arange(len(self.noise)) <= self.ids[-1]

    def shift(self, point: int, chunk: int, slots: int) -> int:
        """Return Σ_j (2 noise_j + early_j) point^j over a chunk's slots, in the field."""
        part = slice(chunk * slots, (chunk + 1) * slots)
        added = 2 * self.noise[part] + self.early[part]
        total = 0
        for value in reversed(added.tolist()):
            total = (total * point + value) % R
        return total


def check_claim(claim: SelectionClaim, shape: Shape) -> None:
    """Check sizes and bounds: outside them the proof's arithmetic would not be that of integers.

    Raises:
        VerificationError: ``link.claim``.
    """
    # Sizes, and an answer of K different slots.
    chunks = claim.columns.chunks
    ids, capacity = claim.ids, len(chunks) * shape.slots
    query, noise = claim.query, claim.noise
    checks = {
        "the index has no chunks, too many, or of another dimension": 1
        <= len(chunks)
        <= MOST_CHUNKS
        and all(len(chunk) == shape.dimension for chunk in chunks),
        f"the query is not an int16 vector of dimension {shape.dimension}": query.dtype == np.int16
        and query.shape == (shape.dimension,),
        f"the noise is not int64 for {capacity:,} slots": noise.dtype == np.int64
        and noise.shape == (capacity,),
        f"the answer does not name {shape.top} different slots": len(set(ids))
        == len(ids)
        == shape.top
        and all(isinstance(slot, int) and 0 <= slot < capacity for slot in ids),
    }
    wrong = [message for message, holds in checks.items() if not holds]
    if claim.hidden and len(claim.hidden) != len(chunks):
        wrong.append("the committed noise is not of as many chunks as the index")
    # Bounds: ‖q‖ ≤ S and |noise| ≤ reach keep every z below R/2 (link.md, soundness, step 5).
    if not wrong and int((query.astype(np.int64) ** 2).sum()) > shape.scale**2:
        wrong.append(f"the query's norm is above {shape.scale:,}")
    added = [sum(scalar for scalar, _ in part) for part in claim.hidden] or [0]
    if not wrong and (noise.min() < -shape.reach or noise.max() + max(added) > shape.reach):
        wrong.append(f"the noise of a slot is above {shape.reach:,}")
    if wrong:
        raise VerificationError(
            "link.claim", f"What is claimed does not fit the setup: {wrong[0]}."
        )


def statement_digest(setup_digest: bytes, claim: SelectionClaim) -> bytes:
    """Return a hash, 32 bytes, of the claim without its noise, and of the setup."""
    return tagged_hash(
        "ragwitness/link-statement/v1",
        setup_digest,
        claim.columns.encode(),
        claim.query.astype("<i2").tobytes(),
        np.array(claim.ids, "<u8").tobytes(),
        claim.context,
    )


def noise_digest(claim: SelectionClaim) -> bytes:
    """Return a hash, 32 bytes, of the claim's noise: its numbers, and what is committed to."""
    numbers = claim.noise.astype("<i8").tobytes()
    if not claim.hidden:
        return tagged_hash("ragwitness/link-noise/v1", numbers)
    # Committed noise is part of Y, so r follows from it as from everything else.
    terms = (
        encode_scalar(scalar) + encode_g1(held) for part in claim.hidden for scalar, held in part
    )
    return tagged_hash("ragwitness/link-noise/v2", numbers, b"".join(terms))


def active(ids: tuple[int, ...], chunk: int, slots: int) -> tuple[list[int], list[int]]:
    """Return, per place of the answer, whether its slot is in the chunk (1 or 0), and which.

    The slot is counted within the chunk, and is 0 where it is in another.
    """
    here = [int(slot // slots == chunk) for slot in ids]
    return here, [slot % slots if held else 0 for slot, held in zip(ids, here, strict=True)]


def order_shifts(ids: tuple[int, ...]) -> list[int]:
    """Return, for neighbours of the answer, a + 2 in 0 … 3, where z_i - z_(i+1) + a ≥ 0 is due.

    With z = 2y + s, s = 1 up to the last winner's slot, and a = [i's slot is smaller] - 1 -
    (s_i - s_(i+1)), this says y_i ≥ y_(i+1), and > where the slots are in the other order (the
    difference 2(y_i - y_(i+1)) is even).
    """
    last = ids[-1]
    # a_i + 2, with a_i as in "Ties" of link.md.
    return [
        (left < right) + 1 - ((left <= last) - (right <= last)) for left, right in pairwise(ids)
    ]


# A selection proof's bytes, as many as its chunks need, and what follows from them.

HEAD_BYTES = 3 * 32
CHUNK_BYTES = 3 * 64 + (3 + MASKS) * 32 + 256


@dataclass(frozen=True, slots=True)
class ChunkProof:
    """The prover's messages about one chunk.

    Attributes:
        mask: C_m.
        first: First message of the proof that C_m is a mask.
        margins: hW, the commitment to the distances from the threshold and to the masks.
        responses: Last message of the proof that C_m is a mask.
        value: e, the masked scores' polynomial at r.
        noisy: The same with the noise and the ties' bits, as the circuit reads it.
        quotient: W.
        groth16: Proof that the answer names the highest.
    """

    mask: G1
    first: G1
    margins: int
    responses: tuple[int, ...]
    value: int
    noisy: int
    quotient: G1
    groth16: Proof

    def encode(self) -> bytes:
        """Return :data:`CHUNK_BYTES` bytes."""
        scalars = (self.margins, *self.responses, self.value, self.noisy)
        points = (self.mask, self.first, self.quotient)
        return (
            b"".join(map(encode_g1, points))
            + b"".join(map(encode_scalar, scalars))
            + self.groth16.encode()
        )

    @classmethod
    def parse(cls, data: bytes) -> ChunkProof:
        """Return what :meth:`encode` wrote.

        Raises:
            VerificationError: ``point.field``, ``point.curve`` or ``point.subgroup``.
        """
        mask, first, quotient = (parse_g1(data[i : i + 64]) for i in range(0, 192, 64))
        ends = range(192, 192 + 32 * (3 + MASKS), 32)
        margins, *responses, value, noisy = (parse_scalar(data[i : i + 32]) for i in ends)
        groth16 = Proof.parse(data[-256:])
        return cls(mask, first, margins, tuple(responses), value, noisy, quotient, groth16)


@dataclass(frozen=True, slots=True)
class SelectionProof:
    """A whole proof.

    Attributes:
        statement: Hash of what is claimed, noise apart, 32 bytes.
        noise: Hash of the noise, 32 bytes.
        threshold: hT, the commitment to the threshold and the winners' values.
        chunks: One part per chunk.
    """

    statement: bytes
    noise: bytes
    threshold: int
    chunks: tuple[ChunkProof, ...]

    def encode(self) -> bytes:
        """Return 96 bytes and 640 for each chunk."""
        head = self.statement + self.noise + encode_scalar(self.threshold)
        return head + b"".join(chunk.encode() for chunk in self.chunks)

    @property
    def challenges(self) -> tuple[int, int]:
        """:func:`challenges` of what is in the proof."""
        sent = ((part.mask, part.first, part.margins) for part in self.chunks)
        return challenges(self.statement, self.noise, self.threshold, sent)

    @classmethod
    def parse(cls, data: bytes, chunks: int) -> SelectionProof:
        """Return what :meth:`encode` wrote.

        Raises:
            VerificationError: ``link.size``, ``point.field``, ``point.curve``, ``point.subgroup``.
        """
        due = HEAD_BYTES + chunks * CHUNK_BYTES
        if len(data) != due:
            raise VerificationError(
                "link.size",
                f"A selection proof for {chunks} chunks has {due:,} bytes, not {len(data):,}.",
            )
        starts = range(HEAD_BYTES, due, CHUNK_BYTES)
        return cls(
            data[:32],
            data[32:64],
            parse_scalar(data[64:96]),
            tuple(ChunkProof.parse(data[i : i + CHUNK_BYTES]) for i in starts),
        )


def challenges(
    statement: bytes, noise: bytes, threshold: int, commitments: Iterable[tuple[G1, G1, int]]
) -> tuple[int, int]:
    """Return r and the challenge of the masks' proofs.

    Args:
        statement: Hash of what is claimed, noise apart.
        noise: Hash of the noise.
        threshold: hT.
        commitments: Per chunk C_m, its proof's first message and hW. Before r was known, or values
            that the circuit takes could be solved for.
    """
    transcript = ProofTranscript("ragwitness/link/v1")
    # Round 1, statement.
    transcript.absorb("statement", statement)
    transcript.absorb("noise", noise)
    # Round 2, commit. Were r known before hW, a change of z_j could be made up for in the masks:
    # M_0 + (z_j - z'_j) r^(j-n) leaves ez as it is ("Why r follows hW" in link.md).
    transcript.absorb_scalars("threshold", [threshold])
    for mask, first, margins in commitments:
        transcript.absorb_points("mask", [mask, first])
        transcript.absorb_scalars("margins", [margins])
    # Challenge: r, where the scores' polynomial is opened, and c, of the proof that C_m is a mask.
    return transcript.challenge("point"), transcript.challenge("mask")


def public_inputs(
    shape: Shape, ids: tuple[int, ...], threshold: int, part: ChunkProof, chunk: int, point: int
) -> list[int]:
    """Return a chunk's public inputs in the circuit's order."""
    held, slots = active(ids, chunk, shape.slots)
    scalars = [part.margins, threshold, part.noisy, point]
    return [*scalars, *held, *slots, *order_shifts(ids)]
