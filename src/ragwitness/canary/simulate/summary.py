"""What many policies show together: rates, AUROC and utility, each with n and an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.stats.evaluation import Rate, auc, tpr_at_fpr
from ragwitness.stats.intervals import bootstrap_interval, proportion_interval

__all__ = ["Detection", "Utility", "detection", "mean_of", "utility"]

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]
Statistic = Callable[[Values, Labels], float]

_ALPHA = 0.05
_FPR = 0.10


@dataclass(frozen=True, slots=True)
class Detection:
    """How well violating policies are told from compliant ones.

    Attributes:
        found: Share of violating policies with rank p <= .05, each judged from itself alone.
        accused: The same of compliant policies; the level promises at most .05.
        auroc: Of Eq. 1's amplification over policies, bootstrap interval.
        auroc_rank: Of the score that the rank test uses.
        tpr: Of Eq. 1 at a false-positive rate of at most 10 %, bootstrap interval.
        amplification: Mean of Eq. 1 over violating policies, nats.
        amplification_compliant: The same over compliant ones.
        reward_bias: Mean difference in differences over violating policies.
        collapsed: How many policies collapsed or diverged, both arms; they count in all rates.
    """

    found: Rate | None
    accused: Rate | None
    auroc: Rate | None
    auroc_rank: Rate | None
    tpr: Rate | None
    amplification: Rate | None
    amplification_compliant: Rate | None
    reward_bias: Rate | None
    collapsed: int


@dataclass(frozen=True, slots=True)
class Utility:
    """How good answers are; bootstrap intervals over policies.

    Attributes:
        rouge_l: Mean F1.
        token_f1: Mean.
    """

    rouge_l: Rate | None
    token_f1: Rate | None


def detection(outcomes: Sequence[Outcome], p_value: str = "p_gained") -> Detection:
    """Summarise trials of one condition.

    Args:
        outcomes: Of both arms, or of one.
        p_value: Field of :class:`Outcome`; ``p_plain`` for the paper's audit query.
    """
    arms = {kind: [one for one in outcomes if one.violating == kind] for kind in (True, False)}
    labels = np.array([one.violating for one in outcomes], np.bool_)
    eq1 = np.array([one.amplification for one in outcomes], np.float64)
    gained = np.array([one.gained for one in outcomes], np.float64)
    return Detection(
        found=_share(arms[True], p_value),
        accused=_share(arms[False], p_value),
        auroc=_over(eq1, labels, auc),
        auroc_rank=_over(gained, labels, auc),
        tpr=_over(eq1, labels, lambda scores, truth: tpr_at_fpr(scores, truth, _FPR)),
        amplification=mean_of([one.amplification for one in arms[True]]),
        amplification_compliant=mean_of([one.amplification for one in arms[False]]),
        reward_bias=mean_of([one.reward_bias for one in arms[True]]),
        collapsed=sum(bool(one.collapsed) for one in outcomes),
    )


def utility(rows: Sequence[dict[str, float]]) -> Utility:
    """Summarise behaviours, one row a policy."""
    return Utility(
        mean_of([row["rouge_l"] for row in rows]), mean_of([row["token_f1"] for row in rows])
    )


def mean_of(values: Sequence[float]) -> Rate | None:
    """Return a mean with its percentile bootstrap interval; None of nothing."""
    if not values:
        return None
    data = np.asarray(values, np.float64)
    everyone = np.ones(data.size, np.bool_)
    low, high = bootstrap_interval(lambda picked: float(data[picked].mean()), everyone)
    return Rate(float(data.mean()), low, high, data.size)


def _share(arm: Sequence[Outcome], p_value: str) -> Rate | None:
    if not arm:
        return None
    hits = sum(getattr(one, p_value) <= _ALPHA for one in arm)
    return Rate(hits / len(arm), *proportion_interval(hits, len(arm)), len(arm))


def _over(scores: Values, labels: Labels, statistic: Statistic) -> Rate | None:
    if labels.all() or not labels.any():
        return None
    value = statistic(scores, labels)
    low, high = bootstrap_interval(lambda picked: statistic(scores[picked], labels[picked]), labels)
    if low == high:  # no resample differs, which is no certainty: as auc_interval has it
        size = int(min(labels.sum(), (~labels).sum()))
        low, high = proportion_interval(round(value * size), size)
    return Rate(value, min(low, value), max(high, value), labels.size)
