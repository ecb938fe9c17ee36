"""Checks of the log's proofs: RFC 9162, §2.1.3.2 and §2.1.4.2, step by step.

Both end by asking that the size is used up (sn = 0): a proof that is right for a prefix of the
path, or for another size, fails there.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from ragwitness.crypto.canonical import U64_MAX
from ragwitness.crypto.hashing import EMPTY_ROOT, HASH_BYTES, leaf_hash, node_hash
from ragwitness.errors import VerificationError

__all__ = ["inclusion_root", "verify_consistency", "verify_inclusion"]


def verify_inclusion(
    entry: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Check that ``entry`` stands at ``index`` of the tree of ``size`` with this ``root``.

    Args:
        entry: The entry itself, not its hash: a hash that is taken on trust could be a node's.
        index: From 0.
        size: Number of entries under the root.
        path: Hashes from the leaf's sibling up to the root's child.
        root: 32 bytes.

    Raises:
        VerificationError: ``log.size``, ``log.index``, ``log.hash``, ``log.path_length`` or
            ``log.inclusion``.
    """
    _hashes(path, root)
    found = inclusion_root(leaf_hash(entry), index, size, path)
    if not hmac.compare_digest(found, root):
        raise VerificationError(
            "log.inclusion", f"The entry is not number {index:,} of the log with this root."
        )


def inclusion_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the only root under which this path proves ``leaf`` at ``index``.

    Raises:
        VerificationError: ``log.size``, ``log.index`` or ``log.path_length``.
    """
    _size(size)
    if not 0 <= index < size:
        raise VerificationError(
            "log.index", f"A log of {size:,} entries has no entry {index:,}."
        )  # step 1
    fn, sn, r = index, size - 1, leaf  # steps 2 and 3
    for p in path:  # step 4
        if sn == 0:
            raise _length()
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            if not fn & 1:
                fn, sn = _shifted(fn, sn)
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    if sn:  # step 5
        raise _length()
    return r


def verify_consistency(
    first: int, first_root: bytes, second: int, second_root: bytes, path: Sequence[bytes]
) -> None:
    """Check that the tree of ``first`` entries is a prefix of the tree of ``second``.

    RFC 9162 leaves out two cases that need no path: equal sizes, where the roots must be equal,
    and ``first`` = 0, where ``first_root`` must be the hash of nothing.

    Raises:
        VerificationError: ``log.size``, ``log.hash``, ``log.rolled_back``, ``log.empty_root``,
            ``log.split_view``, ``log.path_length`` or ``log.consistency``.
    """
    _size(first)
    _size(second)
    _hashes(path, first_root, second_root)
    _empty(first, first_root)
    _empty(second, second_root)
    if first > second:
        raise VerificationError(
            "log.rolled_back", f"The log had {first:,} entries and has {second:,} now."
        )
    if first in (0, second):
        if path:
            raise _length()
        if first == second and not hmac.compare_digest(first_root, second_root):
            raise VerificationError(
                "log.split_view", f"Two roots are shown for the same {first:,} entries."
            )
        return
    _prefix(first, first_root, second, second_root, path)


def _prefix(
    first: int, first_root: bytes, second: int, second_root: bytes, path: Sequence[bytes]
) -> None:
    """RFC 9162, §2.1.4.2, for 0 < first < second."""
    if not path:  # step 1
        raise _length()
    steps = list(path)
    if first & (first - 1) == 0:  # step 2: the old tree is a complete subtree of the new one
        steps.insert(0, first_root)
    fn, sn = first - 1, second - 1  # step 3
    while fn & 1:  # step 4
        fn, sn = fn >> 1, sn >> 1
    fr = sr = steps[0]  # step 5
    for c in steps[1:]:  # step 6
        if sn == 0:
            raise _length()
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            if not fn & 1:
                fn, sn = _shifted(fn, sn)
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    if sn:  # step 7
        raise _length()
    same = hmac.compare_digest(fr, first_root) & hmac.compare_digest(sr, second_root)
    if not same:
        raise VerificationError(
            "log.consistency",
            f"The log's first {first:,} of {second:,} entries are not those shown before.",
        )


def _shifted(fn: int, sn: int) -> tuple[int, int]:
    """Shift both right until the low bit of ``fn`` is set or ``fn`` is 0."""
    while fn and not fn & 1:
        fn, sn = fn >> 1, sn >> 1
    return fn, sn


def _size(size: int) -> None:
    if not 0 <= size <= U64_MAX:
        raise VerificationError("log.size", f"{size} is no size of a log.")


def _empty(size: int, root: bytes) -> None:
    if (size == 0) != hmac.compare_digest(root, EMPTY_ROOT):
        raise VerificationError(
            "log.empty_root", f"The root of the log's first {size:,} entries cannot be this one."
        )


def _hashes(path: Sequence[bytes], *roots: bytes) -> None:
    if any(len(part) != HASH_BYTES for part in (*path, *roots)):
        raise VerificationError("log.hash", f"A hash in a proof has not {HASH_BYTES} bytes.")


def _length() -> VerificationError:
    return VerificationError(
        "log.path_length", "The proof has too many or too few hashes for the log's size."
    )
