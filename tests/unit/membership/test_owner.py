"""Evidence about a collection: stops when it may, counts what it leaves out."""

import math
import random

import numpy as np
import pytest

from ragwitness.errors import InputError
from ragwitness.membership.owner import Bets, collection_difference
from ragwitness.stats.sequential import bet_on_labels


def _order(mine, known, seed=0):
    """Scores of both kinds with their labels, in one random order."""
    order = [(score, True) for score in mine] + [(score, False) for score in known]
    random.Random(seed).shuffle(order)
    return order


def _evidence(order, *, alpha=0.05):
    ours = sum(label for _, label in order)
    bets = Bets(ours, len(order) - ours, alpha=alpha)
    bets.add(order)
    return bets.evidence()


def _drawn(n, mean=0.0, seed=1):
    rng = random.Random(seed)
    return [rng.gauss(mean, 1) for _ in range(n)]


def test_a_collection_inside_is_found_before_all_of_it_is_read() -> None:
    order, read = _order(_drawn(200, 3.0, seed=2), _drawn(50)), []
    bets = Bets(200, 50, alpha=0.01)
    bets.add(read.append(one) or one for one in order)
    found = bets.evidence()
    assert found.decided
    assert len(found.path) == len(read) < 60
    assert found.e_value >= 100
    assert found.p_value <= 0.01
    assert found.log10_e == pytest.approx(found.path[-1])


def test_a_collection_outside_is_not_found() -> None:
    found = _evidence(_order(_drawn(100, seed=3), _drawn(50)))
    assert not found.decided
    assert len(found.path) == 150
    assert found.e_value < 20
    assert found.p_value > 0.05


@pytest.mark.parametrize("known", [40, 100, 400])
@pytest.mark.parametrize("kind", ["none", "rising", "at once", "a while"])
def test_the_level_holds_under_any_drift(known: int, kind: str) -> None:
    """2,000 collections that nobody holds, in all cells; more known ones sharpen no drift."""
    rng, decided, rounds = np.random.default_rng(known), 0, 170
    for at in range(rounds):
        size, when = (0.2, 0.5, 1.0)[at % 3], np.arange(60 + known)
        first = rng.integers(len(when))
        drift = {
            "none": 0.0 * when,
            "rising": size * when / len(when),
            "at once": size * (when >= first),
            "a while": 4.0 * ((when >= first) & (when < first + 8)),
        }[kind]
        labels = rng.permutation(np.repeat([True, False], [60, known]))
        scores = rng.normal(size=len(when)) + drift
        decided += _evidence(list(zip(scores.tolist(), labels.tolist(), strict=True))).decided
    assert decided <= 17  # more with probability .003 at .05


def test_a_drift_costs_little_power() -> None:
    found = 0
    for seed in range(20):
        mine, known = _drawn(60, 1.5, seed=seed), _drawn(100, seed=1000 + seed)
        order = _order(mine, known, seed)
        drifting = [(score + at / 160, label) for at, (score, label) in enumerate(order)]
        found += _evidence(drifting).decided
    assert found >= 18


def test_unscorable_documents_are_counted_and_never_bet_on() -> None:
    found = _evidence([(None, True), (None, False), (None, True)])
    assert (found.path, found.unscorable) == ((), 2)
    assert (found.e_value, found.p_value, found.log10_e) == (1.0, 1.0, 0.0)


def test_the_anytime_p_value_remembers_the_best_evidence() -> None:
    order = [(0.0, False)] * 5 + [(1.0, True)] * 2 + [(0.5, False)] * 5 + [(0.1, True)] * 9
    found = _evidence(order, alpha=0.001)
    assert not found.decided
    assert found.p_value == pytest.approx(10 ** -max(found.path))
    assert found.path[-1] < max(found.path)


def test_evidence_beyond_what_a_float_holds_stays_a_number() -> None:
    found = _evidence(_order([1.0] * 2000, [0.0] * 2000), alpha=1e-300)
    assert math.isfinite(found.log10_e)
    assert found.log10_e >= 300


def test_the_difference_leaves_unscorable_documents_out() -> None:
    found = collection_difference([3.0, None, 4.0], [0.0, 1.0, None], rng=random.Random(0))
    assert found.difference == pytest.approx(3.0)
    assert found.p_value == pytest.approx(1 / 6)
    with pytest.raises(InputError, match="both groups"):
        collection_difference([None], [0.0], rng=random.Random(0))


@pytest.mark.parametrize("size", [1, 3, 16])
def test_batch_by_batch_is_what_one_pass_gives(size: int) -> None:
    order = [(round(s, 1), label) for s, label in _order(_drawn(80, 0.4), _drawn(60, seed=5))]
    order[7] = (None, order[7][1])
    bets = Bets(80, 60, alpha=1e-6)
    for at in range(0, len(order), size):
        bets.add(order[at : at + size])
    whole = [value for value in bet_on_labels(order, 80, 60) if value is not None]
    assert bets.evidence().path == pytest.approx([value / math.log(10) for value in whole])


def test_nothing_is_bet_on_after_the_decision() -> None:
    bets = Bets(30, 30)
    bets.add(_order([9.0] * 30, [0.0] * 30))
    decided = bets.evidence()
    assert decided.decided
    assert len(decided.path) < 30
    bets.add(pytest.fail("read on") for _ in range(1))
    assert bets.evidence() == decided


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="alpha"):
        Bets(1, 1, alpha=0.0)
    with pytest.raises(InputError, match="finite"):
        _evidence([(math.nan, True)])
