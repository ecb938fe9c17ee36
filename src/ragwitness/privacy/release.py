"""Noise, then select: the one step whose result may leave (eq. 2.1; claims A2 and A3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.mechanism import MOST_SCALE, Mechanism
from ragwitness.privacy.sampler import discrete_gaussian
from ragwitness.privacy.streams import slot_bits
from ragwitness.privacy.table import gaussian_table

# Integer embeddings in a fixed number of slots, and their exact scores.

_CHUNK = 4096

Rows = NDArray[np.int16]


class SlotIndex:
    """The vectors of one tenant, one per slot; every query is compared with all of them.

    Scores come from a 32-bit BLAS and are exact all the same. All entries are integers and
    all norms at most 4,096, so that any part of a sum of products is an integer of size at most
    the sum of |x_i y_i| <= 4096² = 2²⁴ (Cauchy-Schwarz): a 32-bit float holds each without
    rounding, in whatever order it adds, fused or not.

    Args:
        rows: Integer vectors, shape (n, dimension); a row of zeros is an empty slot.
        mechanism: Its dimension, capacity and scale are those of the index; slots beyond ``n``
            are empty.

    Raises:
        InputError: See :func:`check_rows`; or there are no rows, or more than slots.
    """

    def __init__(self, rows: ArrayLike, mechanism: Mechanism) -> None:
        checked = check_rows(rows, mechanism)
        if not len(checked):
            raise InputError("The index is empty.", "Store at least one document in it.")
        if len(checked) > mechanism.capacity:
            raise InputError(
                f"{len(checked)} documents do not fit into {mechanism.capacity} slots.",
                "Raise the mechanism's capacity; it is public, so leave room.",
            )
        self.scale = mechanism.scale  # bound on the norm of the rows
        self._rows = np.zeros((mechanism.capacity, mechanism.dimension), np.float32)
        self._rows[: len(checked)] = checked

    @property
    def rows(self) -> Rows:
        """The integer vectors, shape (capacity, dimension): what is committed to."""
        return self._rows.astype(np.int16)

    @property
    def shape(self) -> tuple[int, int]:
        """Slots, and dimension."""
        return self._rows.shape[0], self._rows.shape[1]

    def inner_products(self, queries: Rows) -> NDArray[np.int32]:
        """Return all inner products, exact.

        Args:
            queries: Vectors of norm at most 4,096, shape (m, dimension); see :func:`check_rows`.

        Returns:
            Shape (m, capacity).
        """
        columns = queries.astype(np.float32)
        if len(columns) == 1:  # a matrix times a vector reads the index once, without packing it
            return np.asarray(self._rows @ columns[0], np.int32)[None]
        return np.asarray(columns @ self._rows.T, np.int32)


def quantise(vectors: ArrayLike, mechanism: Mechanism) -> Rows:
    """Return integer vectors of the same directions, of norm at most ``scale`` for certain.

    Rounding moves a vector by at most √d/2, so that one of length ``scale`` - √d/2 stays within.
    The integers are committed and searched; floats end here.

    Args:
        vectors: Embeddings, shape (n, dimension), or (dimension,) for one.
        mechanism: Gives dimension and scale.

    Returns:
        Of the same shape.

    Raises:
        InputError: Another dimension, a NaN or an infinity, or a vector of length 0.
    """
    return np.asarray(np.rint(scaled(vectors, mechanism)), np.int16)


def scaled(vectors: ArrayLike, mechanism: Mechanism) -> NDArray[np.float64]:
    """Return what :func:`quantise` rounds: the same directions, of length ``scale`` - √d/2.

    Args:
        vectors: Embeddings, shape (n, dimension), or (dimension,) for one.
        mechanism: Gives dimension and scale.

    Returns:
        Of the same shape.

    Raises:
        InputError: As :func:`quantise`.
    """
    # 1. Finite vectors of the mechanism's dimension, each with a direction.
    array = np.asarray(vectors, np.float64)
    floats = np.atleast_2d(array)
    _check_shape(floats, mechanism.dimension)
    bad = np.flatnonzero(~np.isfinite(floats).all(axis=1))
    if len(bad):
        raise InputError(
            f"Embedding {bad[0]} holds a NaN or an infinity ({len(bad)} of {len(floats)} do).",
            "Check the embedder's output for this text.",
        )
    # 2. By their largest entry, so that no square overflows or vanishes.
    sizes = np.abs(floats).max(axis=1, keepdims=True)
    if not sizes.all():
        raise InputError(
            f"Embedding {int(np.argmin(sizes))} has length 0 and no direction.",
            "Leave out texts that the embedder cannot place.",
        )
    floats = floats / sizes
    # 3. Length S - √d/2, so that rounding cannot leave the ball of radius S.
    reach = mechanism.scale * (1 - 1e-9) - math.sqrt(mechanism.dimension) / 2
    if reach < 1:
        raise InputError(
            f"Norms up to {mechanism.scale} are too short for dimension {mechanism.dimension}.",
            f"Use a larger scale, at most {MOST_SCALE}.",
        )
    floats *= reach / np.linalg.norm(floats, axis=1, keepdims=True)
    return np.asarray(floats.reshape(array.shape), np.float64)


def check_rows(rows: ArrayLike, mechanism: Mechanism) -> Rows:
    """Return integer vectors after the check that the sensitivity rests on.

    Args:
        rows: Shape (n, dimension), or (dimension,) for one.
        mechanism: Gives dimension and scale.

    Returns:
        The same numbers, shape (n, dimension).

    Raises:
        InputError: Not integers, another dimension, or a norm above ``scale``.
    """
    array = np.atleast_2d(np.asarray(rows))
    if array.dtype.kind not in "iu":
        raise InputError(
            f"Scores are exact over integer vectors; these are {array.dtype}.",
            "Make integers of floats with quantise(vectors, mechanism).",
        )
    _check_shape(array, mechanism.dimension)
    for start in range(0, len(array), _CHUNK):
        chunk = array[start : start + _CHUNK]
        # Sizes first: squares of larger numbers could wrap around.
        over = np.any((chunk > mechanism.scale) | (chunk < -mechanism.scale), axis=1)
        exact = np.where(over[:, None], 0, chunk).astype(np.int64)
        over = over | (np.einsum("nd,nd->n", exact, exact) > mechanism.scale**2)
        if over.any():
            raise InputError(
                f"Integer vector {start + int(np.argmax(over))} is longer than"
                f" {mechanism.scale}, on which the sensitivity rests.",
                "Make integers of floats with quantise(vectors, mechanism).",
            )
    return array.astype(np.int16)


def _check_shape(vectors: NDArray[np.generic], dimension: int) -> None:
    if vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise InputError(
            f"Vectors of shape {vectors.shape} do not have the mechanism's dimension {dimension}.",
            "Use the embedder that the mechanism was set up for.",
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The visible part of an answer: a function of the noisy scores alone.

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
        index: The whole index.
        key: Key from :func:`~ragwitness.privacy.streams.record_key`, used for this answer alone.
        mechanism: Everything else that the answer depends on.

    Raises:
        InputError: The query is unusable, or the index is another's or approximate.
    """
    # 1. An exact index over all slots, a checked query, and 2. all scores, exact.
    _check_index(index, mechanism)
    [exact] = scores(check_rows(query, mechanism), index, mechanism)
    # 3. Noise on every slot, 4. and only then the selection (eq. 2.1).
    return select(exact + slot_noise(mechanism, key), mechanism.top)


def scores(queries: NDArray[np.int16], index: SlotIndex, mechanism: Mechanism) -> NDArray[np.int32]:
    """Return the scores before the noise, in grid steps, shape (m, capacity).

    Secret: the guarantee does not cover a reader of scores or of their order.

    Args:
        queries: Checked integer vectors, shape (m, dimension).
        index: The index.
        mechanism: Gives grid and bounds.
    """
    products = index.inner_products(queries)
    # The grid and the bounds of ``Mechanism``: the shift is arithmetic, rounding down below 0 too.
    products >>= mechanism.shift
    return np.clip(products, *mechanism.bounds, out=products)


def slot_noise(
    mechanism: Mechanism, key: bytes, start: int = 0, stop: int | None = None
) -> NDArray[np.int64]:
    """Return the noise of slots ``start`` to ``stop - 1``, as a verifier derives it again.

    Args:
        mechanism: Gives variance and sampler.
        key: Key of the record.
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
    # The top-th highest score; all slots that reach it, ties in order of the slots.
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
            "Build a flat index of integers: SlotIndex(quantise(vectors, mechanism), mechanism).",
        )
    if (index.shape, index.scale) != ((mechanism.capacity, mechanism.dimension), mechanism.scale):
        raise InputError(
            f"The index has {index.shape[0]} slots of dimension {index.shape[1]} and norms up to"
            f" {index.scale}; the mechanism {mechanism.capacity}, {mechanism.dimension} and"
            f" {mechanism.scale}.",
            "Build the index with the mechanism that searches it.",
        )
