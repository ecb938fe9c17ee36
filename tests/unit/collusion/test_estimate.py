"""One p-value for a log, and names only under an error rate: benign logs, coalitions, bad input."""

import itertools
import math

import numpy as np
import pytest

from ragwitness.collusion.detectors import DETECTORS, Settings
from ragwitness.collusion.estimate import (
    Estimates,
    LogComparison,
    LogEstimate,
    Suspect,
    _nearest,
    _without_each,
    estimate,
)
from ragwitness.core.errors import InputError
from ragwitness.privacy.query_log import QueryLog, make_log
from research.coalitions import coalition_probes, traffic, unit_rows, with_intents

_DIM, _QUERIES, _QUICK = 24, 6, Settings(rounds=1)


def _honest(rng: np.random.Generator, n: int, faq: np.ndarray) -> np.ndarray:
    """Accounts whose embedder has a direction of its own, and who share questions."""
    rows = unit_rows(rng, n, _QUERIES, _DIM) + 0.7 * np.eye(_DIM)[0]
    return with_intents(rng, rows / np.linalg.norm(rows, axis=-1, keepdims=True), 0.2, faq)


def _log(rng: np.random.Generator, days: list[np.ndarray]) -> QueryLog:
    """Windows of 100 seconds, each with rows by account and query."""
    rows = [
        (f"u{at}", 100 * day + rng.uniform(0, 100), vectors[at, query])
        for day, vectors in enumerate(days)
        for at, query in itertools.product(range(len(vectors)), range(_QUERIES))
    ]
    return make_log(*(list(column) for column in zip(*rows, strict=True)))


def _world(seed: int, accounts: int = 12, days: int = 70, size: int = 0) -> Estimates:
    """The estimates for a window with ``size`` accounts that ask one thing."""
    rng = np.random.default_rng(seed)
    faq = unit_rows(rng, 4, _DIM)
    benign = _log(rng, [_honest(rng, accounts, faq) for _ in range(days)])
    rows = _honest(rng, accounts, faq)
    if size:
        rows[:size] = coalition_probes(rng, "identical", (size, _QUERIES, _DIM))
    return estimate(_log(rng, [rows]), _QUICK, names=("pairs", "means"), ordinary=benign)


@pytest.mark.long
def test_a_benign_log_is_accused_in_one_of_twenty() -> None:
    """The opponent: 200 windows of innocent accounts, like the windows of ordinary traffic."""
    found = [_world(seed).comparison for seed in range(200)]
    p = np.array([one.p for one in found])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) < level + 3 * math.sqrt(level * (1 - level) / 200)
    assert np.mean(p <= 0.5) > 0.2  # and it is no p-value that is always 1
    assert sum(len(one.suspects) for one in found) <= 0.01 * 200 * 12


def test_a_coalition_is_found_and_its_accounts_are_named() -> None:
    for seed in range(2):
        result = _world(100 + seed, size=4)
        assert result.comparison.suspicious
        assert result.comparison.p == min(one.adjusted_p for one in result.estimates)
        assert {f"u{at}" for at in range(4)} <= {one.account for one in result.comparison.suspects}
        assert result.size >= 4


def test_windows_with_bursts_of_their_own_are_compared_as_windows() -> None:
    """Half of each window's queries are about one thing; a coalition is more alike than that."""
    rng = np.random.default_rng(3)

    def window() -> np.ndarray:
        rows = unit_rows(rng, 12, _QUERIES, _DIM)
        rows[:6, : _QUERIES // 2] = unit_rows(rng, _DIM)
        return rows

    benign = _log(rng, [window() for _ in range(80)])
    quiet = estimate(_log(rng, [window()]), _QUICK, ordinary=benign)
    assert not quiet.comparison.suspicious
    assert quiet.size == 1
    loud = window()
    loud[8:11] = unit_rows(rng, _DIM)
    # As a whole its half burst hides in bursts; the three who ask nothing else do not.
    names = ("means", "pairs")
    found = estimate(_log(rng, [loud]), _QUICK, ordinary=benign, names=names).comparison
    assert found.suspicious
    assert {one.account for one in found.suspects} >= {"u8", "u9", "u10"}


def test_without_ordinary_traffic_nobody_is_named() -> None:
    rng = np.random.default_rng(7)
    rows = _honest(rng, 40, unit_rows(rng, 4, _DIM))
    log = traffic(rng, rows, coalition_probes(rng, "identical", (6, _QUERIES, _DIM)))
    found = estimate(log, Settings(rounds=19))
    assert (found.comparison, found.size) == (None, 1)
    assert [one.name for one in found.estimates] == [*DETECTORS]
    assert all(one.own_p is None or one.own_p <= 0.05 for one in found.estimates)
    assert all(one.size >= 6 for one in found.estimates if one.name == "pairs")


def test_the_direction_of_the_others_does_not_know_the_account() -> None:
    rng = np.random.default_rng(11)
    means = unit_rows(rng, 30, 8) + np.eye(8)[0]
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    found = _without_each(means)
    for at in (0, 7, 29):
        others = np.delete(means, at, axis=0)
        _, axes = np.linalg.eigh(others.T @ others)
        assert abs(found[at] @ axes[:, -1]) == pytest.approx(1, abs=1e-6)


def test_the_threshold_comes_from_ordinary_traffic() -> None:
    """An embedder whose vectors are all alike: uniform queries are no guide to its cosines."""
    rng = np.random.default_rng(10)
    bias = 2 * unit_rows(rng, _DIM)
    ordinary = _log(rng, [unit_rows(rng, 12, _QUERIES, _DIM) + bias for _ in range(30)])
    log = _log(rng, [unit_rows(rng, 12, _QUERIES, _DIM) + bias])
    assert estimate(log, names=["pairs"]).estimates[0].size == 12
    found = estimate(log, names=["pairs"], ordinary=ordinary)
    assert found.estimates[0].size <= 2
    assert 0.8 < found.threshold <= 0.95


def test_unusable_requests_are_named() -> None:
    rng = np.random.default_rng(0)
    log = _log(rng, [unit_rows(rng, 10, _QUERIES, _DIM)])
    days = [unit_rows(rng, 10, _QUERIES, _DIM) for _ in range(30)]
    benign = _log(rng, days)
    for wrong, words in (
        ({"names": ["guess"]}, "'guess'"),
        ({"names": []}, "no estimator"),
        ({"ordinary": _log(rng, days[:10])}, "20 are needed"),
        ({"ordinary": benign, "alpha": 2.0}, "alpha"),
        # The best p among so few windows is above alpha: a coalition would pass for none.
        ({"ordinary": benign, "alpha": 0.01}, "no log has a p below"),
        ({"ordinary": traffic(rng, unit_rows(rng, 20, 2, 9))}, "24 dimensions"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            estimate(log, **wrong)
    with pytest.raises(InputError, match="one account"):
        estimate(_log(rng, [unit_rows(rng, 1, _QUERIES, _DIM)]))


@pytest.mark.parametrize("window", [math.inf, 20.0])
def test_the_nearest_query_is_another_accounts_within_the_window(window: float) -> None:
    rng = np.random.default_rng(3)
    log = _log(rng, [_honest(rng, 5, unit_rows(rng, 2, _DIM))])

    def near(a: int, b: int) -> bool:
        return log.accounts[a] != log.accounts[b] and abs(log.times[a] - log.times[b]) <= window

    every = range(len(log.times))
    expected = [
        max([log.vectors[a] @ log.vectors[b] for b in every if near(a, b)], default=-1)
        for a in every
    ]
    assert _nearest(log, window) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("log_p", "named", "size"), [(0.01, 1, 6), (0.05, 1, 6), (0.01, 7, 7), (0.2, 7, 1)]
)
def test_the_size_is_the_largest_group_of_a_suspicious_estimator(
    log_p: float, named: int, size: int
) -> None:
    rows = [("a", 4, 0.05), ("b", 6, 0.01), ("c", 9, 0.06), ("d", 9, None)]
    comparison = LogComparison(
        log_p, 0.05, 0.01, tuple(Suspect(f"u{n}", 0.01) for n in range(named)), 100, 100, 0.01
    )
    estimates = tuple(LogEstimate(name, k, 0.0, "", None, p) for name, k, p in rows)
    assert Estimates(estimates, 12, 72, _DIM, 0.5, comparison).size == size
    assert Estimates(estimates[:1], 12, 72, _DIM, 0.5, comparison).size == (
        1 if log_p > 0.05 else max(4, named)
    )
    assert Estimates(estimates, 12, 72, _DIM, 0.5).size == 1
