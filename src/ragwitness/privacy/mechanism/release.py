"""Noise, then select: the one step whose result may leave (eq. 2.1; claims A2 and A3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.mechanism.config import Mechanism
from ragwitness.privacy.mechanism.slots import SlotIndex, check_rows
from ragwitness.privacy.sampler import discrete_gaussian, gaussian_table
from ragwitness.privacy.streams import slot_bits

__all__ = ["Selection", "release", "release_many", "scores", "select", "slot_noise"]

_TOGETHER = 16  # queries whose scores are held at a time


@dataclass(frozen=True, slots=True)
class Selection:
    """What an answer may show: a function of the noisy scores alone.

    Attributes:
        ids: Slots of the highest noisy scores, highest first; some may be empty.
        noisy: Their noisy scores, in grid steps.
    """

    ids: tuple[int, ...]
    noisy: tuple[int, ...]


def release(query: ArrayLike, index: SlotIndex, key: bytes, mechanism: Mechanism) -> Selection:
    """Answer one query: the same key, query and index give the same answer on every platform.

    The slots' numbers are covered by the guarantee; what is stored in them, and whether
    anything is, is not.

    Args:
        query: Integer vector, shape (dimension,), of :func:`~.slots.quantise`.
        index: What is searched, all of it.
        key: Of :func:`~ragwitness.privacy.streams.record_key`, used for this answer alone.
        mechanism: Everything else that the answer depends on.

    Raises:
        InputError: The query is unusable, or the index is another's or approximate.
    """
    [selection] = release_many(np.atleast_2d(query), index, [key], mechanism)
    return selection


def release_many(
    queries: ArrayLike,
    index: SlotIndex,
    keys: Sequence[bytes],
    mechanism: Mechanism,
) -> list[Selection]:
    """Answer several queries, each with its own key, as :func:`release` answers one.

    Args:
        queries: Integer vectors, shape (m, dimension).
        index: What is searched.
        keys: One per query, no two equal.
        mechanism: Everything else that the answers depend on.

    Raises:
        InputError: As for :func:`release`; or the keys are not one per query, or one comes twice.
    """
    _check_index(index, mechanism)
    rows = check_rows(queries, mechanism)
    if len(keys) != len(rows) or len(set(keys)) != len(keys):
        raise InputError(
            f"{len(rows)} queries need as many different keys; there are {len(set(keys))}.",
            "Derive one per record with record_key(seed, record).",
        )
    found = []
    for start in range(0, len(rows), _TOGETHER):
        exact = scores(rows[start : start + _TOGETHER], index, mechanism)
        for row, key in zip(exact, keys[start : start + _TOGETHER], strict=True):
            found.append(select(row + slot_noise(mechanism, key), mechanism.top))
    return found


def scores(queries: NDArray[np.int16], index: SlotIndex, mechanism: Mechanism) -> NDArray[np.int32]:
    """Return the scores before the noise, in grid steps, shape (m, capacity).

    Secret: whoever sees one of them, or an order of them, is outside the guarantee.

    Args:
        queries: Checked integer vectors, shape (m, dimension).
        index: What is searched.
        mechanism: Gives grid and bounds.
    """
    found = index.inner_products(queries)
    found >>= mechanism.shift  # arithmetic: rounds down, below 0 too
    return np.clip(found, *mechanism.bounds, out=found)


def slot_noise(
    mechanism: Mechanism, key: bytes, start: int = 0, stop: int | None = None
) -> NDArray[np.int64]:
    """Return the noise of slots ``start`` to ``stop - 1``, as a verifier derives it again.

    Args:
        mechanism: Gives variance and sampler.
        key: Of the record.
        start: First slot.
        stop: One past the last; all slots by default.
    """
    stop = mechanism.capacity if stop is None else stop
    if mechanism.sampler == "table":
        return gaussian_table(mechanism.variance).draw(key, start, stop)
    draws = (discrete_gaussian(mechanism.variance, slot_bits(key, i)) for i in range(start, stop))
    return np.fromiter(draws, np.int64, stop - start)


def select(noisy: NDArray[np.int64], top: int) -> Selection:
    """Return the ``top`` highest, ties in order of the slots.

    Args:
        noisy: Scores with their noise, shape (capacity,).
        top: How many, at most as many as there are.
    """
    least = np.partition(noisy, len(noisy) - top)[len(noisy) - top]
    near = np.flatnonzero(noisy >= least)
    ids = near[np.argsort(-noisy[near], kind="stable")][:top]
    return Selection(tuple(ids.tolist()), tuple(noisy[ids].tolist()))


def _check_index(index: object, mechanism: Mechanism) -> None:
    if not isinstance(index, SlotIndex):
        name = getattr(index, "name", type(index).__name__)
        raise InputError(
            f"{name} chooses what it compares, or rounds, before any noise is added, and that"
            " choice would leak: under differential privacy every slot gets its exact score first.",
            "Build a flat integer index of its vectors: slot_index(vectors, mechanism).",
        )
    if (index.shape, index.scale) != ((mechanism.capacity, mechanism.dimension), mechanism.scale):
        raise InputError(
            f"The index has {index.shape[0]} slots of dimension {index.shape[1]} and norms up to"
            f" {index.scale}; the mechanism {mechanism.capacity}, {mechanism.dimension} and"
            f" {mechanism.scale}.",
            "Build the index with the mechanism that searches it.",
        )
