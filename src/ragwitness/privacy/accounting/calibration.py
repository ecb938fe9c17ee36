"""Noise per query from a budget per account, as the paper calibrates it: (3.1) and (3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import positive, probability, whole

__all__ = [
    "PerQuery",
    "Split",
    "classic_sigma",
    "implied_epsilon",
    "leading_sigma",
    "per_query",
]

Split = Literal["strict", "exact"]
"""How the account's delta is shared out; see :func:`per_query`."""


@dataclass(frozen=True, slots=True)
class PerQuery:
    """The budget of one query.

    Attributes:
        epsilon: Of one query.
        delta: Of one query.
        slack: delta' that composition over one account's queries adds.
        total: delta that the account then really has.
    """

    epsilon: float
    delta: float
    slack: float
    total: float


def per_query(epsilon: float, delta: float, queries: int, split: Split = "strict") -> PerQuery:
    """Share an account's budget out over its queries (3.1).

    ``strict`` reads (3.1) as printed: delta_q = delta/q and delta' = delta, which adds up to
    2 delta (the paper's footnote 2). ``exact`` gives each half of delta and meets it, with an
    epsilon per query that is smaller by sqrt(ln(2/delta) / ln(1/delta)). Either meets epsilon
    to first order only: Lemma 3.2's second term comes on top.

    Args:
        epsilon: Of the account.
        delta: Of the account.
        queries: That it may ask in a window.
        split: How delta is shared out.

    Raises:
        InputError: A value is outside its range.
    """
    positive("epsilon", epsilon)
    share = probability("delta", delta) * (0.5 if _known(split) == "exact" else 1.0)
    count = whole("queries", queries)
    return PerQuery(
        epsilon / math.sqrt(2 * count * math.log(1 / share)), share / count, share, 2 * share
    )


def classic_sigma(
    epsilon: float,
    delta: float,
    queries: int,
    sensitivity: float = 1.0,
    split: Split = "strict",
) -> float:
    """Return the noise of (3.4): S sqrt(2 ln(1.25/delta_q)) / epsilon_q.

    Raises:
        InputError: A value is outside its range, or epsilon_q is not below 1, where the formula
            (Dwork & Roth 2014, Thm. A.1) does not hold.
    """
    part = per_query(epsilon, delta, queries, split)
    if part.epsilon >= 1:
        raise InputError(
            f"(3.4) holds below 1 per query; epsilon {epsilon:g} over {queries} queries gives"
            f" {part.epsilon:.3g}.",
            "Use the exact noise: ragwitness collusion plan.",
        )
    return (
        positive("sensitivity", sensitivity)
        * math.sqrt(2 * math.log(1.25 / part.delta))
        / part.epsilon
    )


def implied_epsilon(sigma: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return the epsilon per account for which (3.4) would have chosen ``sigma``.

    Raises:
        InputError: A value is outside its range, or (3.4) does not hold there.
    """
    unit = per_query(1.0, delta, queries)
    factor = math.sqrt(2 * math.log(1.25 / unit.delta)) / unit.epsilon
    epsilon = positive("sensitivity", sensitivity) * factor / positive("sigma", sigma)
    if epsilon * unit.epsilon >= 1:
        raise InputError(
            f"sigma {sigma:g} is too small for (3.4), which holds below 1 per query;"
            f" here {epsilon * unit.epsilon:.3g}.",
            "Only the exact account holds: ragwitness collusion bound --sigma.",
        )
    return epsilon


def leading_sigma(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return S / epsilon_q, the noise for which (3.7) is derived (App. A.3).

    It is about sqrt(2 ln(1.25 q / delta)) times smaller than :func:`classic_sigma`, and keeps
    the account's (epsilon, delta) only up to an epsilon of about 8.

    Raises:
        InputError: A value is outside its range.
    """
    return positive("sensitivity", sensitivity) / per_query(epsilon, delta, queries).epsilon


def _known(split: str) -> str:
    if split not in get_args(Split):
        raise InputError(f"No such split of delta: {split!r}.", "Use strict or exact.")
    return split
