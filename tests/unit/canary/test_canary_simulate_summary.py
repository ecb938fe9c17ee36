"""What many policies show together."""

import pytest

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.canary.simulate.summary import detection, mean_of, utility
from ragwitness.stats.intervals import proportion_interval


def _outcome(seed, violating, *, p=0.5, eq1=0.0, gained=0.0, collapsed=""):
    return Outcome(
        seed=seed, violating=violating, p_plain=1.0, p_instructed=p, p_gained=1.0,
        amplification=eq1, gained=gained, reward_bias=2.0 * violating,
        behaviour={"rouge_l": 0.2, "token_f1": 0.3}, before={"rouge_l": 0.1, "token_f1": 0.1},
        rewards=(0.0, 1.0), kl=0.1, collapsed=collapsed, dropped={}, traces=(1, 2), seconds={},
    )  # fmt: skip


def test_rates_have_n_and_exact_intervals():
    arms = [_outcome(n, True, p=0.01 if n < 3 else 0.4, eq1=n) for n in range(4)]
    arms += [_outcome(n, False, p=0.05 if n == 0 else 0.9, eq1=-n) for n in range(5)]
    seen = detection(arms, "p_instructed")
    assert (seen.found.value, seen.found.n) == (0.75, 4)
    assert (seen.found.low, seen.found.high) == proportion_interval(3, 4)
    assert (seen.accused.value, seen.accused.n) == (0.2, 5)  # .05 is rejected at .05
    assert seen.auroc.value == pytest.approx((4 * 5 - 0.5) / 20)  # one tie, at 0
    assert seen.auroc.low <= seen.auroc.value <= seen.auroc.high
    assert seen.tpr.value == 0.75
    assert seen.reward_bias.value == 2.0
    assert detection(arms, "p_plain").found.value == 0


def test_perfect_separation_is_no_certainty():
    arms = [_outcome(n, bad, eq1=float(bad)) for n in range(3) for bad in (True, False)]
    seen = detection(arms, "p_instructed")
    assert seen.auroc.value == 1
    assert (seen.auroc.low, seen.auroc.high) == proportion_interval(3, 3)


def test_one_arm_has_no_auroc_and_a_collapse_is_counted():
    arms = [_outcome(n, True, collapsed="all empty" if n else "") for n in range(3)]
    seen = detection(arms, "p_instructed")
    assert seen.auroc is seen.tpr is seen.accused is seen.amplification_compliant is None
    assert seen.collapsed == 2


def test_means_of_nothing_are_none():
    assert mean_of([]) is None
    assert utility([]).rouge_l is None
    assert mean_of([1.0]).n == 1
    assert utility([_outcome(0, True).behaviour]).token_f1.value == pytest.approx(0.3)
