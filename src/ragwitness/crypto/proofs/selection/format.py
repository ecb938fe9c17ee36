"""A selection proof's bytes, as many as its chunks need, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwitness.crypto.proofs.fiat_shamir import Transcript
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.points import G1, encode_g1, encode_scalar, parse_g1, parse_scalar
from ragwitness.crypto.proofs.selection.statement import active, order_shifts
from ragwitness.crypto.proofs.shape import MASKS, Shape
from ragwitness.errors import VerificationError

__all__ = [
    "CHUNK_BYTES",
    "HEAD_BYTES",
    "ChunkProof",
    "SelectionProof",
    "challenges",
    "public_inputs",
]

HEAD_BYTES = 3 * 32
CHUNK_BYTES = 3 * 64 + (3 + MASKS) * 32 + 256


@dataclass(frozen=True, slots=True)
class ChunkProof:
    """What is said about one chunk.

    Attributes:
        mask: C_m.
        first: First message of the proof that C_m is a mask.
        margins: hW, the commitment to the distances from the threshold and to the masks.
        responses: Last message of the proof that C_m is a mask.
        value: e, the masked scores' polynomial at r.
        noisy: The same with the noise and the ties' bits, as the circuit reads it.
        quotient: W.
        groth16: That the answer names the highest.
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
    statement: bytes,
    noise: bytes,
    threshold: int,
    commitments: Iterable[tuple[G1, G1, int]],
) -> tuple[int, int]:
    """Return r and the challenge of the masks' proofs.

    Args:
        statement: Hash of what is claimed, noise apart.
        noise: Hash of the noise.
        threshold: hT.
        commitments: Per chunk C_m, its proof's first message and hW. Before r was known, or values
            that the circuit takes could be solved for.
    """
    transcript = Transcript("ragwitness/link/v1")
    transcript.absorb("statement", statement)
    transcript.absorb("noise", noise)
    transcript.absorb_scalars("threshold", [threshold])
    for mask, first, margins in commitments:
        transcript.absorb_points("mask", [mask, first])
        transcript.absorb_scalars("margins", [margins])
    return transcript.challenge("point"), transcript.challenge("mask")


def public_inputs(
    shape: Shape, ids: tuple[int, ...], threshold: int, part: ChunkProof, chunk: int, point: int
) -> list[int]:
    """Return a chunk's public inputs in the circuit's order."""
    held, slots = active(ids, chunk, shape.slots)
    scalars = [part.margins, threshold, part.noisy, point]
    return [*scalars, *held, *slots, *order_shifts(ids)]
