"""Conformal p-values and their correction against independent computations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from ragwitness.core.errors import InputError
from ragwitness.stats.p_values import (
    benjamini_hochberg,
    conformal_p_values,
    documents_needed,
    largest_tie,
    votes_of,
)

_FLOATS = st.floats(-1e6, 1e6)


@given(st.lists(_FLOATS, min_size=1, max_size=30), st.lists(_FLOATS, min_size=1, max_size=30))
def test_p_value_is_the_literal_count(scores: list[float], null: list[float]) -> None:
    literal = [(1 + sum(c >= s for c in null)) / (len(null) + 1) for s in scores]
    assert conformal_p_values(scores, null) == pytest.approx(literal)


def test_false_positive_rate_holds_for_exchangeable_documents() -> None:
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(2000):
        null = rng.choice(5, 40).astype(float)  # many ties: the hard case
        hits.append(conformal_p_values(rng.choice(5, 1).astype(float), null)[0] <= 0.05)
    assert np.mean(hits) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40))
def test_benjamini_hochberg_agrees_with_scipy(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values))


@pytest.mark.parametrize(("alpha", "tests", "n"), [(0.05, 1, 19), (0.05, 2, 39)])
def test_documents_needed_is_the_smallest_that_can_reject(alpha, tests, n) -> None:
    assert documents_needed(alpha, tests) == n
    for size, possible in ((n, True), (n - 1, False)):
        p = [1 / (size + 1)] + [1.0] * (tests - 1)
        assert bool(benjamini_hochberg(p)[0] <= alpha + 1e-12) is possible


@pytest.mark.parametrize("null", [[], [float("nan")]])
def test_unusable_calibration_is_refused(null: list[float]) -> None:
    with pytest.raises(InputError):
        conformal_p_values([1.0], null)


def test_the_largest_tie_is_counted() -> None:
    assert largest_tie([]) == 0
    assert largest_tie([1.0, 2.0, 3.0]) == 1
    assert largest_tie([0.0] * 100 + [1.0]) == 100


@pytest.mark.parametrize(("documents", "known"), [(3, 19), (6, 59), (7, 139), (12, 239), (6, 19)])
def test_what_the_arithmetic_promises_no_rounding_denies(documents: int, known: int) -> None:
    """Exactly so many documents at the least p-value are enough as fractions say."""
    for together in range(1, documents + 1):
        p = [1 / (known + 1)] * together + [1.0] * (documents - together)
        enough = Fraction(documents, together * (known + 1)) <= Fraction(1, 20)
        assert bool(benjamini_hochberg(p)[0] <= 0.05) is enough


def _by_hand(score, group, calibration, groups):
    """One vote a group: its share at least as high, and for the own group the score as well."""
    parts: dict[object, list[float]] = {}
    for at, (value, name) in enumerate(zip(calibration, groups, strict=True)):
        parts.setdefault(at if name is None else name, []).append(value)
    own = [*parts.pop(group, []), score] if group is not None else [score]
    votes = [*(np.mean([v >= score for v in part]) for part in parts.values()), 1.0]
    votes[-1] = np.mean([v >= score for v in own])
    return sum(votes) / len(votes)


def test_grouped_p_values_are_one_vote_a_group() -> None:
    rng = np.random.default_rng(4)
    known, scores = rng.integers(0, 9, 30).astype(float), rng.integers(0, 9, 12).astype(float)
    theirs = [None if at % 5 == 0 else f"g{at % 4}" for at in range(30)]
    mine = [None, "g1", "g7"] * 4
    found = conformal_p_values(scores, known, groups=(mine, theirs))
    literal = [_by_hand(s, g, known, theirs) for s, g in zip(scores, mine, strict=True)]
    assert found == pytest.approx(literal)
    # Each by itself, or one group everywhere, is the usual rank.
    alone = conformal_p_values(scores, known)
    assert conformal_p_values(scores, known, groups=([None] * 12, [None] * 30)) == pytest.approx(
        alone
    )
    assert conformal_p_values(scores, known, groups=(["a"] * 12, ["a"] * 30)) == pytest.approx(
        alone
    )


@pytest.mark.parametrize("size", [3, 7, 49])
def test_votes_of_whole_groups_are_whole_numbers(size: int) -> None:
    """A group of three has three thirds of a vote: 1 of 20 is .05, and not a last bit more."""
    groups = [f"g{at}" for at in range(19) for _ in range(size)]
    calibration = [float(at) for at in range(19) for _ in range(size)]
    found = conformal_p_values(np.arange(20) - 0.5, calibration, ([None] * 20, groups))
    assert found.tolist() == [(20 - rank) / 20 for rank in range(20)]


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(7, 100), Fraction(1, 10)])
def test_documents_needed_are_those_of_fractions(alpha: Fraction) -> None:
    for tests in range(1, 200):  # 7 / .07 is 100.00000000000001 in floating point
        assert documents_needed(float(alpha), tests) == math.ceil(tests / alpha) - 1


@pytest.mark.parametrize("shared", [0, 5])
def test_grouped_p_values_hold_their_level_where_scores_cluster(shared: int) -> None:
    """2,000 audits: 20 documents of five authors, 200 of 40; half the variance is theirs."""
    rng, hits = np.random.default_rng(shared), []
    mine, theirs = np.repeat(np.arange(5), 4), np.repeat(np.arange(5 - shared, 45 - shared), 5)
    groups = ([f"{g}" for g in mine], [f"{g}" for g in theirs])
    for _ in range(2000):
        style = rng.normal(size=45)
        scores, known = (style[g] + rng.normal(size=len(g)) for g in (mine, theirs))
        hits.append(np.mean(conformal_p_values(scores, known, groups=groups) <= 0.05))
    assert np.mean(hits) <= 0.055


def test_votes_are_groups_and_documents_without_one() -> None:
    assert votes_of(["a", None, "a", "b", None]) == 4
    assert votes_of([]) == 0
