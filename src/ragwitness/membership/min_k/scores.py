"""The two scores, from log-probabilities alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.types import TokenLogprob

__all__ = ["least", "log_probabilities", "standardised"]

_LOWEST = -20.0  # servers write -9999 for what they did not list
_CERTAIN = 1e-6


def log_probabilities(tokens: Sequence[TokenLogprob]) -> NDArray[np.float64]:
    """Return log p of each token, at least -20, shape (n,)."""
    return np.array([_bounded(token.logprob) for token in tokens])


def standardised(token: TokenLogprob) -> float:
    """Return (log p - mu) / sigma of one token.

    mu and sigma are the mean and standard deviation of log p over what could have come instead.
    Of the vocabulary only the listed alternatives are known; they are taken with the mass that
    is not listed as one more outcome, renormalised where rounding makes them exceed 1. So many
    improbable tokens count as one more probable one: sigma comes out too small, most of all
    where the list is short. A token that was certain is where it is expected: 0.
    """
    listed = {text: _bounded(value) for text, value in token.top if value == value}
    logprob = listed.setdefault(token.token, _bounded(token.logprob))
    p = np.exp(list(listed.values()))
    rest = 1.0 - float(p.sum())
    p = np.append(p, rest) if rest > 0.0 else p / p.sum()
    logs = np.log(np.maximum(p, math.exp(_LOWEST)))
    mu = float((p * logs).sum())
    sigma = math.sqrt(max(0.0, float((p * logs**2).sum()) - mu**2))
    return 0.0 if sigma < _CERTAIN else (logprob - mu) / sigma


def least(values: NDArray[np.float64], k: float) -> NDArray[np.int64]:
    """Return the positions of the lowest k per cent, at least one, lowest first."""
    count = max(1, int(len(values) * k / 100.0))
    return np.argsort(values, kind="stable")[:count]


def _bounded(logprob: float) -> float:
    return min(0.0, max(_LOWEST, logprob))
