"""Integer embeddings in a fixed number of slots, and their exact scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.mechanism.config import MOST_SCALE, Mechanism

__all__ = ["SlotIndex", "check_rows", "quantise", "slot_index"]

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
        self._scale = mechanism.scale
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

    @property
    def scale(self) -> int:
        """Bound on the norm of the rows."""
        return self._scale

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


def slot_index(vectors: ArrayLike, mechanism: Mechanism) -> SlotIndex:
    """Return an index of float embeddings, quantised; document i is in slot i.

    Args:
        vectors: Embeddings, shape (n, dimension); only their directions count.
        mechanism: What will search it.

    Raises:
        InputError: See :func:`quantise` and :class:`SlotIndex`.
    """
    if not np.size(vectors):
        raise InputError("The index is empty.", "Store at least one document in it.")
    return SlotIndex(quantise(vectors, mechanism), mechanism)


def quantise(vectors: ArrayLike, mechanism: Mechanism) -> Rows:
    """Return integer vectors of the same directions, of norm at most ``scale`` for certain.

    Rounding moves a vector by at most √d/2, so that one of length ``scale`` - √d/2 stays within.
    What is committed and searched are the integers; floats end here.

    Args:
        vectors: Embeddings, shape (n, dimension), or (dimension,) for one.
        mechanism: Gives dimension and scale.

    Returns:
        Of the same shape.

    Raises:
        InputError: Another dimension, a NaN or an infinity, or a vector of length 0.
    """
    given = np.asarray(vectors, np.float64)
    floats = np.atleast_2d(given)
    _check_shape(floats, mechanism.dimension)
    bad = np.flatnonzero(~np.isfinite(floats).all(axis=1))
    if len(bad):
        raise InputError(
            f"Embedding {bad[0]} holds a NaN or an infinity ({len(bad)} of {len(floats)} do).",
            "Check the embedder's output for this text.",
        )
    sizes = np.abs(floats).max(axis=1, keepdims=True)
    if not sizes.all():
        raise InputError(
            f"Embedding {int(np.argmin(sizes))} has length 0 and no direction.",
            "Leave out texts that the embedder cannot place.",
        )
    floats = floats / sizes  # first, so that no square overflows or vanishes
    reach = mechanism.scale * (1 - 1e-9) - math.sqrt(mechanism.dimension) / 2
    if reach < 1:
        raise InputError(
            f"Norms up to {mechanism.scale} are too short for dimension {mechanism.dimension}.",
            f"Use a larger scale, at most {MOST_SCALE}.",
        )
    floats *= reach / np.linalg.norm(floats, axis=1, keepdims=True)
    return np.asarray(np.rint(floats), np.int16).reshape(given.shape)


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
    given = np.atleast_2d(np.asarray(rows))
    if given.dtype.kind not in "iu":
        raise InputError(
            f"Scores are exact over integer vectors; these are {given.dtype}.",
            "Make integers of floats with quantise(vectors, mechanism).",
        )
    _check_shape(given, mechanism.dimension)
    for start in range(0, len(given), _CHUNK):
        part = given[start : start + _CHUNK]
        # Sizes first: squares of larger numbers could wrap around.
        over = np.any((part > mechanism.scale) | (part < -mechanism.scale), axis=1)
        exact = np.where(over[:, None], 0, part).astype(np.int64)
        over = over | (np.einsum("nd,nd->n", exact, exact) > mechanism.scale**2)
        if over.any():
            raise InputError(
                f"Integer vector {start + int(np.argmax(over))} is longer than"
                f" {mechanism.scale}, on which the sensitivity rests.",
                "Make integers of floats with quantise(vectors, mechanism).",
            )
    return given.astype(np.int16)


def _check_shape(vectors: NDArray[np.generic], dimension: int) -> None:
    if vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise InputError(
            f"Vectors of shape {vectors.shape} do not have the mechanism's dimension {dimension}.",
            "Use the embedder that the mechanism was set up for.",
        )
