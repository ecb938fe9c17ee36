"""The commitments of a window, and the bytes that its proofs are bound to (eq. 5.1; R2).

One module, so that provider, account and verifier cannot differ in a domain or a byte.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from ragwitness.attest.policy import WindowPolicy
from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.hashing import (
    HASH_BYTES,
    Opening,
    b64,
    canonical,
    commit,
    commit_digests,
    draw_blinding,
    parse_hash,
    parse_u64,
    tagged_hash,
)
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.proofs.arithmetic import Shape, chunk_slots
from ragwitness.crypto.records import STRICT, U64, Digest, Hex, encode_form, parse_form
from ragwitness.privacy.table import gaussian_table

if TYPE_CHECKING:
    from ragwitness.attest.policy import WindowPolicy

# C_E: the embedder (R1).

_EMBEDDER = "ragwitness/embedder/v1"
_MOST_EMBEDDER = 1 << 16


@dataclass(frozen=True, slots=True)
class CommittedEmbedder:
    """The artifacts of an embedder by their digests, published with the blinding of the commitment.

    Attributes:
        artifacts: Name (weights, tokenizer, template, schema, …) to SHA-256 in hex. ``name`` is of
            the embedder's name alone, ``template`` of the generator's prompt.
        blinding: 32 bytes.
    """

    artifacts: dict[str, str]
    blinding: Hex
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

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
        return sha256_hex(canonical(self.artifacts))

    @property
    def by_name_alone(self) -> bool:
        """Whether only the name is committed to: its server may serve another model (R1)."""
        return not self.artifacts.keys() - {"name", "template"}

    def encode(self) -> bytes:
        """Return the canonical JSON, ``embedder.json`` of a window."""
        return encode_form(self)

    @classmethod
    def parse(cls, data: bytes) -> CommittedEmbedder:
        """Return the embedder of :meth:`encode`'s bytes.

        Raises:
            VerificationError: ``embedder.*``.
        """
        embedder = parse_form(cls, data, _MOST_EMBEDDER, "embedder")
        try:
            embedder.commitment  # noqa: B018  # refuses digests of another form
        except InputError as error:
            raise VerificationError("embedder.digest", error.message) from error
        return embedder


# C_V: a tenant's index, by its columns, its norms and its documents (R6).

_MOST_CARD = 4096
_SIGMAS = 40


@dataclass(frozen=True, slots=True)
class IndexCard:
    """The public statement of one index.

    Attributes:
        columns: SHA-256 of the column commitments, in hex.
        norms: SHA-256 of the proof that no row is longer than the scale, in hex.
        documents: Root over the documents in the slots (:func:`documents_root`), in hex.
        slots: Number of slots of the index.
        dimension: Dimension of its vectors.
    """

    columns: Digest
    norms: Digest
    documents: Digest
    slots: U64
    dimension: U64
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def encode(self) -> bytes:
        """Return the canonical JSON, ``index.json`` of a window."""
        return encode_form(self)

    @classmethod
    def parse(cls, data: bytes) -> IndexCard:
        """Return the card of :meth:`encode`'s bytes.

        Raises:
            VerificationError: ``index.*``.
        """
        return parse_form(cls, data, _MOST_CARD, "index")


def index_commitment(data: bytes) -> str:
    """Return the open record's commitment to an ``index.json``, in hex."""
    return tagged_hash("ragwitness/index/v1", data).hex()


def document_opening(slot: int, digest: str, blinding: bytes) -> Opening:
    """Return the opening of one slot's leaf, which commits to its text.

    Args:
        slot: Its number.
        digest: SHA-256 of the text in hex; empty for an empty slot.
        blinding: 32 bytes.
    """
    message = canonical({"sha256": digest, "slot": str(slot)})
    return Opening("ragwitness/document/v1", message, blinding)


def documents_root(digests: Sequence[str], blindings: Sequence[bytes]) -> str:
    """Return the Merkle root over all slots, in hex.

    Each slot has a leaf, full or empty, and each leaf is a blinded commitment. Opening one shows
    nothing of other texts, and not which slots are empty.

    Args:
        digests: SHA-256 of the text in each slot, in hex; empty for an empty slot.
        blindings: 32 bytes for each.
    """
    pairs = enumerate(zip(digests, blindings, strict=True))
    leaves = (commit(document_opening(slot, *pair)) for slot, pair in pairs)
    return MerkleLog(leaves).root().hex()


def proof_shape(policy: WindowPolicy) -> Shape:
    """Return the size of the proofs that fit all of a policy's indexes.

    An index of more than 2,048 slots is proved in chunks of 2,048. The exact sampler's noise has no
    bound; an answer with noise beyond 40 sigma (once in 2¹¹⁵³ draws) could not be proved.

    Raises:
        InputError: The indexes differ in dimension, top or scale, or a mechanism cannot be proved:
            one with a shift, or with clipping.
    """
    # 1. Every mechanism is linear in the rows: no shift, no clipping.
    for name, mechanism in policy.tenants.items():
        full = mechanism.scale**2
        if mechanism.shift or mechanism.bounds != (-full, full):
            fault = "drops bits of every score (a shift)" if mechanism.shift else "clips its scores"
            raise InputError(
                f"The mechanism of {name} {fault}, which the selection proof does not cover.",
                "Use shift 0, no bounds, and a scale of at most 256.",
            )
    # 2. One shape for all tenants: an account gets its noise's number before its tenant is known.
    sizes = {(m.dimension, m.top, m.scale) for m in policy.tenants.values()}
    if len(sizes) > 1:
        raise InputError(
            "The policy's tenants differ in dimension, top or scale.",
            "Open a window of its own for each kind.",
        )
    [(dimension, top, scale)] = sizes
    # 3. The largest noise that can be proved: the table's radius, or 40 sigma of the exact sampler.
    reach = max(
        gaussian_table(mechanism.variance).radius
        if mechanism.sampler == "table"
        else _SIGMAS * (math.isqrt(math.ceil(mechanism.variance)) + 1)
        for mechanism in policy.tenants.values()
    )
    # 4. The chunk, by the largest index; the last chunk is filled up.
    return Shape(chunk_slots(largest_index(policy)), top, dimension, scale, reach)


def sha256_hex(data: bytes) -> str:
    """Return SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


# A query record: query, vector and answer, each under its own blinding (R2).


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
    """Return the committed bytes of an integer vector: 16 bits an entry, low byte first.

    Raises:
        InputError: It is not one row of whole numbers, or an entry does not fit 16 bits.
    """
    row = np.asarray(vector)
    limits = np.iinfo(np.int16)
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise InputError("A query's vector is one row of whole numbers.")
    if row.size and not (limits.min <= row.min() and row.max() <= limits.max):
        raise InputError("An entry of a query's vector does not fit 16 bits.")
    return row.astype("<i2").tobytes()


def norm_context(window: str, tenant: str) -> bytes:
    """Return the context of the proof of a tenant's norms, 32 bytes."""
    return tagged_hash("ragwitness/norms/v1", window.encode(), tenant.encode())


def checkpoint_token(size: int, root: bytes) -> str:
    """Return the text by which a client names a checkpoint of the window's log in its request."""
    return f"{size} {b64(root)}"


def parse_token(text: str, check: str) -> tuple[int, bytes]:
    """Return size and root of a checkpoint that a record names.

    Raises:
        VerificationError: ``check``; :func:`checkpoint_token` does not write this text.
    """
    size, space, root = text.partition(" ")
    require(bool(space), check, f"{text[:40]!r} names no checkpoint: size, space, root.")
    return parse_u64(size, check), parse_hash(root, check)


def largest_index(policy: WindowPolicy) -> int:
    """Return the slots of a policy's largest index."""
    return max(mechanism.capacity for mechanism in policy.tenants.values())
