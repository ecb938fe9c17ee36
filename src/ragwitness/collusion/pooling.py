"""How answers are pooled: by likelihood, by the mean, and with probes wasted elsewhere (§4.6).

A weighted sum of answers with gaps g and weights w separates the worlds by
mu = sum(w g) / (sigma sqrt(sum w^2)); the likelihood ratio is the sum with w = g, the best of
them. Where all gaps are equal the mean is that sum.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import positive, whole

__all__ = ["Pooling", "effective_accounts", "likelihood_ratio", "pooled_mu"]

Values = NDArray[np.float64]
Pooling: TypeAlias = Literal["everything", "on-target"]


def pooled_mu(gaps: Values, sigma: float, weights: Values | None = None) -> float:
    """Return how far apart the two worlds are in a weighted sum of answers.

    Args:
        gaps: Score with the document minus score without it, per answer, shape (answers,).
        sigma: Of the noise.
        weights: Of the sum, shape (answers,); None for the likelihood ratio's.

    Raises:
        InputError: ``sigma`` is outside its range, or gaps and weights differ in size.
    """
    weights = gaps if weights is None else weights
    if gaps.shape != weights.shape or gaps.ndim != 1:
        raise InputError("There must be one weight per gap.")
    length = float(np.linalg.norm(weights))
    return float(weights @ gaps) / (positive("sigma", sigma) * length) if length else 0.0


def likelihood_ratio(answers: Values, with_it: Values, without: Values, sigma: float) -> Values:
    """Return the log-likelihood ratio: the sum of (s1 - s0)(y - (s1 + s0)/2) / sigma^2.

    Args:
        answers: y, shape (trials, answers).
        with_it: s1, scores with the document, shape (answers,).
        without: s0, scores without it.
        sigma: Of the noise.

    Returns:
        Shape (trials,).

    Raises:
        InputError: ``sigma`` is outside its range, or the shapes differ.
    """
    if answers.shape[-1:] != with_it.shape or with_it.shape != without.shape:
        raise InputError("There must be one score per answer in either world.")
    gaps = with_it - without
    ratio: Values = (answers - (with_it + without) / 2) @ gaps / positive("sigma", sigma) ** 2
    return ratio


def effective_accounts(accounts: int, on_target: int, pooling: Pooling = "everything") -> float:
    """Return how many accounts with every probe on target tell as much.

    The others probe a direction that holds nothing (the paper's adversary C). With the share
    alpha on target, the mean of everything is worth alpha^2 k accounts; a coalition that knows
    its own probes pools those on target alone, as the likelihood ratio does, and is worth
    alpha k. The paper measures the first.

    Args:
        accounts: k.
        on_target: Of them.
        pooling: What goes into the mean.

    Raises:
        InputError: A value is outside its range.
    """
    k = whole("accounts", accounts)
    aimed = whole("accounts on target", on_target, 0)
    if aimed > k:
        raise InputError(f"{aimed} of {k} accounts cannot be on target.")
    if pooling == "everything":
        return aimed * aimed / k
    if pooling == "on-target":
        return float(aimed)
    raise InputError(f"There is no pooling {pooling!r}.", "Use everything or on-target.")
