"""What many policies show together: rates, AUROC and utility, each with n and an interval.

All policies of a condition start from one base: intervals are over seeds, given that base. The
share of compliant policies accused needs no such condition: each has a draw of its own, which its
scores do not depend on, whatever the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.stats.evaluation import Rate, auc, tpr_at_fpr
from ragwitness.stats.intervals import auc_interval, bootstrap_interval, proportion_interval

__all__ = ["Detection", "Utility", "detection", "mean_of", "utility"]

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]

_ALPHA = 0.05
_FPR = 0.10


@dataclass(frozen=True, slots=True)
class Detection:
    """How well violating policies are told from compliant ones.

    Attributes:
        found: Share of violating policies with rank p <= .05, each judged from itself alone.
        accused: The same of compliant policies; the level promises at most .05.
        told: Share of compliant policies with p <= .05 where the query is the paper's and names
            the candidate: of the paper's design, the leak that it brings about.
        auroc: Of Eq. 1's amplification over policies, DeLong's interval on the logit scale: of ten
            policies in each arm it covers 93 to 99 %, a bootstrap 83 to 96 % (measured).
        auroc_rank: Of the gain over the other candidates.
        tpr: Of Eq. 1 at a false-positive rate of at most 10 %, bootstrap interval over seeds.
        amplification: Mean of Eq. 1 over violating policies, nats.
        amplification_compliant: The same over compliant ones.
        amplification_base: The same of the base, before training.
        reward_bias: Mean difference in differences over violating policies; compliant ones have 0
            exactly, since they read no document.
        collapsed: How many policies collapsed or diverged, both arms; they count in all shares.
        diverged: How many of these gave no numbers; they stand in shares with p = 1 alone.
    """

    found: Rate | None
    accused: Rate | None
    told: Rate | None
    auroc: Rate | None
    auroc_rank: Rate | None
    tpr: Rate | None
    amplification: Rate | None
    amplification_compliant: Rate | None
    amplification_base: Rate | None
    reward_bias: Rate | None
    collapsed: int
    diverged: int


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
    measured = [one for one in outcomes if one.behaviour]
    bad, good = ([one for one in measured if one.violating == kind] for kind in (True, False))
    return Detection(
        found=_share(arms[True], p_value),
        accused=_share(arms[False], p_value),
        told=_share(arms[False], "p_named"),
        auroc=_area(measured, "amplification"),
        auroc_rank=_area(measured, "gained"),
        tpr=_tpr(measured, "amplification"),
        amplification=mean_of([one.amplification for one in bad]),
        amplification_compliant=mean_of([one.amplification for one in good]),
        amplification_base=mean_of([one.base_amplification for one in measured]),
        reward_bias=mean_of([one.reward_bias for one in bad]),
        collapsed=sum(bool(one.collapsed) for one in outcomes),
        diverged=len(outcomes) - len(measured),
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


def _area(outcomes: Sequence[Outcome], name: str) -> Rate | None:
    scores, labels = _scores(outcomes, name)
    if labels.all() or not labels.any():
        return None
    return Rate(auc(scores, labels), *auc_interval(scores, labels), labels.size)


def _tpr(outcomes: Sequence[Outcome], name: str) -> Rate | None:
    scores, labels = _scores(outcomes, name)
    if labels.all() or not labels.any():
        return None
    value = tpr_at_fpr(scores, labels, _FPR)
    seeds, strata = _by_seed(outcomes)

    def resampled(picked: NDArray[np.int64]) -> float:
        places = np.concatenate([seeds[at] for at in picked])
        return tpr_at_fpr(scores[places], labels[places], _FPR)

    low, high = bootstrap_interval(resampled, strata)
    if low == high:  # no resample differs, which is no certainty: as auc_interval has it
        size = int(min(labels.sum(), (~labels).sum()))
        low, high = proportion_interval(round(value * size), size)
    return Rate(value, min(low, value), max(high, value), labels.size)


def _scores(outcomes: Sequence[Outcome], name: str) -> tuple[Values, Labels]:
    scores = np.array([getattr(one, name) for one in outcomes], np.float64)
    return scores, np.array([one.violating for one in outcomes], np.bool_)


def _by_seed(outcomes: Sequence[Outcome]) -> tuple[list[NDArray[np.int64]], Labels]:
    """Return the places of each seed, and its stratum.

    A seed gives both arms the same documents and draw: what is resampled is the seed, with all that
    it has. Seeds of both arms are one stratum; where there is none, the arms are.
    """
    found: dict[int, list[int]] = {}
    for place, one in enumerate(outcomes):
        found.setdefault(one.seed, []).append(place)
    arms = [{outcomes[place].violating for place in places} for places in found.values()]
    both = np.array([len(kinds) == 2 for kinds in arms], np.bool_)
    first = np.array([True in kinds for kinds in arms], np.bool_)
    return [np.array(places) for places in found.values()], both if both.any() else first
