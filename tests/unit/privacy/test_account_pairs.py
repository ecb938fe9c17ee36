"""R5 and its calibration: against the closed form, research's figures and brute force."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from ragwitness.core.errors import InputError
from ragwitness.privacy import account_pairs as pairs
from ragwitness.privacy.account_pairs import (
    Links,
    chance_of_pair,
    component_labels,
    core_group,
    forest,
    largest_component,
    nearest_pair,
    similar_pairs,
    strongest,
    threshold_for,
)
from ragwitness.privacy.query_log import make_log, of_accounts
from research.coalitions import (
    PATTERNS,
    Harness,
    coalition_probes,
    null_curve,
    operating_point,
    recovery,
    traffic,
    unit_rows,
    with_intents,
)


def null_rate(tau: float, accounts: int, queries: int, dim: int) -> float:
    """Return how often unrelated accounts are joined: 1 - exp(-C(N, 2) m^2 p_tau)."""
    pairs = math.comb(accounts, 2) * queries**2
    return -math.expm1(-pairs * chance_of_pair(tau, dim))


def test_the_tail_of_the_cosine_is_what_sampling_shows() -> None:
    rng = np.random.default_rng(0)
    cosines = unit_rows(rng, 200_000, 8)[:, 0]
    for tau in (0.0, 0.3, 0.7):
        hits = int((cosines >= tau).sum())
        assert binomtest(hits, 200_000, chance_of_pair(tau, 8)).pvalue > 1e-4


def test_research_thresholds_of_the_closed_form() -> None:
    """N = 50, m = 10: the grid's smallest point with at most 5 % is .75, .60, .45, .25."""
    grid = Harness().thresholds
    for dim, known in ((32, 0.75), (64, 0.60), (128, 0.45), (384, 0.25)):
        assert next(tau for tau in grid if null_rate(tau, 50, 10, dim) <= 0.05) == known
        exact = threshold_for(0.05, 50, 10, dim)
        assert null_rate(exact, 50, 10, dim) == pytest.approx(0.05, rel=1e-9)
        assert known - 0.05 < exact <= known


def test_the_null_curve_is_researchs() -> None:
    """d = 64: tau = .40 merges 43 of 50 accounts; .50 joins in .73 of logs, .55 in .13, .60 0."""
    points = {point.threshold: point for point in null_curve(Harness(trials=60, seed=4))}
    assert points[0.20].largest == 50
    assert points[0.40].largest == pytest.approx(43, abs=1.5)
    for tau in (0.5, 0.55, 0.6):
        hits = round(points[tau].joined.value * 60)
        assert binomtest(hits, 60, null_rate(tau, 50, 10, 64)).pvalue > 1e-3
    assert operating_point(tuple(points.values())) in (0.60, 0.65)
    with pytest.raises(InputError, match="every threshold"):
        operating_point([points[0.20]])


@pytest.mark.parametrize("pattern", ["identical", "jittered", "paraphrased"])
def test_coalitions_that_stay_alike_are_counted(pattern: str) -> None:
    for size in (2, 4, 8, 16):
        found = recovery(Harness(trials=8), pattern, size, 0.60)
        assert (found.mean, found.spread, found.exact.value) == (size, 0.0, 1.0)


def test_a_coalition_below_the_threshold_is_not_seen() -> None:
    found = recovery(Harness(trials=20), "steady", 8, 0.60, similarity=0.4)
    assert found.detected.value < 0.2
    with pytest.raises(InputError, match="51 of 50"):
        recovery(Harness(), "identical", 51, 0.6)


def test_probes_have_the_cosines_they_are_made_for() -> None:
    rng = np.random.default_rng(1)
    for pattern in PATTERNS:
        probes = coalition_probes(rng, pattern, (30, 20, 256), 0.3)
        assert np.linalg.norm(probes, axis=2) == pytest.approx(1, abs=1e-12)
        between = float(np.mean(probes[0] @ probes[1].T))
        wanted = {"identical": 1.0, "jittered": 0.3, "steady": 0.3, "paraphrased": 0.3 + 0.7 / 5}
        assert between == pytest.approx(wanted[pattern], abs=0.12)
        within = float(probes[0, 0] @ probes[0, 1])
        assert within == pytest.approx(1.0 if pattern in ("identical", "steady") else within)
    with pytest.raises(InputError, match="'loud'"):
        coalition_probes(rng, "loud", (2, 2, 4))
    with pytest.raises(InputError, match="tau"):
        coalition_probes(rng, "steady", (2, 2, 4), 0.0)


def _brute(log, tau: float, window: float) -> dict[tuple[int, int], float]:
    best: dict[tuple[int, int], float] = {}
    for i in range(len(log.times)):
        for j in range(i + 1, len(log.times)):
            a, b = sorted((int(log.accounts[i]), int(log.accounts[j])))
            cosine = float(log.vectors[i] @ log.vectors[j])
            if a != b and log.times[j] - log.times[i] <= window and cosine >= tau:
                best[a, b] = max(best.get((a, b), -1.0), cosine)
    return best


@pytest.mark.parametrize("window", [math.inf, 600.0])
def test_every_pair_in_the_window_is_found(window: float, monkeypatch) -> None:
    monkeypatch.setattr("ragwitness.privacy.account_pairs._BLOCK", 37)
    rng = np.random.default_rng(2)
    log = traffic(
        rng, unit_rows(rng, 12, 12, 6), coalition_probes(rng, "jittered", (3, 12, 6), 0.8)
    )
    links = similar_pairs(log, 0.6, window)
    found = dict(
        zip(
            zip(links.first.tolist(), links.second.tolist(), strict=True), links.weight, strict=True
        )
    )
    known = _brute(log, 0.6, window)
    assert nearest_pair(log, window) == pytest.approx(max(known.values()), abs=1e-6)
    assert found.keys() == known.keys()
    assert all(found[pair] == pytest.approx(cosine, abs=1e-6) for pair, cosine in known.items())


def test_cores_resist_the_chains_that_components_follow() -> None:
    clique = [(a, b) for a in range(5) for b in range(a)]
    chain = [(4, 5), (5, 6), (6, 7), (7, 8)]
    first, second = (np.array(side) for side in zip(*clique, *chain, strict=False))
    first = np.array([a for a, _ in clique + chain])
    second = np.array([b for _, b in clique + chain])
    links = strongest(first, second, np.ones(len(first)), 10)
    assert largest_component(links).tolist() == [*range(9)]
    assert core_group(links).tolist() == [*range(5)]
    nobody = Links(*(np.zeros(0, np.int64),) * 2, np.zeros(0), 3)
    assert len(core_group(nobody)) == len(largest_component(nobody)) == 1


def test_the_strongest_link_of_a_pair_is_kept() -> None:
    links = strongest(np.array([0, 1, 2]), np.array([1, 0, 2]), np.array([0.2, 0.7, 1.0]), 3)
    assert (links.first.tolist(), links.second.tolist(), links.weight.tolist()) == ([0], [1], [0.7])


def test_shared_intents_join_honest_accounts() -> None:
    """The null that matters: FAQ traffic is one component for the paper's estimator."""
    rng = np.random.default_rng(4)
    honest = with_intents(rng, unit_rows(rng, 50, 10, 64), 0.3, unit_rows(rng, 4, 64))
    assert len(largest_component(similar_pairs(traffic(rng, honest), 0.9))) > 40


def test_a_log_is_checked_by_row() -> None:
    good = np.eye(3)
    with pytest.raises(InputError, match="Query 2 has a vector with a value"):
        make_log("abc", [0, 1, 2], np.where(np.eye(3)[::-1] * np.arange(3) == 1, np.nan, good))
    with pytest.raises(InputError, match="Query 3 has a vector of zeros"):
        make_log("abc", [0, 1, 2], np.diag([1.0, 1.0, 0.0]))
    with pytest.raises(InputError, match="Query 1 has a time"):
        make_log("abc", [math.nan, 1, 2], good)
    with pytest.raises(InputError, match="one account"):
        make_log("ab", [0, 1, 2], good)
    with pytest.raises(InputError, match="no query"):
        make_log([], [], np.zeros((0, 3)))
    log = make_log("aba", [3, 1, 2], good * 5)
    assert log.times.tolist() == [1, 2, 3]
    assert [log.names[at] for at in log.accounts] == ["b", "a", "a"]
    part = of_accounts(log, np.array([0]))
    assert (part.names, part.times.tolist()) == (("a",), [2, 3])
    for tau, window, named in ((2.0, 1.0, "2"), (0.5, 0.0, "window")):
        with pytest.raises(InputError, match=named):
            similar_pairs(log, tau, window)


def test_a_forest_has_the_components_of_all_links_at_every_threshold() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.integers(40, size=(2, 300))
    links = strongest(first, second, rng.random(300) * 2 - 1, 40)
    kept = forest(links)
    assert len(kept.first) < 40 < len(links.first)
    known = {(a, b): w for a, b, w in zip(links.first, links.second, links.weight, strict=True)}
    for a, b, weight in zip(kept.first, kept.second, kept.weight, strict=True):
        assert weight == pytest.approx(known[a, b], abs=1e-12)
    for tau in (-0.9, -0.2, 0.3, 0.8, 0.95):
        whole, few = (component_labels(part.above(tau)) for part in (links, kept))
        assert len({*zip(whole, few, strict=True)}) == len({*whole}) == len({*few})


def test_memory_is_bounded_by_the_accounts_and_the_group_is_the_same(monkeypatch) -> None:
    """The opponent: a log whose every two queries are alike, links without end."""
    monkeypatch.setattr("ragwitness.privacy.account_pairs._MOST_LINKS", 50)
    monkeypatch.setattr("ragwitness.privacy.account_pairs._BLOCK", 16)
    rng = np.random.default_rng(6)
    log = traffic(rng, np.eye(5)[0] + 0.1 * unit_rows(rng, 30, 8, 5))
    whole, few = similar_pairs(log, 0.9), similar_pairs(log, 0.9, sparse=True)
    assert len(few.first) == 29
    assert len(whole.first) > 300
    assert few.weight.max() == pytest.approx(whole.weight.max())
    assert largest_component(few).tolist() == largest_component(whole).tolist()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("window", [math.inf, 40.0])
def test_pairs_in_blocks_are_the_pairs_of_brute_force(monkeypatch, sparse, window) -> None:
    rng = np.random.default_rng(4)
    rows = unit_rows(rng, 500, 6)
    log = make_log([str(at) for at in rng.integers(60, size=500)], rng.uniform(0, 400, 500), rows)
    whole = similar_pairs(log, 0.9, window, sparse=sparse)
    monkeypatch.setattr(pairs, "_BLOCK", 16)

    parts = similar_pairs(log, 0.9, window, sparse=sparse)
    cosines = log.vectors @ log.vectors.T
    near = np.abs(log.times[:, None] - log.times) <= window
    near &= (cosines >= 0.9) & (log.accounts[:, None] != log.accounts)
    first, second = np.nonzero(near)
    joined = {
        (min(a, b), max(a, b))
        for a, b in zip(log.accounts[first], log.accounts[second], strict=True)
    }
    for found in (whole, parts):
        labels = component_labels(found)
        brute = component_labels(Links(*np.array(sorted(joined)).T, np.ones(len(joined)), log.size))
        assert {frozenset(np.flatnonzero(labels == one).tolist()) for one in labels} == {
            frozenset(np.flatnonzero(brute == one).tolist()) for one in brute
        }
        if not sparse:
            assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == {
                (int(a), int(b)) for a, b in joined
            }
    assert parts.weight.max() == whole.weight.max()
