"""What a window commits to, and what its proofs are bound to: every domain and every byte of it.

One place, so that provider, account and verifier cannot differ (eq. 5.1; R2 for the records).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.policy import WindowPolicy
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import canonical, parse, parse_u64
from ragwitness.crypto.commitments import (
    BLINDING_BYTES,
    Opening,
    commit,
    commit_digests,
    draw_blinding,
)
from ragwitness.crypto.hashing import HASH_BYTES, b64, parse_hash, parse_hex, tagged_hash
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.proofs.shape import Shape, chunk_slots
from ragwitness.crypto.transcript.records import QueryRecord, record_hash
from ragwitness.privacy.table import gaussian_table

# C_E: what turns texts into vectors (R1).

_EMBEDDER = "ragwitness/embedder/v1"
_MOST_EMBEDDER = 1 << 16


@dataclass(frozen=True, slots=True)
class CommittedEmbedder:
    """The artifacts of an embedder by their digests, published with what opens the commitment.

    Attributes:
        artifacts: Name (weights, tokenizer, template, schema, …) to SHA-256 in hex. ``name`` is of
            the embedder's name alone, ``template`` of the generator's prompt.
        blinding: 32 bytes.
    """

    artifacts: Mapping[str, str]
    blinding: bytes

    @classmethod
    def of(cls, artifacts: Mapping[str, str]) -> CommittedEmbedder:
        """Return artifacts with a fresh blinding."""
        return cls(dict(artifacts), draw_blinding())

    @property
    def commitment(self) -> str:
        """C_E, in hex.

        Raises:
            InputError: There is no artifact, or a digest is not SHA-256 in hex.
        """
        return commit_digests(_EMBEDDER, self.artifacts, self.blinding).hex()

    @property
    def digest(self) -> str:
        """SHA-256 of the artifacts without the blinding, in hex: the same for every window."""
        return sha256_hex(canonical(dict(self.artifacts)))

    @property
    def by_name_alone(self) -> bool:
        """Whether the name stands for the model: whoever serves it may serve another (R1)."""
        return not self.artifacts.keys() - {"name", "template"}

    def encode(self) -> bytes:
        """Return the canonical JSON, ``embedder.json`` of a window."""
        return canonical({"artifacts": dict(self.artifacts), "blinding": self.blinding.hex()})

    @classmethod
    def parse(cls, data: bytes) -> CommittedEmbedder:
        """Return the embedder of :meth:`encode`'s bytes.

        Raises:
            VerificationError: ``embedder.fields``, ``embedder.blinding``, ``embedder.digest``, or
                by :func:`~ragwitness.crypto.canonical.parse` ``embedder.*``.
        """
        value = parse(data, _MOST_EMBEDDER, "embedder")
        named = isinstance(value, dict) and set(value) == {"artifacts", "blinding"}
        if not named or not isinstance(value["artifacts"], dict):
            raise VerificationError(
                "embedder.fields", "An embedder is stated by its artifacts and a blinding."
            )
        texts = [value["blinding"], *value["artifacts"].values()]
        if not all(isinstance(text, str) for text in texts):
            raise VerificationError("embedder.fields", "A digest of the embedder is not a text.")
        blinding = parse_hex(value["blinding"], BLINDING_BYTES, "embedder.blinding")
        found = cls(value["artifacts"], blinding)
        try:
            found.commitment  # noqa: B018  # refuses what cannot be committed to
        except InputError as error:
            raise VerificationError("embedder.digest", error.message) from error
        return found


# C_V: a tenant's index, by its columns, its norms and its documents (R6).

_MOST_CARD = 4096
_SIGMAS = 40
_FIELDS = ("columns", "dimension", "documents", "norms", "slots")


@dataclass(frozen=True, slots=True)
class IndexCard:
    """What a window says of one index in public.

    Attributes:
        columns: SHA-256 of the column commitments, in hex.
        norms: SHA-256 of the proof that no row is longer than the scale, in hex.
        documents: Root over what lies in the slots (:func:`documents_root`), in hex.
        slots: Number of slots of the index.
        dimension: Dimension of its vectors.
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
        value = parse(data, _MOST_CARD, "index")
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
    # Every slot has a leaf, full or empty, and every leaf a blinding of its own.
    log = MerkleLog()
    pairs = enumerate(zip(digests, blindings, strict=True))
    log.extend(
        commit(document_opening(slot, digest, blinding)) for slot, (digest, blinding) in pairs
    )
    return log.root().hex()


def proof_shape(policy: WindowPolicy) -> Shape:
    """Return the size of the proofs that fit all of a policy's indexes.

    An index of more than 2,048 slots is proved in chunks of as many. The exact sampler's noise has
    no bound; beyond 40 sigma, where a slot's lies once in 2¹¹⁵³ draws, an answer could not be
    proved.

    Raises:
        InputError: The indexes differ in dimension, top or scale, or a mechanism cannot be proved:
            one with a shift, or with clipping.
    """
    # 1. Every mechanism is linear in the rows: no shift, no clipping.
    for name, mechanism in policy.tenants.items():
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
    # 2. One shape for all tenants: an account gets its noise's number before its tenant is known.
    alike = {(m.dimension, m.top, m.scale) for m in policy.tenants.values()}
    if len(alike) > 1:
        raise InputError(
            "The policy's tenants differ in dimension, top or scale.",
            "Open a window of its own for each kind.",
        )
    [(dimension, top, scale)] = alike
    # 3. The largest noise that can be proved: the table's radius, or 40 sigma of the exact sampler.
    reach = max(
        mechanism.coins.radius
        if mechanism.coins
        else gaussian_table(mechanism.variance).radius
        if mechanism.sampler == "table"
        else _SIGMAS * (math.isqrt(math.ceil(mechanism.variance)) + 1)
        for mechanism in policy.tenants.values()
    )
    # 4. The chunk, by the largest index; what is left of the last one is filled up.
    largest = max(mechanism.capacity for mechanism in policy.tenants.values())
    return Shape(chunk_slots(largest), top, dimension, scale, reach)


def sha256_hex(data: bytes) -> str:
    """Return SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


# A query record: query, vector and answer, each under a blinding of its own (R2).


def query_opening(digest: bytes, blinding: bytes) -> Opening:
    """Return the opening of a query.

    Args:
        digest: SHA-256 of the query as it was sent, 32 bytes.
        blinding: 32 bytes.

    Raises:
        InputError: The digest has another length.
    """
    if len(digest) != HASH_BYTES:
        raise InputError(f"A SHA-256 has {HASH_BYTES} bytes, not {len(digest)}.")
    return Opening("ragwitness/query-hash/v1", digest, blinding)


def vector_opening(vector: NDArray[np.integer], blinding: bytes) -> Opening:
    """Return the opening of the integer vector that was searched with.

    Args:
        vector: Shape (dimension,).
        blinding: 32 bytes.

    Raises:
        InputError: An entry does not fit 16 bits.
    """
    return Opening("ragwitness/query-vector/v1", vector_bytes(vector), blinding)


def answer_opening(ids: Sequence[int], blinding: bytes) -> Opening:
    """Return the opening of an answer.

    Args:
        ids: Slots, best first.
        blinding: 32 bytes.

    Raises:
        InputError: A slot does not fit 32 bits.
    """
    if any(not 0 <= slot < 1 << 32 for slot in ids):
        raise InputError("A slot's number has at most 32 bits.")
    message = b"".join(slot.to_bytes(4, "little") for slot in ids)
    return Opening("ragwitness/answer/v1", message, blinding)


def vector_bytes(vector: NDArray[np.integer]) -> bytes:
    """Return an integer vector as it is committed to: 16 bits an entry, low byte first.

    Raises:
        InputError: It is not one row of whole numbers, or an entry does not fit 16 bits.
    """
    given = np.asarray(vector)
    limits = np.iinfo(np.int16)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError("A query's vector is one row of whole numbers.")
    if given.size and not (limits.min <= given.min() and given.max() <= limits.max):
        raise InputError("An entry of a query's vector does not fit 16 bits.")
    return given.astype("<i2").tobytes()


def norm_context(window: str, tenant: str) -> bytes:
    """Return what the proof of a tenant's norms is bound to, 32 bytes."""
    return tagged_hash("ragwitness/norms/v1", window.encode(), tenant.encode())


def link_context(record: QueryRecord) -> bytes:
    """Return what a selection proof is bound to: the record's leaf hash, 32 bytes."""
    return record_hash(record)


def checkpoint_token(size: int, root: bytes) -> str:
    """Return the text by which a client names a checkpoint of the window's log in its request."""
    return f"{size} {b64(root)}"


def parse_token(text: str, check: str) -> tuple[int, bytes]:
    """Return size and root of a checkpoint that a record names.

    Raises:
        VerificationError: ``check``; the text is not what :func:`checkpoint_token` writes.
    """
    size, space, root = text.partition(" ")
    if not space:
        raise VerificationError(check, f"{text[:40]!r} names no checkpoint: size, space, root.")
    return parse_u64(size, check), parse_hash(root, check)
