"""Votes of the records for their nearest candidates, and the noise on them.

A record's vote must not depend on any other record, down to the last bit: it would change more
than one count. So records are embedded one by one, as a batch's padding moves a vector's last
digits, and compared in whole numbers, which no order of summation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.sampler import discrete_gaussian, system_bits

__all__ = ["Draw", "Embed", "grid", "nearest", "system_noise", "vectors_of", "with_noise"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, shape (n, dim)."""

Draw = Callable[[Fraction], int]
"""From the variance parameter to one discrete Gaussian."""

_STEPS = 1 << 15  # per unit; sums of 2^20 products of two are still exact doubles
_ROWS = 1024  # records compared at once


def system_noise(variance: Fraction) -> int:
    """Draw exact noise from the operating system's entropy, which nobody can draw again."""
    return discrete_gaussian(variance, system_bits())


def vectors_of(texts: Sequence[str], embed: Embed) -> NDArray[np.float32]:
    """Return each text's vector in whole numbers, made apart from all others, shape (n, dim)."""
    return np.concatenate([grid(embed([text])) for text in texts])


def grid(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors in whole numbers; what is no number becomes 0."""
    return np.rint(np.nan_to_num(vectors).clip(-1, 1) * np.float32(_STEPS))


def nearest(records: NDArray[np.float32], candidates: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the votes per candidate: one per record, for its highest cosine; ties to the first.

    A record whose vector is zero has none and abstains.

    Args:
        records: From :func:`vectors_of`, shape (n, dim).
        candidates: From :func:`grid`, shape (m, dim).

    Returns:
        Counts, shape (m,), with a sum of at most n (Lin et al. 2024, Algorithm 2).
    """
    counts = np.zeros(len(candidates), np.int64)
    columns = candidates.T.astype(np.float64)
    for start in range(0, len(records), _ROWS):
        rows = records[start : start + _ROWS].astype(np.float64)
        chosen = np.argmax(rows[rows.any(axis=1)] @ columns, axis=1)
        counts += np.bincount(chosen, minlength=len(candidates))
    return counts


def with_noise(counts: NDArray[np.int64], variance: Fraction, draw: Draw) -> list[int]:
    """Return every count with noise of its own, those without a vote included."""
    return [int(count) + draw(variance) for count in counts]
