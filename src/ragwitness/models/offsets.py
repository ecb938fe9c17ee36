"""Character offsets of tokens, brought to one convention: a space belongs to the token after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["close_gaps"]

Int64 = NDArray[np.int64]


def close_gaps(offsets: Int64) -> Int64:
    """Give characters between two tokens (a trimmed space) to the later token; (n, 2) to (n, 2)."""
    if not len(offsets):
        return offsets
    ends = np.concatenate(([0], np.maximum.accumulate(offsets[:, 1])[:-1]))
    return np.stack((np.minimum(offsets[:, 0], ends), offsets[:, 1]), axis=1)
