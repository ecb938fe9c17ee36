"""Reconstruction of a document (goal G2): its vector from pooled noisy answers, then the nearest.

Answers about one slot are linear in its vector: y_t = <v_t, d> + noise. Ridge regression with
penalty sigma^2 dim is the best linear estimate of a vector uniform on the sphere. With the
queries spread evenly over all directions its relative squared error is 1 / (1 + m/(sigma dim)^2),
and its cosine with the truth about 1 / sqrt(1 + (sigma dim)^2 / m): telling whether a known
document is there takes answers by sigma^2, finding an unknown one by (sigma dim)^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import positive, probability, whole

Values = NDArray[np.float64]


def solve(queries: Values, answers: Values, sigma: float) -> Values:
    """Return the best linear estimate of the slot's vector.

    Args:
        queries: Shape (m, dim).
        answers: Noisy scores of the slot, shape (m,) or (m, trials).
        sigma: Of the noise.

    Returns:
        Shape (dim,) or (dim, trials); not of unit length: shrunk by the doubt that is left.

    Raises:
        InputError: ``sigma`` is outside its range, or the numbers of rows differ.
    """
    if len(queries) != len(answers) or queries.ndim != 2:
        raise InputError("There must be one answer per query.")
    dim = queries.shape[1]
    # Ridge regression with the prior of a random unit vector: variance 1/dim per entry.
    penalty = positive("sigma", sigma) ** 2 * dim
    solved: Values = np.linalg.solve(
        queries.T @ queries + penalty * np.eye(dim), queries.T @ answers
    )
    return solved


def expected_cosine(count: int, dim: int, sigma: float) -> float:
    """Return the cosine of the estimate with the truth, for even queries and a large ``dim``."""
    return 1 / math.sqrt(1 + (sigma * dim) ** 2 / count)


def nearest(estimates: Values, candidates: Values) -> NDArray[np.int64]:
    """Return the candidate nearest in direction to each estimate, shape (trials,).

    Args:
        estimates: Shape (dim, trials).
        candidates: Unit vectors of texts that the attacker holds, shape (candidates, dim).
    """
    found: NDArray[np.int64] = np.argmax(candidates @ estimates, axis=0)
    return found


def queries_for(cosine: float, dim: int, sigma: float) -> int:
    """Return the pooled queries after which an unknown vector is estimated with this cosine.

    Ridge regression of a slot's vector: its cosine with the truth
    is about 1 / sqrt(1 + (sigma dim)^2 / m) after m queries, evenly over all directions.

    Raises:
        InputError: A value is outside its range.
    """
    square = probability("cosine", cosine) ** 2
    return math.ceil((positive("sigma", sigma) * whole("dim", dim, 2)) ** 2 * square / (1 - square))
