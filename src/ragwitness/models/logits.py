"""What is read off a row of logits: log-probability, rank, alternatives, a sample.

Shared by the numpy reader and by transformers, so both mean the same by each word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_normaliser", "sample", "score_rows", "top_rows"]

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


_ROWS = 32
"""Rows treated at once: what is made along the way then stays in the processor's cache."""


def log_normaliser(logits: Float32) -> Float64:
    """Return ``log(sum(exp(row)))`` of each row, shape (n,), from logits (n, vocabulary)."""
    normalisers = np.empty(len(logits))
    for start in range(0, len(logits), _ROWS):
        part = logits[start : start + _ROWS]
        peak = part.max(-1, keepdims=True)
        shifted = part - peak
        np.exp(shifted, out=shifted)
        total = shifted.sum(-1).astype(np.float64)
        normalisers[start : start + _ROWS] = np.log(total) + peak[:, 0]
    return normalisers


def score_rows(logits: Float32, ids: Int64) -> tuple[Float64, Int64]:
    """Score the true token of each row.

    Args:
        logits: Shape (n, vocabulary).
        ids: True tokens, shape (n,).

    Returns:
        Natural log-probabilities (n,) and ranks (n,): tokens strictly more probable than the
        true one.
    """
    true = logits[np.arange(len(ids)), ids]
    ranks = np.count_nonzero(logits > true[:, None], axis=-1)
    # Rounding may put a sure token above probability 1.
    logprobs = np.minimum(true - log_normaliser(logits), 0.0)
    return logprobs, np.asarray(ranks, np.int64)


def top_rows(
    logits: Float32, count: int, normaliser: Float64 | None = None
) -> tuple[Int64, Float64]:
    """Return the ``count`` most probable tokens of each row, most probable first.

    Equal logits are listed in order of their ids; which of several equal ones take the last
    places is not defined.

    Args:
        logits: Shape (n, vocabulary).
        count: Tokens wanted per row.
        normaliser: The rows' :func:`log_normaliser`, where it is known already.

    Returns:
        Ids and natural log-probabilities, each (n, min(count, vocabulary)).
    """
    count = min(count, logits.shape[-1])
    chosen = np.argpartition(-logits, count - 1, axis=-1)[:, :count]
    chosen.sort(axis=-1)
    values = np.take_along_axis(logits, chosen, axis=-1)
    order = np.argsort(-values, axis=-1, kind="stable")
    ids = np.take_along_axis(chosen, order, axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    known = log_normaliser(logits) if normaliser is None else normaliser
    return ids, np.minimum(values - known[:, None], 0.0)


def sample(row: Float32, temperature: float, generator: np.random.Generator) -> int:
    """Draw a token from one row of logits (vocabulary,); the argmax where temperature is 0.

    One uniform number is used per token, so a generator's stream stays aligned with the text.
    """
    if temperature <= 0:
        return int(row.argmax())
    scaled = row.astype(np.float64) / temperature
    weights = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = np.searchsorted(weights, generator.random() * weights[-1], side="right")
    return int(min(drawn, len(row) - 1))
