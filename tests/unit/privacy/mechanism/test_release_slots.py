"""Integer embeddings: their norm, their direction, their exact scores, what is refused."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragwitness.core.errors import InputError
from ragwitness.privacy.mechanism import Mechanism, mechanism_for
from ragwitness.privacy.release import SlotIndex, check_rows, quantise

WIDE = mechanism_for(384, 64, 5, 0.2)
NARROW = Mechanism(dimension=4, capacity=8, top=2, variance=64, shift=4, scale=100)


def norms(rows):
    return (rows.astype(object) ** 2).sum(axis=-1)


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e300, 1e300)))
@settings(deadline=None)
def test_no_vector_is_longer_than_the_bound(vectors):
    vectors[np.abs(vectors).max(axis=1) == 0] = 1.0
    for mechanism in (NARROW, dataclasses.replace(NARROW, scale=4096)):
        rows = quantise(vectors, mechanism)
        assert (norms(rows) <= mechanism.scale**2).all()
        check_rows(rows, mechanism)


def test_vectors_on_which_rounding_pushes_outwards_stay_within():
    # All coordinates round up at once: plain rounding would pass the bound.
    corner = np.full(385, 1.0)
    plain = np.rint(corner / np.linalg.norm(corner) * 4096)
    assert norms(plain) > 4096**2
    assert norms(quantise(corner, dataclasses.replace(WIDE, dimension=385))) <= 4096**2
    assert norms(quantise(np.eye(384), WIDE)).max() <= 4096**2


def test_directions_are_kept():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((64, 384))
    rows = quantise(vectors, WIDE).astype(float)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (rows * unit).sum(axis=1) / np.linalg.norm(rows, axis=1)
    assert cosines.min() > 1 - 3e-6
    assert norms(rows).min() > (4096 * 0.995) ** 2
    np.testing.assert_array_equal(quantise(1e-200 * vectors, WIDE), rows)
    assert quantise(vectors[0], WIDE).shape == (384,)


def exact_products(queries, rows):
    return [
        [sum(int(a) * int(b) for a, b in zip(q, r, strict=True)) for r in rows] for q in queries
    ]


@pytest.mark.parametrize("queries", [1, 7])
def test_scores_are_those_of_whole_numbers(queries):
    rng = np.random.default_rng(2)
    index = SlotIndex(quantise(rng.standard_normal((64, 384)), WIDE), WIDE)
    asked = quantise(rng.standard_normal((queries, 384)), WIDE)
    found = index.inner_products(asked)
    assert found.dtype == np.int32
    assert found.tolist() == exact_products(asked, index.rows)


def test_the_largest_sums_are_exact_too():
    # A vector with itself reaches 4096²; alternating signs reach every size in between.
    signs = np.where(np.arange(384) % 2, 1, -1)
    vectors = np.array([np.eye(384)[0], np.ones(384), signs, np.arange(384) - 190.0])
    rows = np.concatenate([quantise(vectors, WIDE), [[4096] + [0] * 383]])
    mechanism = dataclasses.replace(WIDE, capacity=5)
    found = SlotIndex(rows, mechanism).inner_products(rows.astype(np.int16))
    assert found.tolist() == exact_products(rows, rows)
    assert found.max() == 4096**2


def test_slots_without_a_document_are_rows_of_zeros():
    index = SlotIndex(quantise(np.eye(4)[:3], NARROW), NARROW)
    assert index.shape == (8, 4)
    assert not index.rows[3:].any()
    np.testing.assert_array_equal(index.rows[:3], quantise(np.eye(4)[:3], NARROW))


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0, np.nan, 0, 0]], "Embedding 0 holds a NaN"),
        ([[1.0, 0, 0, 0], [np.inf, 0, 0, 0]], "Embedding 1 holds"),
        ([[0.0, 0, 0, 0]], "Embedding 0 has length 0"),
        ([[1.0, 0, 0]], "dimension 4"),
        ([], "dimension 4"),
        (np.ones((9, 4)), "9 documents do not fit into 8 slots"),
        (np.ones((1, 2, 4)), "dimension 4"),
    ],
)
def test_vectors_without_a_place_are_refused_by_name(vectors, said):
    with pytest.raises(InputError, match=said):
        SlotIndex(quantise(vectors, NARROW), NARROW)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 0, 0, 0]], "float64"),
        ([[101, 0, 0, 0]], "Integer vector 0 is longer than 100"),
        ([[0, 0, 0, 0], [80, 80, 0, 0]], "Integer vector 1 is longer"),
        ([[2**62, 2**62, 2**62, 2**62]], "longer"),  # squares would wrap around to 0
        ([[-(2**63), 0, 0, 0]], "longer"),
        ([[1, 2, 3]], "dimension 4"),
    ],
)
def test_integers_that_break_the_bound_are_refused(rows, said):
    with pytest.raises(InputError, match=said):
        SlotIndex(rows, NARROW)


def test_a_scale_too_short_for_the_dimension_is_refused():
    with pytest.raises(InputError, match="too short for dimension 4"):
        quantise(np.ones(4), dataclasses.replace(NARROW, scale=2, shift=0))
