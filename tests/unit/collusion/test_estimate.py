"""One p-value for a log, and names only under an error rate: benign logs, coalitions, bad input."""

import itertools
import math
import weakref

import numpy as np
import pytest

from ragwitness.collusion import estimate as estimate_module
from ragwitness.collusion.detectors import DETECTORS, Settings
from ragwitness.collusion.estimate import _without_each, estimate
from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import QueryLog, make_log
from research.coalitions import coalition_probes, traffic, unit_rows, with_intents

_DIM, _QUERIES = 24, 6


def _honest(rng: np.random.Generator, n: int, faq: np.ndarray) -> np.ndarray:
    """Accounts whose embedder has a direction of its own, and who share questions."""
    rows = unit_rows(rng, n, _QUERIES, _DIM) + 0.7 * np.eye(_DIM)[0]
    return with_intents(rng, rows / np.linalg.norm(rows, axis=-1, keepdims=True), 0.2, faq)


def _world(seed: int, accounts: int = 20, ordinary: int = 100, *coalition):
    rng = np.random.default_rng(seed)
    faq = unit_rows(rng, 4, _DIM)
    benign = traffic(rng, _honest(rng, ordinary, faq))
    rows = _honest(rng, accounts, faq)
    if not coalition:
        return traffic(rng, rows), benign
    pattern, size, tau = coalition
    probes = coalition_probes(rng, pattern, (size, _QUERIES, _DIM), tau)
    return traffic(rng, rows, probes), benign


@pytest.mark.long
def test_a_benign_log_is_accused_in_one_of_twenty() -> None:
    """The opponent: 400 logs of innocent accounts, from the population of the ordinary traffic."""
    found = []
    for seed in range(400):
        log, benign = _world(seed, 12, 60)
        names = ("pairs", "means", "spectral")
        told = estimate(log, Settings(rounds=1), names=names, ordinary=benign, draws=39)
        found.append(told.comparison)
    p = np.array([one.p for one in found])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) < level + 3 * math.sqrt(level * (1 - level) / 400)
    assert np.mean(p <= 0.5) > 0.3  # and it is no p-value that is always 1
    assert sum(len(one.suspects) for one in found) <= 0.01 * 400 * 12


@pytest.mark.slow
def test_innocents_in_a_log_with_a_coalition_keep_their_own_error() -> None:
    """Names at .05 each: members nearly all, others no oftener than that."""
    members = innocent = 0
    for seed in range(12):
        log, benign = _world(100 + seed, 24, 150, "identical", 6, 1.0)
        told = estimate(
            log, Settings(rounds=1), names=("means", "pairs"), ordinary=benign, draws=59,
            account_alpha=0.05,
        )  # fmt: skip
        assert told.comparison.p <= 0.05
        assert not told.comparison.suspicious  # accounts alone accuse nobody
        named = {one.account for one in told.comparison.suspects}
        coalition = {f"account-{at}" for at in range(6)}
        members += len(named & coalition)
        innocent += len(named - coalition)
    assert members >= 0.9 * 12 * 6
    assert innocent <= 0.05 * 12 * 18 + 3 * math.sqrt(0.05 * 12 * 18)


@pytest.mark.slow
def test_a_question_of_the_day_is_no_coalition() -> None:
    """Everybody asks once about what happened today, which the ordinary traffic does not know."""
    for seed in range(4):
        rng = np.random.default_rng((seed, 5))
        benign = traffic(rng, unit_rows(rng, 140, _QUERIES, _DIM))
        log = traffic(rng, unit_rows(rng, 20, _QUERIES, _DIM))
        vectors = log.vectors.copy()
        first = np.unique(log.accounts, return_index=True)[1]
        vectors[first[:10]] = unit_rows(rng, _DIM).astype(np.float32)
        today = QueryLog(log.accounts, log.times, vectors, log.names)
        told = estimate(today, Settings(rounds=1), ordinary=benign, draws=59)
        assert told.comparison.trimmed
        assert not told.comparison.unusual


def test_the_table_and_the_verdict_are_of_one_statistic() -> None:
    for seed in range(6):
        log, benign = _world(200 + seed, 12, 60, "identical", 2 + seed, 1.0)
        told = estimate(
            log, Settings(rounds=1), names=("pairs", "means"), ordinary=benign, draws=19
        )
        assert told.comparison.p == min(one.adjusted_p for one in told.estimates)


def test_a_log_of_other_users_is_not_comparable_and_accuses_nobody() -> None:
    """All ask within a narrow circle that the ordinary traffic does not know."""
    outcomes = []
    for seed in range(6):
        rng = np.random.default_rng((seed, 9))
        benign = traffic(rng, unit_rows(rng, 80, _QUERIES, _DIM))
        circle = unit_rows(rng, _DIM)
        rows = unit_rows(rng, 16, _QUERIES, _DIM) + 0.8 * circle
        narrow = traffic(rng, rows / np.linalg.norm(rows, axis=-1, keepdims=True))
        told = estimate(
            narrow, Settings(rounds=1), names=("means", "pairs"), ordinary=benign, draws=59
        )
        outcomes.append(told.comparison)
        same = traffic(rng, unit_rows(rng, 16, _QUERIES, _DIM))
        again = estimate(same, Settings(rounds=1), names=("means",), ordinary=benign, draws=59)
        assert not again.comparison.suspicious
    assert all(not one.comparable for one in outcomes)
    assert all(not one.unusual and not one.suspicious for one in outcomes)


def test_windows_with_bursts_of_their_own_are_compared_as_windows() -> None:
    """Half of each window's queries are about one thing; a coalition is more alike than that."""
    rng = np.random.default_rng(3)

    def window(day: int, n: int = 12):
        rows = unit_rows(rng, n, _QUERIES, _DIM)
        rows[: n // 2, : _QUERIES // 2] = unit_rows(rng, _DIM)
        return [
            (f"u{at}", day * 100 + rng.uniform(0, 100), rows[at, ask])
            for at, ask in itertools.product(range(n), range(_QUERIES))
        ]

    def log_of(rows):
        return make_log(*(list(column) for column in zip(*rows, strict=True)))

    benign = log_of([row for day in range(40) for row in window(day)])
    quiet = estimate(log_of(window(0)), Settings(rounds=1), ordinary=benign)
    assert quiet.comparison.unit == "windows"
    assert not quiet.comparison.suspicious
    assert quiet.size == 1
    loud = window(0)
    probe = unit_rows(rng, _DIM)
    loud = [(who, when, probe if who in ("u8", "u9", "u10") else row) for who, when, row in loud]
    # As a whole its half burst hides in bursts; the three who ask nothing else do not.
    told = estimate(log_of(loud), Settings(rounds=1), ordinary=benign, names=("means", "pairs"))
    assert told.comparison.suspicious
    assert told.comparison.likeness_p is None
    assert {one.account for one in told.comparison.suspects} >= {"u8", "u9", "u10"}


def test_without_ordinary_traffic_nobody_is_named() -> None:
    log, _ = _world(7, 40, 60, "identical", 6, 1.0)
    told = estimate(log, Settings(rounds=19))
    assert (told.comparison, told.size) == (None, 1)
    assert [one.name for one in told.estimates] == [*DETECTORS]
    assert all(one.own_p is None or one.own_p <= 0.05 for one in told.estimates)
    assert all(one.size >= 6 for one in told.estimates if one.name == "pairs")


@pytest.mark.slow
def test_shared_questions_fool_r5_alone() -> None:
    log, benign = _world(8, 30, 150)
    told = estimate(log, Settings(rounds=1), ordinary=benign, draws=59)
    assert told.estimates[0].size > 20  # the paper's R5 would call them one coalition
    assert not told.comparison.unusual
    assert told.size == 1


@pytest.mark.slow
def test_too_few_ordinary_accounts_name_nobody() -> None:
    log, benign = _world(9, 20, 60, "identical", 8, 1.0)
    told = estimate(log, Settings(rounds=1), ordinary=benign, draws=99).comparison
    assert told.least > told.account_alpha
    assert told.suspects == ()


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
    bias = 2 * unit_rows(rng, 32)
    ordinary = traffic(rng, unit_rows(rng, 150, 4, 32) + bias)
    log = traffic(rng, unit_rows(rng, 30, 4, 32) + bias)
    blind = estimate(log, names=["pairs"]).estimates[0]
    found = estimate(log, names=["pairs"], ordinary=ordinary, draws=19)
    assert blind.size == 30
    assert found.estimates[0].size <= 2
    assert 0.8 < found.threshold <= 0.95


def test_unusable_requests_are_named() -> None:
    log, benign = _world(0, 10, 30)
    rng = np.random.default_rng(0)
    for wrong, said in (
        ({"names": ["guess"]}, "'guess'"),
        ({"names": []}, "no estimator"),
        ({"ordinary": log}, "needs more"),
        ({"ordinary": benign, "alpha": 2.0}, "alpha"),
        ({"ordinary": benign, "draws": 0}, "draws"),
        # The best p of 18 logs is above alpha: a coalition would pass for none.
        ({"ordinary": benign, "draws": 18}, "18 benign logs no log has a p below 0.053"),
        ({"ordinary": traffic(rng, unit_rows(rng, 20, 2, 9))}, "24 dimensions"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            estimate(log, **wrong)
    with pytest.raises(InputError, match="one account"):
        estimate(_world(0, 1, 30)[0])


def test_few_of_the_drawn_logs_are_held_at_a_time(monkeypatch) -> None:
    log, ordinary = _world(3, 20, 140)
    alive, most = [0], [0]
    make = estimate_module.of_accounts

    def counted(*given):
        made = make(*given)
        alive[0] += 1
        most[0] = max(most[0], alive[0])
        weakref.finalize(made.vectors, lambda: alive.__setitem__(0, alive[0] - 1))
        return made

    monkeypatch.setattr(estimate_module, "of_accounts", counted)
    estimate(log, Settings(), names=("means",), ordinary=ordinary, draws=39)
    assert most[0] < 10 + estimate_module._CALIBRATION  # the samples behind the threshold are held
