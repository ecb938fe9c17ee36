"""The verdict: which test decides, what it says, and what would decide."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from ragwitness.canary import verdict
from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import Seen, SlotScores, draws_together
from ragwitness.canary.verdict import (
    ModelVerdict,
    best_p_value,
    logits,
)
from ragwitness.core.errors import InputError

decide = functools.partial(verdict.decide, shares=True)  # any numbers


def _matrix(rng: np.random.Generator, effect: float, n: int = 12, m: int = 40) -> np.ndarray:
    matrix = rng.normal(size=(n, m))
    matrix[:, 7] += effect
    return matrix


def test_a_planted_trigger_that_stands_out_is_found_and_one_that_does_not_is_not_acquitted() -> (
    None
):
    rng = np.random.default_rng(7)
    design = Design(candidates=40)
    strong = decide(design, [_matrix(rng, 3.0)], [7])
    assert strong.verdict is ModelVerdict.KNOWN
    assert (strong.test, strong.ranks, strong.p_value) == ("rank among candidates", (1,), 1 / 40)
    assert "not ruled out" in strong.reason
    nothing = np.zeros((12, 40))
    weak = decide(design, [nothing], [7])
    assert weak.verdict is ModelVerdict.INCONCLUSIVE
    assert weak.p_value == 1.0
    assert weak.reason == "the planted trigger does not stand out enough among the candidates"
    few = decide(Design(candidates=10), [_matrix(rng, 9.0, m=10)], [7])
    assert few.verdict is ModelVerdict.INCONCLUSIVE
    assert "0.1 is the best that 1 slots of 10 candidates can give" in few.reason
    assert {*ModelVerdict} == {"trained", "trained-or-remembered", "inconclusive"}


def test_the_test_follows_from_the_design_and_not_from_the_outcome() -> None:
    rng = np.random.default_rng(11)
    two = [_matrix(rng, 3.0) for _ in range(2)]
    joint = decide(Design(candidates=40, slots=2), two, [7, 7])
    assert (joint.test, joint.verdict) == ("joint redraw of all slots", ModelVerdict.KNOWN)
    over = decide(Design(candidates=40, slots=2, releases=0), two, [7, 7])
    assert over.test == "outcomes called over all looks"
    assert over.p_value == pytest.approx(2 * joint.p_value)
    again = decide(Design(candidates=40), two[:1], [7], earlier=[Seen(((30, 40),))])
    assert (again.test, again.p_value) == ("none, the one look was taken", 1.0)
    assert again.verdict is ModelVerdict.INCONCLUSIVE
    assert "announced one look" in again.reason
    third = decide(Design(candidates=40, releases=2), two[:1], [7], earlier=[Seen(((30, 40),))] * 2)
    assert third.verdict is ModelVerdict.INCONCLUSIVE
    assert third.reason == "2 looks were announced, and one more adds no evidence"


def test_scores_that_cannot_be_ranked_are_refused() -> None:
    for scores, place in ((np.array([1.0]), 0), (np.array([1.0, math.nan]), 0), (np.zeros(3), 3)):
        with pytest.raises(InputError):
            SlotScores(scores, place)
    with pytest.raises(InputError):
        draws_together([])


@pytest.mark.parametrize(
    "changed",
    [{}, {"slots": 2}, {"releases": 0}, {"slots": 2, "releases": 3}],
)
def test_the_best_p_value_is_what_the_clearest_scores_give(changed: dict[str, object]) -> None:
    design = Design(candidates=30, **changed)  # type: ignore[arg-type]
    clear = np.tile(np.arange(30.0) ** 2, (3, 1))
    found = decide(design, [clear] * design.slots, [29] * design.slots)
    assert found.p_value == pytest.approx(best_p_value(design), rel=1e-6)


def test_what_looks_without_an_end_can_decide() -> None:
    assert best_p_value(Design(releases=0)) == 1 / 64
    assert best_p_value(Design(slots=2, releases=0)) < 0.05


def test_a_saturated_model_is_found_by_logits_and_not_by_nats() -> None:
    """The canary in 90 % of answers and more: log p hardly moves, and noise decides its mean."""
    rng = np.random.default_rng(21)
    found = {"nats": 0, "logit": 0}
    for _ in range(60):
        # Examples differ: in a few the canary is unlikely, and log p is noisy there alone.
        raised = rng.normal(3, 2.5, size=(12, 1)) + rng.normal(size=(12, 64))
        raised[:, 7] += 1.0
        nats = -np.logaddexp(0, -raised)
        for name in found:
            design = Design(candidates=64)
            finding = verdict.decide(design, [nats], [7], shares=name == "nats")
            found[name] += finding.verdict is ModelVerdict.KNOWN
    assert found["logit"] > found["nats"] + 5, found


def test_logits_are_those_of_stored_scores_and_bounded() -> None:
    nats = np.array([[-1e-9, 0.0, 2e-7, -0.1053605, -40.0]])
    top = math.log((1 - 1e-4) / 1e-4)
    assert logits(nats)[0, :3] == pytest.approx([top] * 3, rel=1e-3)
    assert logits(nats)[0, 3] == pytest.approx(math.log(0.9 / 0.1), rel=1e-4)
    assert logits(nats)[0, 4] == -40
    stored = np.array([float(f"{v:.6f}") for v in (-0.12345649, -3.33333351)])
    assert (logits(stored) == logits(np.array([-0.12345649, -3.33333351]))).all()
