"""What a window commits to, and what its proofs are bound to: every domain and every byte of it.

One place, so that provider, account and verifier cannot differ (eq. 5.1; R2 for the records).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.policy import WindowPolicy
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import (
    BLINDING_BYTES,
    HASH_BYTES,
    Opening,
    b64,
    canonical,
    commit,
    commit_digests,
    draw_blinding,
    parse,
    parse_hash,
    parse_hex,
    parse_u64,
    tagged_hash,
)
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.proofs.argument import cut
from ragwitness.crypto.proofs.arithmetic import POINT_BYTES, Shape, chunk_slots
from ragwitness.crypto.records import QueryRecord, record_hash
from ragwitness.privacy.sampler import CoinNoise
from ragwitness.privacy.streams import NoiseRecord, hkdf_sha256, public_coins, sub_seed
from ragwitness.privacy.table import gaussian_table

if TYPE_CHECKING:
    from ragwitness.attest.policy import WindowPolicy
    from ragwitness.crypto.proofs.prove_selection import SecretCoins
    from ragwitness.crypto.proofs.selection import Coins

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
                by :func:`~ragwitness.crypto.hashing.parse` ``embedder.*``.
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
                :func:`~ragwitness.crypto.hashing.parse` ``index.*``.
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


# Noise that is proved without being opened, in a window: what is committed, drawn and proved.
#
# Before the window the provider commits, for every number that an answer can have, to secret
# integers of all slots, in place of its sub-seed's hash. Public coins follow from the request. The
# noise is read off the bits of their sum, and the proof of a record opens none of it
# (docs/design/noise.md).


_SLOT_SECONDS = 1e-5  # that committing takes (docs/design/link.md)
_NUMBERS = b"ragwitness/coin-numbers/v1\n"


def coins_of(policy: WindowPolicy) -> CoinNoise | None:
    """Return a policy's noise of coins, one for all its tenants; None where seeds are opened."""
    return next(iter(policy.tenants.values())).coins


def largest(policy: WindowPolicy) -> int:
    """Return the slots of a policy's largest index: numbers are committed before they have one."""
    return max(mechanism.capacity for mechanism in policy.tenants.values())


def secret_numbers(noise: CoinNoise, seed: bytes, slots: int) -> NDArray[np.uint32]:
    """Return an answer's secret integers, of its first slots, as limbs; the seed stays closed."""
    stream = shake_256(_NUMBERS + seed).digest(noise.stream_bytes(slots))
    return noise.secret(stream, slots)


def public_numbers(
    noise: CoinNoise, beacon: bytes, record: NoiseRecord, number: int, slots: int
) -> NDArray[np.uint32]:
    """Return an answer's public integers as limbs, by beacon, request and the answer's number."""
    size = noise.stream_bytes(slots)
    return noise.secret(public_coins(beacon, record, number, size), slots)


def drawn_noise(
    noise: CoinNoise, seed: bytes, beacon: bytes, record: NoiseRecord, number: int, slots: int
) -> NDArray[np.int64]:
    """Return the noise of all slots of an answer, as its provider draws it."""
    public = public_numbers(noise, beacon, record, number, slots)
    bits, _ = noise.tossed(secret_numbers(noise, seed, slots), public)
    return noise.noise(bits)


# What is committed before the window.


def commit_numbers(
    policy: WindowPolicy, seed: bytes, shape: Shape, progress: Callable[[str], None]
) -> bytes:
    """Return the commitments to the secret integers of every answer that a window may give."""
    found: list[bytes] = []
    minutes = policy.seed_count * largest(policy) * _SLOT_SECONDS / 60
    progress(f"noise of {policy.seed_count:,} answers, some {minutes:,.0f} minutes of one core")
    for number in range(policy.seed_count):
        secret = secret_coins(policy, sub_seed(seed, policy.window, number))
        found += secret.commit(shape)
    return b"".join(found)


def secret_coins(policy: WindowPolicy, seed: bytes) -> SecretCoins:
    """Return what opens an answer's commitment, from its sub-seed, over the largest index."""
    from ragwitness.crypto.proofs.prove_selection import SecretCoins

    noise = coins_of(policy)
    assert noise is not None  # noqa: S101  # only asked of windows whose noise is of coins
    numbers = whole_numbers(secret_numbers(noise, seed, largest(policy)))
    blinds = hkdf_sha256(seed, canonical({"domain": "ragwitness/coin-blinds/v1"}))
    return SecretCoins(numbers, blinds)


def whole_numbers(limbs: NDArray[np.uint32]) -> tuple[int, ...]:
    """Return integers out of limbs."""
    return tuple(int.from_bytes(row.tobytes(), "little") for row in limbs.astype("<u4"))


def coin_leaf(points: bytes) -> bytes:
    """Return what the tree over all answers holds in place of a sub-seed, 32 bytes."""
    return tagged_hash("ragwitness/coin-commitment/v1", points)


def split_points(data: bytes, count: int) -> Iterator[bytes]:
    """Return each answer's commitments out of those of all.

    Raises:
        InputError: They are not as many for each.
    """
    size, rest = divmod(len(data), count)
    if rest or not size or size % POINT_BYTES:
        raise InputError(
            "The file of the window's committed noise is damaged.", "Restore it from a backup."
        )
    return cut(data, size)


# What a challenged record proves.


def public_coins_of(
    noise: CoinNoise, points: bytes, limbs: NDArray[np.uint32], shape: Shape
) -> Coins:
    """Return what a record's proof says of its noise.

    The points are the number's; those of the record's index come first. The limbs are public.
    """
    from ragwitness.crypto.proofs.selection import Coins

    committed = tuple(cut(points, POINT_BYTES))[: shape.chunks(len(limbs))]
    return Coins(noise.coefficients, committed, whole_numbers(limbs))
