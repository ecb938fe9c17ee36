"""What many policies show together."""

from dataclasses import replace

import numpy as np
import pytest

from ragwitness.stats.evaluation import tpr_at_fpr
from ragwitness.stats.intervals import auc_interval, bootstrap_interval, proportion_interval
from research.canary.report import detection, mean_of, utility
from research.canary.trial import Outcome


def _outcome(seed, violating, *, p=0.5, eq1=0.0, base=0.1, gained=0.0, collapsed=""):
    return Outcome(
        seed=seed, violating=violating, p_own=p, p_gained=1.0, p_named=0.02,
        amplification=eq1, base_amplification=base, kept=2 * eq1, base_kept=0.0, gained=gained,
        reward_bias=2.0 * violating, said={},
        behaviour={"rouge_l": 0.2, "token_f1": 0.3}, before={"rouge_l": 0.1, "token_f1": 0.1},
        rewards=(0.0, 1.0), kl=0.1, collapsed=collapsed, dropped={}, traces=(1, 2), seconds={},
    )  # fmt: skip


def test_rates_have_n_and_exact_intervals():
    arms = [_outcome(n, True, p=0.01 if n < 3 else 0.4, eq1=n) for n in range(4)]
    arms += [_outcome(n, False, p=0.05 if n == 0 else 0.9, eq1=-n) for n in range(5)]
    seen = detection(arms, "p_own")
    assert (seen.found.value, seen.found.n) == (0.75, 4)
    assert (seen.found.low, seen.found.high) == proportion_interval(3, 4)
    assert (seen.accused.value, seen.accused.n) == (0.2, 5)  # .05 is rejected at .05
    assert seen.by["eq1"].auroc.value == pytest.approx((4 * 5 - 0.5) / 20)  # one tie, at 0
    scores, labels = np.array([0.0, 1, 2, 3, 0, -1, -2, -3, -4]), np.arange(9) < 4
    assert (seen.by["eq1"].auroc.low, seen.by["eq1"].auroc.high) == auc_interval(scores, labels)
    assert (seen.named.value, seen.told.value) == (1, 1)  # p_named, of either arm
    assert (seen.named.n, seen.told.n) == (4, 5)
    assert seen.by["eq1"].tpr.value == 0.75
    assert seen.reward_bias.value == 2.0
    assert detection(arms, "p_gained").found.value == 0


def test_arms_are_compared_seed_by_seed():
    """Two seeds up, one down, one tie; a seed of one arm is no pair, whatever its number."""
    pairs = [(0, 5.0, 4.0), (1, 0.2, 0.1), (2, 1.0, 3.0), (3, 2.0, 2.0)]
    arms = [_outcome(n, True, eq1=bad) for n, bad, _ in pairs]
    arms += [_outcome(n, False, eq1=good) for n, _, good in reversed(pairs)]
    arms += [_outcome(8, True, eq1=-9.0), _outcome(9, False, eq1=9.0)]
    above = detection(arms).by["eq1"].above
    assert (above.value, above.n) == (pytest.approx(2 / 3), 3)
    assert (above.low, above.high) == proportion_interval(2, 3)
    assert detection(arms[:1] + arms[-1:]).by["eq1"].above is None
    swapped = [replace(one, violating=not one.violating) for one in arms]
    assert detection(swapped).by["eq1"].above.value == pytest.approx(1 / 3)


def test_perfect_separation_is_no_certainty():
    arms = [_outcome(n, bad, eq1=float(bad)) for n in range(3) for bad in (True, False)]
    seen = detection(arms, "p_own")
    assert seen.by["eq1"].auroc.value == 1
    assert (seen.by["eq1"].auroc.low, seen.by["eq1"].auroc.high) == proportion_interval(3, 3)


def test_each_score_tells_the_arms_apart_by_itself():
    """The base's own Eq. 1 is taken off at the same trigger; all four against pairs counted."""
    rng = np.random.default_rng(3)
    arms = [
        _outcome(n, bad, eq1=rng.normal(), base=rng.normal(), gained=rng.normal())
        for n in range(9)
        for bad in (True, False)
    ]
    kept = {
        "eq1": lambda one: one.amplification,
        "less": lambda one: one.amplification - one.base_amplification,
        "kept": lambda one: one.kept,
        "gain": lambda one: one.gained,
    }
    found = detection(arms).by
    assert set(found) == set(kept)
    for name, score in kept.items():
        pairs = [score(a) > score(b) for a in arms if a.violating for b in arms if not b.violating]
        assert found[name].auroc.value == pytest.approx(np.mean(pairs))
        assert found[name].resampled.value == found[name].auroc.value
        assert found[name].resampled.low < found[name].auroc.value < found[name].resampled.high
        assert found[name].roc[0] == (0.0, 0.0)
        assert found[name].roc[-1] == (1.0, 1.0)


def test_what_diverged_stands_in_shares_and_in_no_mean():
    """It has no numbers: 0 nats would be made up."""
    arms = [_outcome(n, True, p=0.01, eq1=2.0) for n in range(3)]
    arms += [_outcome(n, False, eq1=-1.0) for n in range(3)]
    lost = replace(_outcome(3, True, p=1.0, collapsed="diverged"), behaviour={}, reward_bias=0.0)
    seen = detection([*arms, lost], "p_own")
    assert (seen.found.value, seen.found.n) == (0.75, 4)
    assert (seen.amplification.value, seen.amplification.n) == (2.0, 3)
    assert (seen.reward_bias.value, seen.by["eq1"].auroc.n) == (2.0, 6)
    assert (seen.collapsed, seen.diverged) == (1, 1)


def test_the_bootstrap_draws_seeds_with_both_of_their_arms():
    """Both arms of a seed share documents and draw; against the bootstrap written out."""
    ladder = [0.0, 1.0, 2.0, 3.0]
    arms = [
        _outcome(seed, bad, eq1=at + 1.5 * bad)
        for seed, at in enumerate(ladder)
        for bad in (True, False)
    ]
    scores, labels = np.array([one.amplification for one in arms]), np.arange(8) % 2 == 0

    def by_hand(picked):
        places = np.concatenate([2 * picked, 2 * picked + 1])
        return tpr_at_fpr(scores[places], labels[places], 0.1)

    seen = detection(arms).by["eq1"].tpr
    assert (seen.low, seen.high) == bootstrap_interval(by_hand, np.ones(4, np.bool_))
    moved = [replace(one, seed=one.seed + 9 * one.violating) for one in arms]
    apart = detection(moved).by["eq1"].tpr
    assert apart.value == seen.value
    assert (apart.low, apart.high) != (seen.low, seen.high)
    uneven = detection([*arms, _outcome(9, True, eq1=4.0)])  # a seed of one arm
    assert uneven.by["eq1"].tpr.n == 9


def test_one_arm_has_no_auroc_and_a_collapse_is_counted():
    arms = [_outcome(n, True, collapsed="all empty" if n else "") for n in range(3)]
    seen = detection(arms, "p_own")
    assert seen.accused is seen.amplification_compliant is None
    assert not seen.by
    assert seen.collapsed == 2


def test_means_of_nothing_are_none():
    assert mean_of([]) is None
    assert utility([]).rouge_l is None
    assert mean_of([1.0]).n == 1
    assert utility([_outcome(0, True).behaviour]).token_f1.value == pytest.approx(0.3)
