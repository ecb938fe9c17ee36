"""Evidence about a collection: stops when it may, counts what it leaves out."""

import math
import random

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.owner import collection_difference, collection_evidence
from ragwitness.stats.sequential import log_martingale, online_p_values


def _outside(n: int = 50) -> list[float]:
    rng = random.Random(1)
    return [rng.gauss(0, 1) for _ in range(n)]


def test_a_collection_inside_is_found_before_all_of_it_is_read() -> None:
    rng = random.Random(2)
    read = []

    def scores():
        for _ in range(200):
            read.append(rng.gauss(3, 1))
            yield read[-1]

    found = collection_evidence(scores(), _outside(), alpha=0.01)
    assert found.decided_after == found.scored == len(read) < 20
    assert found.e_value >= 100
    assert found.p_value <= 0.01
    assert found.log10_e == pytest.approx(found.path[-1])
    expected = log_martingale(list(online_p_values(read, _outside())))[-1] / math.log(10)
    assert found.path[-1] == pytest.approx(expected)


def test_a_collection_outside_is_not_found() -> None:
    rng = random.Random(3)
    found = collection_evidence([rng.gauss(0, 1) for _ in range(100)], _outside())
    assert found.decided_after is None
    assert found.scored == 100
    assert found.e_value < 20
    assert found.p_value > 0.05


def test_matched_scores_are_compared_with_their_own_only() -> None:
    pairs = [(2.0, [0.0] * 9), (None, [0.0]), (0.0, [1.0] * 9)]
    found = collection_evidence(pairs)
    assert found.p_values == (0.1, 1.0)
    assert found.scored == 2
    assert found.unscorable == 1
    assert found.path == pytest.approx(log_martingale([0.1, 1.0]) / math.log(10))


def test_unscorable_documents_are_counted_and_never_bet_on() -> None:
    found = collection_evidence([None, None], _outside())
    assert (found.scored, found.unscorable) == (0, 2)
    assert (found.e_value, found.p_value, found.log10_e) == (1.0, 1.0, 0.0)


def test_the_anytime_p_value_remembers_the_best_evidence() -> None:
    pairs = [(1.0, [0.0] * 18)] + [(0.0, [1.0] * 18)] * 10
    found = collection_evidence(pairs)
    assert found.decided_after is None
    assert found.p_value == pytest.approx(10 ** -max(found.path))
    assert found.path[-1] < max(found.path)


def test_evidence_beyond_what_a_float_holds_stays_a_number() -> None:
    pairs = [(1.0, [0.0] * 9999)] * 400
    found = collection_evidence(pairs, alpha=1e-300)
    assert math.isfinite(found.log10_e)
    assert found.log10_e >= 300


def test_the_difference_leaves_unscorable_documents_out() -> None:
    found = collection_difference([3.0, None, 4.0], [0.0, 1.0, None], rng=random.Random(0))
    assert found.difference == pytest.approx(3.0)
    assert found.p_value == pytest.approx(1 / 6)
    with pytest.raises(InputError, match="both groups"):
        collection_difference([None], [0.0], rng=random.Random(0))


@pytest.mark.parametrize(
    ("documents", "outside", "options", "message"),
    [
        ([1.0], [0.0], {"alpha": 0.0}, "alpha"),
        ([1.0], [], {}, "calibration"),
        ([1.0], None, {}, "its own"),
        ([(1.0, [0.0])], [0.0], {}, "number or None"),
        ([1.0], [0.0], {"betting": "all"}, "betting"),
        ([math.nan], [0.0], {}, "finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(documents, outside, options, message) -> None:
    with pytest.raises(InputError, match=message):
        collection_evidence(documents, outside, **options)
