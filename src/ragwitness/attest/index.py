"""The commitment to a tenant's index: columns, norms and documents (R6; C_V of eq. 5.1)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragwitness.attest.policy import Policy
from ragwitness.crypto.canonical import canonical, parse, parse_u64
from ragwitness.crypto.commitments import Opening, commit
from ragwitness.crypto.encoding import parse_hex
from ragwitness.crypto.hashing import HASH_BYTES, tagged_hash
from ragwitness.crypto.log import MerkleLog
from ragwitness.crypto.proofs.shape import Shape
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.sampler import gaussian_table

__all__ = [
    "IndexCard",
    "check_shape",
    "document_opening",
    "documents_root",
    "index_commitment",
    "proof_shape",
    "sha256_hex",
]

_MOST_SLOTS = 4096
_MOST_BYTES = 4096
_SIGMAS = 40
_FIELDS = ("columns", "dimension", "documents", "norms", "slots")


@dataclass(frozen=True, slots=True)
class IndexCard:
    """What a window says of one index in public.

    Attributes:
        columns: SHA-256 of the column commitments, in hex.
        norms: SHA-256 of the proof that no row is longer than the scale, in hex.
        documents: Root over what lies in the slots (:func:`documents_root`), in hex.
        slots: Of the index.
        dimension: Of its vectors.
    """

    columns: str
    norms: str
    documents: str
    slots: int
    dimension: int

    def encode(self) -> bytes:
        """Return the canonical JSON, ``index.json`` of a window."""
        return canonical({name: str(getattr(self, name)) for name in _FIELDS})

    @classmethod
    def parse(cls, data: bytes) -> IndexCard:
        """Return the card of :meth:`encode`'s bytes.

        Raises:
            VerificationError: ``index.fields``, ``index.digest``, ``index.number``, or by
                :func:`~ragwitness.crypto.canonical.parse` ``index.*``.
        """
        value = parse(data, _MOST_BYTES, "index")
        named = isinstance(value, dict) and set(value) == set(_FIELDS)
        if not named or not all(isinstance(part, str) for part in value.values()):
            raise VerificationError(
                "index.fields", f"An index is stated by the texts {', '.join(_FIELDS)}."
            )
        for name in ("columns", "norms", "documents"):
            parse_hex(value[name], HASH_BYTES, "index.digest")
        numbers = {name: parse_u64(value[name], "index.number") for name in ("slots", "dimension")}
        return cls(**(value | numbers))


def index_commitment(data: bytes) -> str:
    """Return what the open record holds for an ``index.json``, in hex."""
    return tagged_hash("ragwitness/index/v1", data).hex()


def document_opening(slot: int, digest: str, blinding: bytes) -> Opening:
    """Return what opens one slot's leaf: which text lies there.

    Args:
        slot: Its number.
        digest: SHA-256 of the text in hex; empty for an empty slot.
        blinding: 32 bytes.
    """
    message = canonical({"sha256": digest, "slot": str(slot)})
    return Opening("ragwitness/document/v1", message, blinding)


def documents_root(digests: Sequence[str], blindings: Sequence[bytes]) -> str:
    """Return the Merkle root over all slots, in hex.

    Each leaf is a blinded commitment, so that opening one says nothing of the texts beside it, nor
    which slots are empty.

    Args:
        digests: SHA-256 of the text in each slot, in hex; empty for an empty slot.
        blindings: 32 bytes for each.
    """
    log = MerkleLog()
    pairs = enumerate(zip(digests, blindings, strict=True))
    log.extend(
        commit(document_opening(slot, digest, blinding)) for slot, (digest, blinding) in pairs
    )
    return log.root().hex()


def proof_shape(policy: Policy) -> Shape:
    """Return the size of the proofs that fit all of a policy's indexes.

    An index of more than 4,096 slots is proved in equal chunks, so all capacities are multiples of
    the chunk. The exact sampler's noise has no bound; beyond 40 sigma, where a slot's lies once in
    2¹¹⁵³ draws, an answer could not be proved.

    Raises:
        InputError: The indexes differ in dimension, top or scale, their capacities have no common
            chunk, or a mechanism cannot be proved: one with a shift, or with clipping.
    """
    for name, mechanism in policy.tenants.items():
        _provable(name, mechanism)
    alike = {(m.dimension, m.top, m.scale) for m in policy.tenants.values()}
    if len(alike) > 1:
        raise InputError(
            "The policy's tenants differ in dimension, top or scale; one setup proves one of each.",
            "Open a window of its own for each kind.",
        )
    [(dimension, top, scale)] = alike
    reach = max(map(_noise_reach, policy.tenants.values()))
    return Shape(_chunk(policy.tenants), top, dimension, scale, reach)


def check_shape(shape: Shape, policy: Policy) -> None:
    """Check that a setup proves the indexes of a policy: the same sizes, as much noise or more.

    Raises:
        InputError: It does not.
    """
    due = proof_shape(policy)
    same = (shape.top, shape.dimension, shape.scale) == (due.top, due.dimension, due.scale)
    if not same or shape.reach < due.reach or due.slots % shape.slots:
        raise InputError(
            "The setup proves another shape than the policy's indexes have.",
            "Make one for this policy: ragwitness setup --policy POLICY -o SETUP.",
        )


def _noise_reach(mechanism: Mechanism) -> int:
    if mechanism.sampler == "table":
        return gaussian_table(mechanism.variance).radius
    return _SIGMAS * (math.isqrt(math.ceil(mechanism.variance)) + 1)


def _provable(name: str, mechanism: Mechanism) -> None:
    full = mechanism.scale**2
    for wrong, what in (
        (mechanism.shift != 0, "drops bits of every score (a shift)"),
        (mechanism.bounds != (-full, full), "clips its scores"),
    ):
        if wrong:
            raise InputError(
                f"The mechanism of {name} {what}, which the selection proof does not cover.",
                "Use shift 0, no bounds, and a scale of at most 256.",
            )


def _chunk(tenants: Mapping[str, Mechanism]) -> int:
    """Return the largest number of slots, at most 4,096, that divides every capacity."""
    common = math.gcd(*(mechanism.capacity for mechanism in tenants.values()))
    least = max(2, *(mechanism.top for mechanism in tenants.values()))
    for slots in range(min(common, _MOST_SLOTS), least - 1, -1):
        if common % slots == 0:
            return slots
    raise InputError(
        "The indexes' capacities have no common part from the answer's size to 4,096 slots.",
        "Choose capacities that are multiples of one power of two, e.g. 4,096.",
    )


def sha256_hex(data: bytes) -> str:
    """Return SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
