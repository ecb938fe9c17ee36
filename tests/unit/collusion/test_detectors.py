"""Means, spectral scan, communities, power and the estimate of a log."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from ragwitness.collusion.detectors import (
    DETECTORS,
    Settings,
    Whitening,
    account_means,
    detect,
    effective_size,
    find_community,
    mean_links,
    mean_p_value,
    nearest_means,
    scan,
    suspicion,
    top_direction,
)
from ragwitness.core.errors import InputError
from research.coalitions import (
    coalition_probes,
    traffic,
    unit_rows,
    with_intents,
)
from research.detection import evasion_tax, power_of, suspicions


def _log(seed: int, n: int = 60, m: int = 8, dim: int = 48, *coalition):
    rng = np.random.default_rng(seed)
    others = unit_rows(rng, n, m, dim)
    if not coalition:
        return traffic(rng, others)
    pattern, size, tau = coalition
    return traffic(rng, others, coalition_probes(rng, pattern, (size, m, dim), tau))


def test_fresh_jitter_averages_out() -> None:
    tau, queries = 0.05, 100
    expected = 1 / (1 + (1 - tau) / (tau * queries))
    assert expected == pytest.approx(0.84, abs=2e-3)  # research, section 10
    means = account_means(_log(1, 40, queries, 384, "jittered", 10, tau))
    cosines = (means[:10] @ means[:10].T)[np.triu_indices(10, 1)]
    assert cosines.mean() == pytest.approx(expected, abs=0.01)


def test_the_p_value_of_the_nearest_means_is_uniform_without_a_coalition() -> None:
    p = [
        mean_p_value(nearest_means(account_means(_log(seed, 30, 3, 16))), 30, 16)
        for seed in range(150)
    ]
    assert kstest(p, "uniform").pvalue > 1e-3
    assert mean_p_value(-0.2, 3, 4) == 1


def test_whitening_takes_an_embedders_own_direction_away() -> None:
    rng = np.random.default_rng(2)
    bias = 2 * unit_rows(rng, 32)
    ordinary = traffic(rng, unit_rows(rng, 200, 5, 32) + bias)
    other = traffic(rng, unit_rows(rng, 60, 5, 32) + bias)
    assert nearest_means(account_means(other)) > 0.95
    white = account_means(other, Whitening(ordinary.vectors))
    assert mean_p_value(nearest_means(white), 60, 32) > 0.01
    with pytest.raises(InputError, match="16 and 32"):
        Whitening(ordinary.vectors)(np.ones((2, 16), np.float32))


def test_mean_links_are_every_close_pair() -> None:
    means = unit_rows(np.random.default_rng(3), 12, 4)
    links = mean_links(means, 0.4)
    known = {(a, b) for a in range(12) for b in range(a + 1, 12) if means[a] @ means[b] >= 0.4}
    assert {*zip(links.first.tolist(), links.second.tolist(), strict=True)} == known


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
def test_the_top_direction_is_numpys(shape: tuple[int, int]) -> None:
    means = unit_rows(np.random.default_rng(4), *shape)
    largest, direction = top_direction(means)
    values, axes = np.linalg.eigh(means.T @ means)
    assert largest == pytest.approx(values[-1], rel=1e-10)
    assert abs(direction @ axes[:, -1]) == pytest.approx(1, abs=1e-8)


def test_the_scan_sees_many_that_share_little() -> None:
    """k tau = 4 against sqrt(N/d) = 1.61: no pair is close, the direction is found."""
    rng = np.random.default_rng(5)
    means = unit_rows(rng, 260, 100)
    means[:40] = coalition_probes(rng, "steady", (40, 1, 100), 0.1)[:, 0]
    found = scan(means, rng, 39)
    assert found.p_value == 1 / 40
    assert found.shared == pytest.approx(4, rel=0.35)
    quiet = scan(unit_rows(rng, 260, 100), rng, 39)
    assert quiet.p_value > 0.025
    assert quiet.shared < 1.61
    strong = means.copy()
    strong[:40] = coalition_probes(rng, "steady", (40, 1, 100), 0.6)[:, 0]
    assert {*range(40)} <= {*scan(strong, rng, 1).members.tolist()}


def test_the_scans_p_value_is_valid() -> None:
    rng = np.random.default_rng(1)
    p = [scan(unit_rows(rng, 30, 12), rng, 19).p_value for _ in range(200)]
    assert np.mean(np.array(p) <= 0.1) < 0.1 + 4 * math.sqrt(0.09 / 200)
    assert np.mean(p) == pytest.approx(0.525, abs=0.09)  # uniform on .05, .1, ..., 1


def test_the_eigenvalue_inverts_to_the_shared_size() -> None:
    n, dim = 1000, 384
    for size in (2.5, 4.0, 10.0):
        s, g = size * dim / n, dim / n
        largest = n / dim * (1 + s) * (1 + g / s)
        assert effective_size(largest, n, dim) == pytest.approx(size, rel=1e-12)
    assert effective_size(n / dim, n, dim) == 0  # below the transition


def test_communities_tell_a_coalition_from_shared_intents() -> None:
    rng = np.random.default_rng(6)
    faq = unit_rows(rng, 6, 48)
    honest = with_intents(rng, unit_rows(rng, 80, 10, 48), 0.3, faq)
    quiet = find_community(traffic(rng, honest), rng, 19)
    assert len(quiet.members) <= 3
    probes = coalition_probes(rng, "identical", (8, 10, 48))
    found = find_community(traffic(rng, honest, probes), rng, 19)
    assert found.p_value == 1 / 20
    assert found.members.tolist() == [*range(8)]


def test_a_community_is_named_only_at_the_level_of_the_test() -> None:
    """The same coalition is strongest of 20 logs, or of 10: then p is 0.1."""
    log = _log(6, 30, 8, 32, "identical", 6, 1.0)
    for rounds, named in ((19, [*range(6)]), (9, [])):
        found = detect("communities", log, Settings(rounds=rounds))
        assert found.p_value == 1 / (rounds + 1)
        assert found.members.tolist() == named


def test_accounts_that_repeat_themselves_are_no_community() -> None:
    """Each asks one thing ten times, all different things: no more alike than other accounts."""
    peaks = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = unit_rows(rng, 80, 10, 48)
        rows[:16] = unit_rows(rng, 16, 1, 48)
        peaks.append(find_community(traffic(rng, rows), rng, 1).strongest)
    assert max(peaks) < 0.1


def test_links_as_strong_as_every_null_log_are_no_evidence() -> None:
    """Where all accounts ask one thing, the queries dealt out anew make the same log."""
    rng = np.random.default_rng(7)
    rows = np.broadcast_to(unit_rows(rng, 1, 1, 16), (6, 4, 16))
    assert find_community(traffic(rng, rows), rng, 9).p_value == 1


@pytest.mark.slow
def test_communities_p_value_is_valid() -> None:
    p = [find_community(_log(s, 25, 6, 12), np.random.default_rng(s), 9).p_value for s in range(80)]
    assert np.mean(np.array(p) <= 0.1) < 0.1 + 4 * math.sqrt(0.09 / 80)


def test_power_and_the_tax_of_evasion() -> None:
    settings = Settings(threshold=0.6)
    ordinary = suspicions("means", lambda rng: _log(int(rng.integers(1 << 30))), settings, 39, 1)
    found = []
    for tau in (0.02, 0.1, 0.5):

        def coalition(rng: np.random.Generator, tau: float = tau):
            return _log(int(rng.integers(1 << 30)), 60, 8, 48, "jittered", 8, tau)

        found.append((tau, power_of(ordinary, suspicions("means", coalition, settings, 20, 2))))
    powers = [power.found.value for _, power in found]
    assert powers == sorted(powers)
    assert (powers[0] < 0.5, powers[-1]) == (True, 1.0)
    assert found[-1][1].auc.value == 1
    tax = evasion_tax(found)
    assert tax.accounts == pytest.approx(1 / tax.least)
    assert evasion_tax(found[:1]).accounts is None
    with pytest.raises(InputError, match="10 ordinary logs"):
        power_of(ordinary[:10], ordinary)


def test_a_suspicion_alone_is_the_one_of_the_estimate() -> None:
    log = _log(9, 20, 4, 16, "identical", 3, 1.0)
    settings = Settings(rounds=3)
    for name in DETECTORS:
        assert suspicion(name, log, settings) == detect(name, log, settings).suspicion
