"""Commitments to an index, one per chunk and column: KZG, blinded (the paper's R6).

A chunk's column c is the polynomial V_c(X) = Σ_j V[j, c] X^j + ρ₀ Xⁿ + ρ₁ Xⁿ⁺¹ + ρ₂ Xⁿ⁺², and its
commitment the point [V_c(τ)]. Each commitment is uniform whatever the column is; three blinds,
because the norm proof shows two evaluations of each column besides (docs/design/norms.md).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ragwitness.crypto.proofs.points import G1, G1_BYTES, parse_g1
from ragwitness.crypto.proofs.shape import Shape
from ragwitness.errors import InputError, VerificationError

__all__ = ["MOST_CHUNKS", "Columns", "check_capacity"]

MOST_CHUNKS = 1 << 10
"""Chunks of one index, here and in everything that reads a length from them."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The public side of an index.

    Attributes:
        chunks: Per chunk and column the commitment, 64 bytes, checked to be a point.
    """

    chunks: tuple[tuple[bytes, ...], ...]

    def encode(self) -> bytes:
        """Return the file: chunk after chunk, column after column."""
        return b"".join(b"".join(chunk) for chunk in self.chunks)

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode` in hex."""
        return hashlib.sha256(self.encode()).hexdigest()

    def points(self, chunk: int) -> list[G1]:
        """Return a chunk's commitments as points.

        Raises:
            VerificationError: ``columns.field`` or ``columns.curve``: made by hand, not parsed.
        """
        return [parse_g1(data, "columns") for data in self.chunks[chunk]]

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> Columns:
        """Return what :meth:`encode` wrote, every point checked.

        Raises:
            VerificationError: ``columns.size`` (not a whole number of chunks from 1 to 1,024),
                ``columns.field`` or ``columns.curve``.
        """
        size = shape.dimension * G1_BYTES
        chunks, rest = divmod(len(data), size)
        if rest or not 1 <= chunks <= MOST_CHUNKS:
            raise VerificationError(
                "columns.size",
                f"{shape.dimension} columns take {size:,} bytes per chunk, for 1 to"
                f" {MOST_CHUNKS:,} chunks; there are {len(data):,}.",
            )
        points = [data[i : i + G1_BYTES] for i in range(0, len(data), G1_BYTES)]
        for point in points:
            parse_g1(point, "columns")
        width = shape.dimension
        return cls(tuple(tuple(points[i * width : (i + 1) * width]) for i in range(chunks)))


def check_capacity(capacity: int, shape: Shape) -> int:
    """Return how many chunks an index of ``capacity`` slots has.

    Raises:
        InputError: It is no multiple of the chunks' slots, or has more than 1,024 chunks.
    """
    chunks, rest = divmod(capacity, shape.slots)
    if rest or not 1 <= chunks <= MOST_CHUNKS:
        raise InputError(
            f"{capacity:,} slots are not 1 to {MOST_CHUNKS:,} whole chunks of {shape.slots:,}.",
            "Choose a capacity that is a multiple of the setup's slots; empty slots are rows of 0.",
        )
    return chunks
