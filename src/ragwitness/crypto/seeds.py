"""One commitment to the secrets of all records of a window, opened one record at a time (G4).

The paper opens the window's seed at the close, and with it the noise of every answer. Here the
leaves of a Merkle tree are the records' sub-seeds (``privacy.streams.sub_seed`` derives them):
opening one shows nothing of the others. A leaf hash hides its sub-seed because that is 256 bits
which nobody can guess; so leaves need no blinding of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import U64_MAX, u64_text
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash
from ragwitness.crypto.log.tree import MerkleLog, verify_inclusion

_DOMAIN = b"ragwitness/sub-seed-leaf/v1\n"


@dataclass(frozen=True, slots=True)
class SeedOpening:
    """One record's sub-seed and its proof.

    Attributes:
        number: Number of the record, from 0.
        seed: 32 bytes.
        path: Hashes from the leaf's sibling up.
    """

    number: int
    seed: bytes
    path: tuple[bytes, ...]


class SeedTree:
    """The tree over all sub-seeds; keeps hashes, 64 bytes per record, and no secret.

    Args:
        seeds: 32 bytes each, in the order of their numbers.

    Raises:
        InputError: There is none, or one has another length.
    """

    def __init__(self, seeds: Iterable[bytes]) -> None:
        self._log = MerkleLog()
        self._log.extend_hashes(_leaf(number, seed) for number, seed in enumerate(seeds))
        if not self._log.size:
            raise InputError("A window needs at least one sub-seed.")

    @property
    def size(self) -> int:
        """Number of sub-seeds; stated beside the root, or a tree could be shown at two sizes."""
        return self._log.size

    @property
    def root(self) -> bytes:
        """32 bytes, published before the window opens."""
        return self._log.root()

    def open(self, number: int, seed: bytes) -> SeedOpening:
        """Return the opening of one sub-seed.

        Raises:
            InputError: The number is none, or this is not the sub-seed that was committed to.
        """
        path = self._log.inclusion(number)
        if self._log.node(0, number) != _leaf(number, seed):
            raise InputError(
                f"This is not the sub-seed {number:,} that the tree was made of.",
                "Derive it from the same window seed and window name.",
            )
        return SeedOpening(number, seed, path)


def verify_seed(root: bytes, size: int, opening: SeedOpening) -> None:
    """Check that an opened sub-seed is the one committed to under its number.

    Raises:
        VerificationError: ``seed.size``, or by
            :func:`~ragwitness.crypto.log.tree.verify_inclusion` ``log.*``.
    """
    if len(opening.seed) != HASH_BYTES:
        raise VerificationError(
            "seed.size", f"A sub-seed has {HASH_BYTES} bytes, not {len(opening.seed)}."
        )
    if not 0 <= opening.number < min(size, U64_MAX):
        raise VerificationError("log.index", f"There is no sub-seed {opening.number:,}.")
    # The leaf names its number, so no sub-seed can stand in for another.
    verify_inclusion(_entry(opening.number, opening.seed), opening.number, size, opening.path, root)


def _leaf(number: int, seed: bytes) -> bytes:
    if len(seed) != HASH_BYTES:
        raise InputError(f"A sub-seed has {HASH_BYTES} bytes, not {len(seed)}.")
    return leaf_hash(_entry(number, seed))


def _entry(number: int, seed: bytes) -> bytes:
    return _DOMAIN + u64_text(number).encode() + b"\n" + seed
