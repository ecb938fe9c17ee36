"""What follows from noisy votes; no record is looked at, so none of it costs any privacy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["best", "shares"]


def shares(noisy: Sequence[int], slots: int, least: float) -> NDArray[np.int64]:
    """Share out the next round's places by the votes above a floor.

    Lin et al. draw with replacement (Algorithm 1); largest remainders give every candidate
    the expected number of places, rounded, without the scatter of a draw.

    Args:
        noisy: Counts with noise, shape (m,).
        slots: Places.
        least: Floor, taken off every count; negative counts are none. Where nothing is left, all
            are alike.

    Returns:
        Places per candidate, shape (m,), with sum ``slots``.
    """
    weights = np.maximum(np.asarray(noisy, dtype=float) - least, 0.0)
    if not weights.any():
        weights = np.ones_like(weights)
    exact = weights * (slots / weights.sum())
    given: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = slots - int(given.sum())
    given[np.argsort(given - exact, kind="stable")[:missing]] += 1
    return given


def best(noisy: Sequence[int], most: int, least: float) -> list[int]:
    """Return the places of the highest counts above a floor, the highest first."""
    order = sorted(range(len(noisy)), key=lambda place: -noisy[place])
    return [place for place in order[:most] if noisy[place] > least]
