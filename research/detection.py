"""What an estimator of coalitions finds, at what rate of false alarm, and what evading it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.collusion.detectors import Settings, suspicion
from ragwitness.core.errors import InputError
from ragwitness.privacy.query_log import QueryLog
from ragwitness.stats.evaluation import auc, auc_interval, roc_curve
from ragwitness.stats.p_values import conformal_p_values
from ragwitness.stats.rates import Rate, proportion_interval

MakeLog = Callable[[np.random.Generator], QueryLog]
"""Draws one log."""


@dataclass(frozen=True, slots=True)
class DetectionPower:
    """One estimator against one coalition.

    Attributes:
        auc: Of its suspicion, coalitions against ordinary traffic.
        found: Share of coalitions with a p-value of at most ``level`` among ordinary logs.
        level: Of false alarms.
        roc: Corners (false alarms, coalitions found).
    """

    auc: Rate
    found: Rate
    level: float
    roc: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Tax:
    """How well a coalition must hide.

    Attributes:
        least: Smallest tau tried at which at least half of the coalitions are found; None where
            they are at none.
        accounts: How many times more accounts an undetected coalition needs for the same
            leakage: 1 / least. None where hiding costs nothing.
    """

    least: float | None
    accounts: float | None


def suspicions(
    name: str, make: MakeLog, settings: Settings, trials: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return an estimator's suspicion of ``trials`` logs, each with its own stream."""
    return np.array(
        [
            suspicion(name, make(np.random.default_rng((seed, trial))), settings)
            for trial in range(trials)
        ]
    )


def power_of(
    ordinary: np.ndarray[tuple[int], np.dtype[np.float64]],
    coalitions: np.ndarray[tuple[int], np.dtype[np.float64]],
    level: float = 0.05,
) -> DetectionPower:
    """Compare suspicions of ordinary logs and of logs with a coalition.

    Args:
        ordinary: Shape (n,).
        coalitions: Shape (m,).
        level: Of false alarms; 1 / level - 1 ordinary logs are the fewest that can decide.

    Raises:
        InputError: Too few ordinary logs for the level, or no coalition.
    """
    if len(ordinary) + 1 < 1 / level or not len(coalitions):
        raise InputError(f"{len(ordinary)} ordinary logs cannot decide at a level of {level:g}.")
    labels = np.arange(len(ordinary) + len(coalitions)) >= len(ordinary)
    scores = np.concatenate([ordinary, coalitions])
    hits = int((np.asarray(conformal_p_values(coalitions, ordinary)) <= level).sum())
    n = len(coalitions)
    return DetectionPower(
        Rate(auc(scores, labels), *auc_interval(scores, labels), labels.size),
        Rate(hits / n, *proportion_interval(hits, n), n),
        level,
        roc_curve(scores, labels),
    )


def evasion_tax(found: Sequence[tuple[float, DetectionPower]]) -> Tax:
    """Return what hiding costs, from the power at several tau.

    Args:
        found: tau with the power there.
    """
    caught = [tau for tau, power in found if power.found.value >= 0.5]
    if not caught:
        return Tax(None, None)
    return Tax(min(caught), 1 / min(caught))
