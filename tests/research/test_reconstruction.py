"""Other adversaries: each against its theory, and none beyond the bound."""

import math

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of
from research.adaptive import AdaptiveConfig, effective_accounts, hunt, ratios
from research.reconstruction import expected_cosine, nearest, queries_for, solve
from research.regimes import (
    REGIMES,
    Deployment,
    even_queries,
    likelihood_ratio,
    planted_index,
    pooled_mu,
    regime_hits,
)
from research.separation import (
    area_of,
    noise_for,
    spread,
)


def test_the_ratio_orders_trials_as_the_mean_does() -> None:
    """§4.6, adversary B: with equal gaps the two AUCs agree trial by trial."""
    rng = np.random.default_rng(0)
    noise = 3 * rng.standard_normal((2, 500, 12))
    answers = noise + np.array([1.0, 0.0])[:, None, None]
    ones, zeros = np.ones(12), np.zeros(12)
    ratio = [likelihood_ratio(world, ones, zeros, 3.0) for world in answers]
    assert area_of(*ratio).value == area_of(*answers.mean(axis=2)).value


def test_the_ratio_is_the_densities() -> None:
    from scipy.stats import norm

    rng = np.random.default_rng(1)
    with_it, without = rng.normal(size=5), rng.normal(size=5)
    answers = rng.normal(size=(7, 5))
    known = norm.logpdf(answers, with_it, 2) - norm.logpdf(answers, without, 2)
    assert likelihood_ratio(answers, with_it, without, 2.0) == pytest.approx(known.sum(axis=1))


def test_unequal_gaps_are_where_the_ratio_wins() -> None:
    rng = np.random.default_rng(2)
    gaps = rng.uniform(0, 1, 40)
    best, mean = pooled_mu(gaps, 2.0), pooled_mu(gaps, 2.0, np.ones(40))
    assert best == pytest.approx(np.linalg.norm(gaps) / 2)
    assert best > mean
    trials = 20_000
    noise = 2 * rng.standard_normal((2, trials, 40))
    areas = {}
    for name, weights in (("best", gaps), ("mean", np.ones(40))):
        areas[name] = area_of((noise[0] + gaps) @ weights, noise[1] @ weights)
    for name, mu in (("best", best), ("mean", mean)):
        assert abs(areas[name].value - auc_of(mu)) < 4 * spread(mu, trials)
    assert pooled_mu(np.zeros(3), 1.0) == 0


@pytest.mark.parametrize(
    ("pooling", "on_target", "known"),
    [
        ("everything", 12, 0.7335),
        ("everything", 8, 0.6612),
        ("on-target", 12, 0.7642),
        ("on-target", 8, 0.7217),
    ],
)
def test_split_adversaries_are_researchs(pooling: str, on_target: int, known: float) -> None:
    sigma = noise_for("classic", 10.0, 1e-6, 1000)
    size = effective_accounts(16, on_target, pooling)
    assert auc_of(math.sqrt(size * 1000) / sigma) == pytest.approx(known, abs=6e-5)
    gaps = np.repeat([1.0, 0.0], [on_target, 16 - on_target])
    weights = np.ones(16) if pooling == "everything" else gaps
    assert pooled_mu(gaps, 1.0, weights) == pytest.approx(math.sqrt(size), rel=1e-12)


_HUNT = AdaptiveConfig(candidates=8, accounts=16, queries=10, sigma=4.0, trials=20_000, seed=3)


def test_later_accounts_gain_from_earlier_answers_within_the_bound() -> None:
    even, halving = hunt(_HUNT, "even"), hunt(_HUNT, "halving")
    assert even.on_target == pytest.approx(1 / 8)
    assert halving.on_target > 1.5 / 8
    assert halving.area.low > even.area.high
    assert halving.area.high < halving.most == even.most
    assert even.most == pytest.approx(auc_of(math.sqrt(160) / 4))


@pytest.mark.parametrize("strategy", ["even", "halving"])
def test_the_bayes_ratio_has_mean_one_without_a_target(strategy: str) -> None:
    """True of every exact likelihood ratio, however the probes were chosen."""
    absent, _ = ratios(_HUNT, strategy, present=False)
    ratio = np.exp(absent)
    assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / len(ratio) ** 0.5)
    present, _ = ratios(_HUNT, strategy, present=True)
    inverse = np.exp(-present)
    assert inverse.mean() == pytest.approx(1, abs=4 * inverse.std() / len(inverse) ** 0.5)


def test_two_candidates_asked_evenly_are_the_mixture() -> None:
    config = AdaptiveConfig(2, 4, 4, 2.0, trials=40_000, seed=5)
    found = hunt(config, "even")
    rng = np.random.default_rng(6)
    mu = math.sqrt(8) / 2
    z = rng.standard_normal((2, 40_000, 2))
    z[0, :, 0] += mu
    known = area_of(*np.log(np.exp(mu * z - mu * mu / 2).mean(axis=2)))
    assert abs(found.area.value - known.value) < 4 * math.hypot(found.area.error, known.error)


def test_only_those_who_reach_the_index_learn_anything() -> None:
    rng = np.random.default_rng(7)
    _, mine, decoy = planted_index(rng, 60, 32)
    theirs = planted_index(rng, 60, 32)[1]
    indices = {"victim": mine, "other": theirs}
    closed, failed = Deployment(indices, "victim"), Deployment(indices, "victim", shared=True)
    inside = regime_hits(closed, "same-tenant", decoy, 2.0, 5)
    assert inside is not None
    assert inside.area(100) > 0.7
    outside = regime_hits(closed, "cross-tenant", decoy, 2.0, 5)
    assert outside is not None
    assert outside.area(100) == pytest.approx(0.5, abs=1e-12)
    assert regime_hits(closed, "external", decoy, 2.0, 5) is None
    for regime in REGIMES:  # under M4 all three are one
        assert regime_hits(failed, regime, decoy, 2.0, 5) == inside
    with pytest.raises(InputError, match="'nobody'"):
        Deployment(indices, "nobody")
    with pytest.raises(InputError, match="second tenant"):
        regime_hits(Deployment({"victim": mine}, "victim"), "cross-tenant", decoy, 2.0, 5)
    with pytest.raises(InputError, match="'inside'"):
        regime_hits(closed, "inside", decoy, 2.0, 5)


@pytest.mark.parametrize("bases", [1, 20])
def test_reconstruction_errs_as_theory_says(bases: int) -> None:
    dim, sigma, trials = 48, 0.1, 300
    rng = np.random.default_rng(bases)
    documents = rng.standard_normal((dim, trials))
    documents /= np.linalg.norm(documents, axis=0)
    queries = even_queries(rng, bases * dim, dim)
    answers = queries @ documents + sigma * rng.standard_normal((bases * dim, trials))
    found = solve(queries, answers, sigma)
    error = ((found - documents) ** 2).sum(axis=0)
    expected = 1 / (1 + bases / (sigma**2 * dim))  # 1 is knowing nothing
    assert error.mean() == pytest.approx(expected, abs=4 * error.std() / trials**0.5)
    cosine = (found * documents).sum(axis=0) / np.linalg.norm(found, axis=0)
    assert cosine.mean() == pytest.approx(expected_cosine(bases * dim, dim, sigma), abs=0.03)


def test_the_nearest_text_is_found_once_the_answers_suffice() -> None:
    dim, sigma = 32, 0.5
    rng = np.random.default_rng(9)
    texts = rng.standard_normal((200, dim))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    shares = []
    for count in (dim, 40 * dim):
        queries = even_queries(rng, count, dim)
        answers = queries @ texts[:50].T + sigma * rng.standard_normal((count, 50))
        found = nearest(solve(queries, answers, sigma), texts)
        shares.append(float((found == np.arange(50)).mean()))
    assert shares[0] < 0.5 < shares[1]
    count = queries_for(0.9, dim, sigma)
    assert expected_cosine(count, dim, sigma) == pytest.approx(0.9, abs=1e-3)
    assert count == pytest.approx((sigma * dim) ** 2 * 0.81 / 0.19, rel=1e-2)


def test_values_outside_their_range_are_named() -> None:
    for wrong, named in (
        (lambda: effective_accounts(4, 5), "5 of 4"),
        (lambda: effective_accounts(4, 2, "some"), "'some'"),
        (lambda: pooled_mu(np.ones(3), 1.0, np.ones(2)), "one weight"),
        (lambda: likelihood_ratio(np.ones((2, 3)), np.ones(2), np.ones(2), 1.0), "one score"),
        (lambda: AdaptiveConfig(1, 1, 1, 1.0), "candidates"),
        (lambda: AdaptiveConfig(8, 1, 1, 1.0), "too few"),
        (lambda: AdaptiveConfig(8, 99, 1, 1.0, trials=10**8), "50,000,000"),
        (lambda: hunt(AdaptiveConfig(8, 2, 50, 1.0, trials=10), "halving"), "3 groups"),
        (lambda: hunt(_HUNT, "luck"), "'luck'"),
        (lambda: solve(np.ones((2, 3)), np.ones(3), 1.0), "one answer"),
        (lambda: queries_for(1.0, 3, 1.0), "cosine"),
    ):
        with pytest.raises(InputError, match=named):
            wrong()
