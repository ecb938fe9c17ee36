"""Noise, then select: against the definition, against theory, and bit for bit."""

import dataclasses
import hashlib
import math
from collections import Counter

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, norm

from ragwitness.core.errors import InputError
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import (
    SlotIndex,
    quantise,
    release,
    scores,
    select,
    slot_noise,
)
from ragwitness.privacy.sampler import discrete_gaussian
from ragwitness.privacy.streams import slot_bits
from ragwitness.privacy.table import gaussian_table
from tests.support.gaussian import delta_at, exact_pmf

KEY = bytes(range(32))


def keys(count, name="key"):
    return [hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(count)]


def setting(capacity=6, top=2, **changes):
    mechanism = Mechanism(
        dimension=3, capacity=capacity, top=top, variance=10_000, shift=16, **changes
    )
    rows = quantise(np.random.default_rng(3).standard_normal((capacity - 1, 3)), mechanism)
    return mechanism, SlotIndex(rows, mechanism), rows[0]


def literal(query, rows, noise, mechanism):
    """Equation 2.1, one slot at a time, in Python's integers."""
    low, high = mechanism.bounds
    noisy = []
    for slot, row in enumerate(rows):
        exact = sum(int(a) * int(b) for a, b in zip(query, row, strict=True))
        noisy.append(min(max(exact // 2**mechanism.shift, low), high) + noise[slot])
    order = sorted(range(len(rows)), key=lambda slot: (-noisy[slot], slot))[: mechanism.top]
    return tuple(order), tuple(noisy[slot] for slot in order)


@pytest.mark.parametrize("sampler", ["table", "exact"])
@pytest.mark.parametrize("clip", [{}, {"low": -3, "high": 40}])
def test_releases_are_those_of_the_definition(sampler, clip):
    mechanism, index, query = setting(sampler=sampler, **clip)
    for key in keys(30):
        if sampler == "exact":
            noise = [discrete_gaussian(10_000, slot_bits(key, i)) for i in range(6)]
        else:
            noise = gaussian_table(10_000).draw(key, 0, 6).tolist()
        found = release(query, index, key, mechanism)
        assert (found.ids, found.noisy) == literal(query, index.rows, noise, mechanism)


def test_a_verifier_derives_any_part_of_the_noise():
    for sampler in ("table", "exact"):
        mechanism = setting(sampler=sampler)[0]
        whole = slot_noise(mechanism, KEY)
        np.testing.assert_array_equal(slot_noise(mechanism, KEY, 2, 5), whole[2:5])


def test_ties_go_to_the_first_slot():
    noisy = np.array([5, 9, 5, 9, 5, 1])
    assert select(noisy, 1).ids == (1,)
    assert select(noisy, 3).ids == (1, 3, 0)
    assert select(noisy, 4).noisy == (9, 9, 5, 5)
    assert select(noisy, 6).ids == (1, 3, 0, 2, 4, 5)


def test_selections_follow_the_float_gaussian():
    # P(slot i is first): the integral of φ(x) times all Φ(x + (s_i - s_j)/sigma).
    mechanism = dataclasses.replace(setting(top=1)[0], variance=90_000, shift=14)
    rows = quantise(np.random.default_rng(3).standard_normal((5, 3)), mechanism)
    index = SlotIndex(rows, mechanism)
    exact = scores(rows[:1], index, mechanism)[0] / 300
    expected = [
        quad(
            lambda x, i=i: norm.pdf(x) * np.prod(norm.cdf(np.delete(exact[i] + x - exact, i))),
            -9,
            9,
        )[0]
        for i in range(6)
    ]
    assert max(expected) > 4 * min(expected)
    runs = 10_000
    found = [release(rows[0], index, key, mechanism) for key in keys(runs)]
    counts = Counter(selection.ids[0] for selection in found)
    observed = np.array([counts[i] for i in range(6)])
    assert chisquare(observed, runs * np.array(expected) / sum(expected)).pvalue > 1e-3


def test_neighbouring_indexes_are_as_hard_to_tell_apart_as_promised():
    # Two slots, K = 1, all noise enumerated: P(first | D) <= e^eps P(first | D') + delta.
    mechanism = Mechanism(dimension=1, capacity=2, top=1, variance=64, shift=0, scale=4)
    pmf = [float(p) for p in exact_pmf(64)]
    weights = np.array([*pmf[:0:-1], *pmf])
    reach = np.arange(len(weights)) - len(pmf) + 1

    def chances(rows):
        exact = scores(np.array([[4]], np.int16), SlotIndex(rows, mechanism), mechanism)[0]
        first = exact[0] + reach[:, None] >= exact[1] + reach[None, :]  # ties: the first slot
        one = float((weights[:, None] * weights[None, :] * first).sum())
        return np.array([one, 1 - one])

    for relation, rows, others in (
        ("replace", [[4], [1]], [[-4], [1]]),
        ("add-remove", [[4], [1]], [[0], [1]]),
    ):
        mu = mechanism.sensitivity(relation) / mechanism.gaussian_sigma
        p, q = chances(rows), chances(others)
        for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
            delta = delta_at(epsilon, mu)
            for a, b in ((p, q), (q, p)):
                assert np.maximum(a - math.exp(epsilon) * b, 0).sum() <= delta + 1e-15
        assert np.abs(p - q).max() > 0.1  # and they do differ


class Graph:
    """Anything that searches approximately."""

    name = "FAISS HNSW (M=32)"

    def search(self, vector, k):
        return []


def test_an_approximate_index_is_refused_with_the_reason():
    mechanism, _, query = setting()
    with pytest.raises(InputError, match=r"HNSW.*before any noise.*leak") as refused:
        release(query, Graph(), KEY, mechanism)
    assert "SlotIndex(quantise(" in refused.value.hint


def test_what_does_not_fit_together_is_refused_by_name():
    mechanism, index, query = setting()
    with pytest.raises(InputError, match=r"6 slots of dimension 3.*7, 3"):
        release(query, index, KEY, dataclasses.replace(mechanism, capacity=7))
    with pytest.raises(InputError, match="float64"):
        release(query / 4096, index, KEY, mechanism)
    with pytest.raises(InputError, match="dimension 3"):
        release([1, 2], index, KEY, mechanism)
    with pytest.raises(InputError, match="longer than 4096"):
        release([4096, 1, 0], index, KEY, mechanism)
    with pytest.raises(ValueError, match="too many values"):
        release([query, query], index, KEY, mechanism)
