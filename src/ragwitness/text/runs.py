"""Runs of tokens that texts share word for word, found for two whole collections at once.

Every window of ``n`` tokens is hashed to 64 bits, for all texts in ``n`` array operations. The
windows of the smaller collection are sorted and those of the larger looked up, in place of a loop
over all pairs; what is found is compared token by token, so a hash collision claims nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.text.tokens import Tokenized

__all__ = ["RunIndex", "SharedRuns", "shared_runs"]

Flags = NDArray[np.bool_]
_BASE = np.uint64(0x9E3779B97F4A7C15)
_PART = 1 << 22  # windows looked up at a time: bounds the memory


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Where two collections share runs of at least ``n`` tokens.

    Attributes:
        n: Length of a window.
        outputs: Whether each output holds a window of any record, shape (outputs,).
        records: Whether each record holds a window of any output, shape (records,).
        recovered: Tokens of each record that stand in such windows, shape (records,).
    """

    n: int
    outputs: Flags
    records: Flags
    recovered: NDArray[np.int64]


def shared_runs(outputs: Tokenized, records: Tokenized, n: int) -> SharedRuns:
    """Find the runs of at least ``n`` tokens that outputs and records share.

    Args:
        outputs: What a target said.
        records: The private texts, tokenized with the same vocabulary.
        n: Least tokens of a run, at least 1.
    """
    if n < 1:
        raise ValueError(f"a run has at least one token, not {n}")
    ours, theirs = _windows(outputs, n), _windows(records, n)
    in_outputs = np.zeros(len(ours.places), np.bool_)
    in_records = np.zeros(len(theirs.places), np.bool_)
    keys, first, group = np.unique(ours.hashes, return_index=True, return_inverse=True)
    met = np.zeros(len(keys), np.bool_)
    for start in range(0, len(theirs.places) if len(keys) else 0, _PART):
        part = slice(start, start + _PART)
        place = np.searchsorted(keys, theirs.hashes[part])
        np.minimum(place, len(keys) - 1, out=place)
        found = np.flatnonzero(keys[place] == theirs.hashes[part])
        same = _equal(
            outputs.ids,
            ours.places[first[place[found]]],
            records.ids,
            theirs.places[part][found],
            n,
        )
        found = found[same]
        in_records[start + found] = True
        met[place[found]] = True
    if len(keys):
        in_outputs = met[group]
    return SharedRuns(
        n,
        _any_per_text(outputs, ours.places[in_outputs]),
        _any_per_text(records, theirs.places[in_records]),
        _covered(records, theirs.places[in_records], n),
    )


class RunIndex:
    """The windows of a collection, kept to be met by one text after the other.

    A window is known by its hash of 64 bits alone: it is for those who would rather see a run too
    many than miss one.

    Args:
        records: Tokenized texts.
        n: Tokens of a window, at least 1.
        common: Windows in so many records are left out, as nobody's own; 0 keeps all.
    """

    def __init__(self, records: Tokenized, n: int, common: int = 0) -> None:
        windows = _windows(records, n)
        hashes = windows.hashes
        if common:
            owners = np.searchsorted(records.starts, windows.places, side="right") - 1
            order = np.lexsort((owners, hashes))
            hashes, owners = hashes[order], owners[order]
            fresh = np.ones(len(hashes), np.bool_)
            fresh[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
            hashes, counts = np.unique(hashes[fresh], return_counts=True)
            hashes = hashes[counts < common]
        self.n = n
        hashes = np.sort(hashes)  # np.unique without further results is a third as fast
        fresh = np.ones(len(hashes), np.bool_)
        fresh[1:] = hashes[1:] != hashes[:-1]
        self._hashes = hashes[fresh]

    def first(self, text: Tokenized) -> int | None:
        """Return the token with which the first shared window of one text begins; None for none."""
        windows = _windows(text, self.n)
        if not len(self._hashes) or not len(windows.places):
            return None
        place = np.searchsorted(self._hashes, windows.hashes)
        np.minimum(place, len(self._hashes) - 1, out=place)
        met = windows.places[self._hashes[place] == windows.hashes]
        return int(met[0]) if len(met) else None


@dataclass(frozen=True, slots=True)
class _Windows:
    """Hashes of all windows that lie within one text, and where they begin."""

    hashes: NDArray[np.uint64]
    places: NDArray[np.int64]


def _windows(texts: Tokenized, n: int) -> _Windows:
    count = len(texts.ids) - n + 1
    if count <= 0:
        return _Windows(np.empty(0, np.uint64), np.empty(0, np.int64))
    spread = _mixed(texts.ids.astype(np.uint64))
    hashes = np.zeros(count, np.uint64)
    for offset in range(n):
        hashes *= _BASE
        hashes += spread[offset : offset + count]
    inside = np.ones(count, np.bool_)
    for start in texts.starts[1:-1]:  # a window must not reach into the next text
        inside[max(0, start - n + 1) : start] = False
    places = np.flatnonzero(inside)
    return _Windows(hashes[places], places)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread small numbers over 64 bits (the finaliser of SplitMix64)."""
    values = values + _BASE
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def _equal(
    first: NDArray[np.int32],
    at: NDArray[np.int64],
    second: NDArray[np.int32],
    other: NDArray[np.int64],
    n: int,
) -> Flags:
    """Compare windows token by token."""
    same = np.ones(len(at), np.bool_)
    for offset in range(n):
        same &= first[at + offset] == second[other + offset]
    return same


def _any_per_text(texts: Tokenized, places: NDArray[np.int64]) -> Flags:
    flags = np.zeros(len(texts), np.bool_)
    flags[np.searchsorted(texts.starts, places, side="right") - 1] = True
    return flags


def _covered(texts: Tokenized, places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Tokens of each text in any of the windows that begin at ``places``."""
    steps = np.zeros(len(texts.ids) + 1, np.int32)
    steps[places] += 1
    np.subtract.at(steps, places + n, 1)
    covered = np.cumsum(steps[:-1]) > 0
    sums = np.concatenate(([0], np.cumsum(covered)))
    return sums[texts.starts[1:]] - sums[texts.starts[:-1]]
