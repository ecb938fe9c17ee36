"""The estimate that both sides compute: exact, the same as the paper's estimator, to the byte."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ragwitness.attest.coalition import certificate, estimate
from ragwitness.attest.policy import Estimator
from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import core_group, largest_component, similar_pairs
from ragwitness.privacy.query_log import make_log
from tests.support.windows import policy


def _with(name="pairs", threshold=0.9):
    return policy(estimator=Estimator(name, threshold))


def _asked(*names, tenant="clinic"):
    return [(tenant, name) for name in names]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["pairs", "cores"])
def test_it_is_the_estimator_of_the_collusion_package(name, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-100, 101, (60, 6)).astype(np.int16)
    who = [f"a{i}" for i in rng.integers(0, 12, 60)]
    found = estimate(_with(name, 0.8), _asked(*who), vectors)
    log = make_log(who, list(range(60)), vectors.astype(float))
    links = similar_pairs(log, 0.8)
    group = largest_component(links) if name == "pairs" else core_group(links)
    assert found.size == max(1, len(group))
    if name == "cores" and len(group) > 1:
        assert found.groups == (tuple(sorted(("clinic", log.names[i]) for i in group)),)


@pytest.mark.parametrize("text", ["0.5", "0.6", "0.8", "0.9", "0.95", "1.0"])
def test_a_cosine_at_the_threshold_counts_and_one_step_below_does_not(text):
    a, b = Fraction(text).numerator, Fraction(text).denominator
    # All (u, v) in a grid whose cosine with (7, 0) is a/b exactly; few thresholds have any.
    found = [
        (u, v)
        for u in range(1, 60)
        for v in range(-60, 61)
        if u * u * b * b == a * a * (u * u + v * v)
    ]
    for u, v in found[:3]:
        vectors = np.array([[7, 0], [u, v]], np.int16)
        assert estimate(_with(threshold=float(text)), _asked("a", "b"), vectors).size == 2
    vectors = np.array([[4096, 0], [4095, 90]], np.int16)  # cosine .99976
    size = estimate(_with(threshold=float(text)), _asked("a", "b"), vectors).size
    assert size == (1 if text == "1.0" else 2)
    assert found or text not in ("0.6", "0.8", "1.0")


@pytest.mark.parametrize("steps", [9_997, 9_998, 9_999, 10_000])
def test_large_numbers_are_decided_exactly(steps):
    """On both sides of each threshold, with squares up to the 48 bits that there can be."""
    near = [(4095, y, z) for y in range(80, 101) for z in (0, 1, 2)]
    near += [(4096, 0, 0), (2048, 0, 0), (1, 0, 0)]
    for v in near:
        u, w = np.array([4096, 0, 0]), np.array(v)
        exact = int(u @ w) ** 2 * 10**8 >= int(u @ u) * int(w @ w) * steps**2
        rows = np.stack([u, w]).astype(np.int16)
        found = estimate(_with(threshold=steps / 10_000), _asked("a", "b"), rows)
        assert found.size == (2 if exact else 1), v


@pytest.mark.slow
def test_a_thousand_accounts_that_all_ask_the_same_are_counted_in_seconds():
    """Pairs at the threshold itself took a step of Python each, and one line of memory."""
    import time

    who = _asked(*(f"a{i}" for i in range(1000)))
    rows = np.tile(np.array([3, 4, 0, 0], np.int16), (1000, 1))
    start = time.process_time()
    for name in ("pairs", "cores"):
        assert estimate(_with(name, 1.0), who, rows).size == 1000
    assert time.process_time() - start < 10


def test_opposite_and_empty_queries_join_nobody():
    vectors = np.array([[5, 0], [-5, 0], [0, 0], [0, 0]], np.int16)
    for threshold in (0.0, 0.9):
        found = estimate(_with(threshold=threshold), _asked("a", "b", "c", "d"), vectors)
        assert found.size == 1


def test_accounts_of_two_tenants_are_one_coalition():
    """A tenant apiece hid half of them: four accounts with one probe were counted as two."""
    vectors = np.ones((4, 3), np.int16)
    who = [("clinic", "a"), ("archive", "b"), ("clinic", "c"), ("archive", "a")]
    assert estimate(_with(), who, vectors).groups == (tuple(sorted(who)),)
    assert estimate(_with(), who[:2], vectors[:2]).size == 2
    apart = estimate(policy(estimator=Estimator("pairs", 0.9, together=False)), who, vectors)
    assert apart.groups == (
        (("archive", "a"), ("archive", "b")),
        (("clinic", "a"), ("clinic", "c")),
    )
    assert apart.size == 2


@pytest.mark.slow
@pytest.mark.parametrize("span", [1, 2, 7, 40, 2000])
def test_queries_further_apart_than_the_span_join_nobody(span, monkeypatch):
    """As the paper's window W over a clock that counts the log's queries; blocks cut nothing."""
    monkeypatch.setattr("ragwitness.attest.coalition._BLOCK", 8)
    rng = np.random.default_rng(span)
    vectors = rng.integers(-9, 10, (60, 3)).astype(np.int16)
    who = [f"a{i}" for i in rng.integers(0, 30, 60)]
    found = estimate(policy(estimator=Estimator("pairs", 0.9, span)), _asked(*who), vectors)
    log = make_log(who, list(range(60)), vectors.astype(float))
    assert found.size == len(largest_component(similar_pairs(log, 0.9, span)))
    staggered = np.array([[1, 0]] + [[0, 1]] * span + [[1, 0]], np.int16)
    asked = _asked("first", *["between"] * span, "last")
    for wide, size in ((span, 1), (span + 1, 2)):
        used = policy(estimator=Estimator("pairs", 0.9, wide))
        assert estimate(used, asked, staggered).size == size


def test_one_account_that_repeats_itself_is_no_coalition():
    assert estimate(_with(), _asked("a", "a", "a"), np.ones((3, 2), np.int16)).size == 1


def test_chains_join_under_pairs_and_not_under_cores():
    angles = np.array([0.0, 0.3, 0.6, 0.9, 2.0, 2.01, 2.02])
    vectors = np.rint(1000 * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.int16)
    who = _asked(*"abcdxyz")
    assert estimate(_with("pairs", 0.95), who, vectors).size == 4
    cores = estimate(_with("cores", 0.95), who, vectors)
    assert cores.groups == (tuple(("clinic", name) for name in "xyz"),)


def test_the_certificate_is_the_same_in_any_order_and_changes_with_a_vector():
    rng = np.random.default_rng(3)
    vectors = rng.integers(-9, 10, (40, 3)).astype(np.int16)
    who = _asked(*[f"a{i}" for i in rng.integers(0, 20, 40)])
    made = certificate(estimate(_with(), who, vectors))
    order = rng.permutation(40)
    assert certificate(estimate(_with(), [who[i] for i in order], vectors[order])) == made
    told = json.loads(made)
    assert (told["queries"], told["window"]) == ("40", "2026-W47")
    assert told["estimator"] == {"name": "pairs", "span": "0", "threshold": "0.9"}
    assert int(told["coalition"]) == len(told["groups"][0]) > 2
    assert all(tenant == "clinic" for tenant, _ in told["groups"][0])
    none = certificate(estimate(_with(), [], np.zeros((0, 3), np.int16)))
    assert json.loads(none)["coalition"] == "1"


def test_vectors_and_accounts_are_as_many():
    with pytest.raises(InputError, match="2 queries have 1"):
        estimate(_with(), _asked("a", "b"), np.ones((1, 2), np.int16))
