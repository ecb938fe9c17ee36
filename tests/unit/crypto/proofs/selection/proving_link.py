"""A provider that lies: LINK's prover from its parts, each of which a test may falsify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ragwitness.crypto.proofs.circuits.link import (
    link_commitment,
    link_margins,
    threshold_commitment,
)
from ragwitness.crypto.proofs.native import from_native_g1, native_msm
from ragwitness.crypto.proofs.opening import divide
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.secret import SecretColumns, draw_scalar
from ragwitness.crypto.proofs.selection.statement import (
    ChunkProof,
    SelectionClaim,
    SelectionProof,
    active,
    challenges,
    noise_digest,
    order_shifts,
    statement_digest,
)


def claim_of(
    secret: SecretColumns, query: np.ndarray, noise: np.ndarray, context: bytes = b"record"
) -> SelectionClaim:
    """The true claim: ids by sorting, independent of the package's."""
    noisy = (secret.rows.astype(np.int64) @ query.astype(np.int64) + noise).tolist()
    ids = sorted(range(len(noisy)), key=lambda slot: (-noisy[slot], slot))[:3]
    return SelectionClaim(secret.public, query, noise, tuple(ids), context)


@dataclass
class Forger:
    """Proves a claim about one chunk; every attribute is where a lie can be told.

    Attributes:
        lie: Slot to what is added to its doubled score in the circuit.
        extra: Coefficients, by power of τ, added to C_m beside its masks.
        open_lie: Whether e and W are those of the falsified scores.
        value: What e is, after r is known; None for the true or falsified polynomial's.
        answer: What the circuit is told to prove; None for the claim's ids.
    """

    setup: ProverSetup
    secret: SecretColumns
    claim: SelectionClaim
    lie: dict[int, int] = field(default_factory=dict)
    extra: dict[int, int] = field(default_factory=dict)
    open_lie: bool = False
    answer: tuple[int, ...] | None = None
    late_mask: bool = False

    def point(self, scalars: dict[int, int]) -> G1:
        powers = [self.setup.powers[power] for power in scalars]
        return from_native_g1(native_msm(powers, list(scalars.values())))

    def prove(self) -> bytes:
        claim, n = self.claim, self.setup.shape.slots
        inner = (self.secret.rows.astype(np.int64) @ claim.query.astype(np.int64)).tolist()
        true = [2 * score for score in inner]
        held = [score + self.lie.get(slot, 0) for slot, score in enumerate(true)]
        told = self.answer or claim.ids
        early = [int(slot <= told[-1]) for slot in range(n)]
        noisy = [
            score + 2 * noise + bit
            for score, noise, bit in zip(held, claim.noise.tolist(), early, strict=True)
        ]
        masks, nonces = ([draw_scalar() for _ in range(3)] for _ in range(2))
        blinds = self.secret.blinds[0]
        effective = [
            (
                2 * sum(q * b[i] for q, b in zip(claim.query.tolist(), blinds, strict=True))
                + masks[i]
            )
            % R
            for i in range(3)
        ]
        mask = self.point({n + i: m for i, m in enumerate(masks)} | self.extra)
        first = self.point({n + i: k for i, k in enumerate(nonces)})
        best = [noisy[slot] for slot in told]
        salt = draw_scalar()
        threshold = threshold_commitment([z % R for z in best], salt)
        gaps = link_margins(noisy, best[-1], set(told))
        hashed = list(effective)
        if self.late_mask:  # solve for a mask that hides the lie at the r of these messages
            sent = (mask, first, link_commitment(self.setup.shape, gaps, effective))
            r, _ = self.challenges(threshold, sent)
            change = sum(value * pow(r, slot, R) for slot, value in self.lie.items())
            hashed[0] = (hashed[0] - change * pow(r, -n, R)) % R
        margins = link_commitment(self.setup.shape, gaps, hashed)
        r, c = self.challenges(threshold, (mask, first, margins))
        scores = held if self.open_lie or self.extra else true
        value, quotient = divide([*scores, *effective], r)
        told_value = 0
        for coefficient in reversed([*noisy, *hashed]):
            told_value = (told_value * r + coefficient) % R
        inputs = {
            "margins": [margins],
            "threshold": [threshold],
            "value": [told_value],
            "point": [r],
            "active": active(told, 0, n)[0],
            "ids": active(told, 0, n)[1],
            "order": order_shifts(told),
            "scores": [z % R for z in noisy],
            "best": [z % R for z in best],
            "salt": [salt],
            "masks": hashed,
        }
        proof = self.setup.prove_link(inputs)
        responses = tuple((k + c * m) % R for k, m in zip(nonces, masks, strict=True))
        witness = from_native_g1(native_msm(self.setup.powers[: len(quotient)], quotient))
        part = ChunkProof(mask, first, margins, responses, value, told_value, witness, proof)
        return SelectionProof(*self.digests, threshold, (part,)).encode()

    @property
    def digests(self) -> tuple[bytes, bytes]:
        setup = self.setup.verifier.digest_bytes
        return statement_digest(setup, self.claim), noise_digest(self.claim)

    def challenges(self, threshold: int, sent: tuple[G1, G1, int]) -> tuple[int, int]:
        return challenges(*self.digests, threshold, [sent])


def replaced(proof: bytes, at: int, data: bytes | Sequence[int]) -> bytes:
    """The proof with other bytes from ``at`` on."""
    return proof[:at] + bytes(data) + proof[at + len(data) :]
