"""What a selection proof is about, and the numbers that both sides read off it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.columns import MOST_CHUNKS, Columns
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.shape import Shape
from ragwitness.errors import VerificationError

__all__ = ["Claim", "active", "check_claim", "noise_digest", "order_shifts", "statement_digest"]


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """ids = select(V·q + noise, K), where V is what the columns commit to.

    Attributes:
        columns: Commitments to the index.
        query: Integer vector q, int16, shape (dimension,).
        noise: Of every slot, int64, shape (capacity,); the verifier derives it itself.
        ids: Slots of the answer, best first, ties by slot.
        context: What the proof is bound to besides, e.g. the hash of the log's record.
    """

    columns: Columns
    query: NDArray[np.int16]
    noise: NDArray[np.int64]
    ids: tuple[int, ...]
    context: bytes

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


def check_claim(claim: Claim, shape: Shape) -> None:
    """Check sizes and bounds: outside them the proof's arithmetic would not be that of integers.

    Raises:
        VerificationError: ``link.claim``.
    """
    chunks = claim.columns.chunks
    query, noise = claim.query, claim.noise
    checks = {
        "the index has no chunks, too many, or of another dimension": 1
        <= len(chunks)
        <= MOST_CHUNKS
        and all(len(chunk) == shape.dimension for chunk in chunks),
        f"the query is no int16 vector of dimension {shape.dimension}": query.dtype == np.int16
        and query.shape == (shape.dimension,),
        f"the noise is not int64 for {len(chunks) * shape.slots:,} slots": noise.dtype == np.int64
        and noise.shape == (len(chunks) * shape.slots,),
        f"the answer does not name {shape.top} different slots": _ids_fit(claim, shape),
    }
    wrong = [message for message, holds in checks.items() if not holds]
    if not wrong and int((query.astype(np.int64) ** 2).sum()) > shape.scale**2:
        wrong.append(f"the query's norm is above {shape.scale:,}")
    if not wrong and (noise.min() < -shape.reach or noise.max() > shape.reach):
        wrong.append(f"the noise of a slot is above {shape.reach:,}")
    if wrong:
        raise VerificationError(
            "link.claim", f"What is claimed does not fit the setup: {wrong[0]}."
        )


def statement_digest(setup_digest: bytes, claim: Claim) -> bytes:
    """Return a hash, 32 bytes, of the claim without its noise, and of the setup."""
    return tagged_hash(
        "ragwitness/link-statement/v1",
        setup_digest,
        claim.columns.encode(),
        claim.query.astype("<i2").tobytes(),
        np.array(claim.ids, "<u8").tobytes(),
        claim.context,
    )


def noise_digest(claim: Claim) -> bytes:
    """Return a hash, 32 bytes, of the claim's noise."""
    return tagged_hash("ragwitness/link-noise/v1", claim.noise.astype("<i8").tobytes())


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
    return [
        (left < right) + 1 - ((left <= last) - (right <= last)) for left, right in pairwise(ids)
    ]


def _ids_fit(claim: Claim, shape: Shape) -> bool:
    capacity = len(claim.columns.chunks) * shape.slots
    ids = claim.ids
    return len(set(ids)) == len(ids) == shape.top and all(
        isinstance(slot, int) and 0 <= slot < capacity for slot in ids
    )
