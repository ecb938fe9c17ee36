"""Evidence about a collection: stops when it may, counts what it leaves out."""

import math
import random

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.owner import Bets, collection_difference
from ragwitness.stats.sequential import online_p_values
from tests.unit.stats.test_sequential import log_martingale


def collection_evidence(documents, outside, *, alpha=0.05):
    """Bet on the documents one by one and stop as soon as 1/alpha is reached."""
    bets = Bets(outside, alpha=alpha)
    bets.add(documents)
    return bets.evidence()


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


def test_unscorable_documents_are_counted_and_never_bet_on() -> None:
    found = collection_evidence([None, None], _outside())
    assert (found.scored, found.unscorable) == (0, 2)
    assert (found.e_value, found.p_value, found.log10_e) == (1.0, 1.0, 0.0)


def test_the_anytime_p_value_remembers_the_best_evidence() -> None:
    found = collection_evidence([1.0] + [0.0] * 10, [0.5] * 18)
    assert found.decided_after is None
    assert found.p_value == pytest.approx(10 ** -max(found.path))
    assert found.path[-1] < max(found.path)


def test_evidence_beyond_what_a_float_holds_stays_a_number() -> None:
    found = collection_evidence(map(float, range(1, 401)), [0.0] * 9999, alpha=1e-300)
    assert math.isfinite(found.log10_e)
    assert found.log10_e >= 300


def test_the_difference_leaves_unscorable_documents_out() -> None:
    found = collection_difference([3.0, None, 4.0], [0.0, 1.0, None], rng=random.Random(0))
    assert found.difference == pytest.approx(3.0)
    assert found.p_value == pytest.approx(1 / 6)
    with pytest.raises(InputError, match="both groups"):
        collection_difference([None], [0.0], rng=random.Random(0))


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.4])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_batch_by_batch_is_what_a_fresh_start_would_give(shift, size) -> None:
    rng = random.Random(f"{shift} {size}")
    # Rounded, so that there are ties; one in ten cannot be scored.
    scores = [None if rng.random() < 0.1 else round(rng.gauss(shift, 1), 1) for _ in range(300)]
    outside = [round(score, 1) for score in _outside(40)]
    bets = Bets(outside, alpha=1e-6)
    for end in range(size, len(scores) + size, size):
        bets.add(scores[end - size : end])
        found = bets.evidence()
        again = collection_evidence(scores[:end], outside, alpha=1e-6)
        literal = log_martingale(
            list(online_p_values((s for s in scores[:end] if s is not None), outside))
        )
        assert found.path == pytest.approx(again.path, abs=1e-12)
        # Written out beside it: the same p-values and bets from one pass over all scores.
        assert found.path == pytest.approx(literal[: found.scored] / math.log(10), abs=1e-12)
        assert found.p_values == again.p_values
        assert (found.e_value, found.p_value) == pytest.approx((again.e_value, again.p_value))
        assert found.decided_after == again.decided_after == bets.decided_after
        assert (found.scored, found.unscorable) == (again.scored, again.unscorable)


def test_nothing_is_bet_on_after_the_decision() -> None:
    bets = Bets(_outside())
    bets.add([9.0] * 30)
    decided = bets.evidence()
    assert decided.decided_after == decided.scored < 30
    bets.add(pytest.fail("read on") for _ in range(1))
    assert bets.evidence() == decided


def test_each_score_is_bet_on_once(monkeypatch) -> None:
    from ragwitness.membership import owner as evidence

    ranked = []
    whole = evidence.online_p_values

    def counted(scores, calibration):
        for p in whole(scores, calibration):
            ranked.append(p)
            yield p

    monkeypatch.setattr(evidence, "online_p_values", counted)
    bets = Bets(_outside())
    for _ in range(50):
        bets.add([0.0, -1.0])
    assert len(ranked) == bets.evidence().scored == 100


@pytest.mark.parametrize(
    ("documents", "outside", "options", "message"),
    [
        ([1.0], [0.0], {"alpha": 0.0}, "alpha"),
        ([1.0], [], {}, "calibration"),
        ([math.nan], [0.0], {}, "finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(documents, outside, options, message) -> None:
    with pytest.raises(InputError, match=message):
        collection_evidence(documents, outside, **options)
