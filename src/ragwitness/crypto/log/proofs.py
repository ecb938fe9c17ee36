"""Roots and proofs out of the hashes of complete subtrees, wherever kept (RFC 9162, §2.1).

Node (level, index) is the root over entries [index · 2^level, (index + 1) · 2^level). Any other
range that a proof needs starts at a multiple of its largest power of two, so a few such nodes make
it.
"""

from __future__ import annotations

from typing import Protocol

from ragwitness.crypto.hashing import EMPTY_ROOT, node_hash
from ragwitness.errors import InputError

__all__ = ["Nodes", "consistency_path", "inclusion_path", "tree_root"]


class Nodes(Protocol):
    """The hashes of a log's complete subtrees."""

    @property
    def size(self) -> int:
        """Number of entries."""
        ...

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level)."""
        ...


def tree_root(nodes: Nodes, size: int | None = None) -> bytes:
    """Return the root over the first ``size`` entries; all of them without.

    Raises:
        InputError: The log is smaller.
    """
    size = nodes.size if size is None else size
    _within(nodes, size)
    return _range_root(nodes, 0, size) if size else EMPTY_ROOT


def inclusion_path(nodes: Nodes, index: int, size: int | None = None) -> tuple[bytes, ...]:
    """Return the proof that entry ``index`` is in the tree of ``size`` (RFC 9162, §2.1.3.1).

    Returns:
        Hashes from the leaf's sibling up to the root's child.

    Raises:
        InputError: There is no such entry or no such tree.
    """
    size = nodes.size if size is None else size
    _within(nodes, size)
    if not 0 <= index < size:
        raise InputError(f"A log of {size:,} entries has no entry {index:,}.")
    path, low, high = [], 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_range_root(nodes, middle, high))
            high = middle
        else:
            path.append(_range_root(nodes, low, middle))
            low = middle
    return tuple(reversed(path))


def consistency_path(nodes: Nodes, first: int, second: int | None = None) -> tuple[bytes, ...]:
    """Return the proof that the tree of ``first`` is a prefix of that of ``second`` (§2.1.4.1).

    Empty where the sizes are equal or ``first`` is 0: then the roots alone decide.

    Raises:
        InputError: The log has not been that large, or ``first`` is above ``second``.
    """
    second = nodes.size if second is None else second
    _within(nodes, second)
    if not 0 <= first <= second:
        raise InputError(f"A log of {second:,} entries has no earlier size {first:,}.")
    if first in (0, second):
        return ()
    path, low, high = [], 0, second
    whole = True  # SUBPROOF's b: the old tree's root is this very subtree, which the verifier has
    while first != high:
        middle = low + _split(high - low)
        if first <= middle:
            path.append(_range_root(nodes, middle, high))
            high = middle
        else:
            path.append(_range_root(nodes, low, middle))
            low, whole = middle, False
    if not whole:
        path.append(_range_root(nodes, low, high))
    return tuple(reversed(path))


def _split(size: int) -> int:
    """Return the largest power of two below ``size`` (RFC 9162, §2.1.1)."""
    return 1 << ((size - 1).bit_length() - 1)


def _range_root(nodes: Nodes, low: int, high: int) -> bytes:
    """Return the root over [low, high), with low a multiple of the range's largest power of two."""
    parts: list[bytes] = []
    while low < high:
        level = (high - low).bit_length() - 1
        parts.append(nodes.node(level, low >> level))
        low += 1 << level
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def _within(nodes: Nodes, size: int) -> None:
    if not 0 <= size <= nodes.size:
        raise InputError(
            f"The log has {nodes.size:,} entries; a tree of {size:,} is no part of it."
        )
