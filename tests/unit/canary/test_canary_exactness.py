"""2,000 draws under the null, from the secret to the verdict, by every design and at any model.

The models are not those of other tests: they are chosen by a provider who knows all candidates and
canaries but not the draw, and who wants to be accused, or to spoil the numbers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.canary.draw import Design, Draw, DrawSecret, draw_slots
from ragwitness.canary.rank_test import Seen
from ragwitness.canary.verdict import Finding, decide

DRAWS = 2000
Model = Callable[[Draw, np.random.Generator], list[np.ndarray]]


def _by_name(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """Likes candidates by their letters, the same ones in every audit."""
    del rng
    return [
        np.array([[float(t[7] < "h"), -len(set(t))] for t in s.candidates]).T for s in draw.slots
    ]


def _by_place(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """Answers the first questions better, as a server that tires does."""
    m = len(draw.slots[0].candidates)
    return [np.linspace(0, -9, m) + rng.normal(size=(3, m)) / 10 for _ in draw.slots]


def _steps(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """Few levels and shared by all slots: ties within 1e-9, and slots that hang together."""
    m = len(draw.slots[0].candidates)
    same = rng.integers(0, 3, size=(2, m)) / 20 + rng.normal(size=(2, m)) * 1e-11
    return [same for _ in draw.slots]


def _one_hit(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """All in one candidate: what a joint statistic is most easily fooled by."""
    m = len(draw.slots[0].candidates)
    found = []
    for _ in draw.slots:
        scores = np.zeros((1, m))
        scores[0, rng.integers(m)] = 1e6
        found.append(scores)
    return found


MODELS: dict[str, Model] = {
    "by name": _by_name, "by place": _by_place, "steps": _steps, "one hit": _one_hit,
}  # fmt: skip
DESIGNS = {
    "rank": Design(candidates=30),
    "joint": Design(candidates=10, slots=3),
    "calls": Design(candidates=30, slots=2, releases=0),
}


@functools.cache
def _draw(design: Design, number: int) -> Draw:
    return draw_slots(design, DrawSecret(number.to_bytes(32, "big"), bytes(32)))


def _any(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """One of them, by chance."""
    return list(MODELS.values())[rng.integers(len(MODELS))](draw, rng)


def _audit(design: Design, model: Model, number: int, looks: int = 1) -> list[Finding]:
    """What one auditor is told, look after look at ever new scores of one draw."""
    rng = np.random.default_rng([7, number])
    draw = _draw(design, number)
    chosen = [one.chosen for one in draw.slots]
    found: list[Finding] = []
    earlier: list[Seen] = []
    for _ in range(looks):
        # Log-probabilities whose logits are what the model is to show.
        scores = [-np.logaddexp(0, -one) for one in model(draw, rng)]
        found.append(decide(design, scores, chosen, earlier=earlier, seed=number))
        earlier.append(found[-1].seen)
    return found


def _assert_rarely_called_trained(design: Design, model: Model) -> None:
    found = [_audit(design, model, number)[0] for number in range(DRAWS)]
    for level in (0.01, 0.05, 0.1, 0.3):
        hits = sum(one.p_value <= level for one in found)
        # Exceeded by chance in one of 10,000 such comparisons; there are 80.
        assert hits <= binom.ppf(0.9999, DRAWS, level), level
    accused = sum(one.verdict != "inconclusive" for one in found)
    assert accused == sum(one.p_value <= 0.05 for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_model_that_does_not_know_the_draw_is_rarely_called_trained(kind: str) -> None:
    _assert_rarely_called_trained(DESIGNS[kind], _any)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_no_single_model_is_called_trained_more_often(kind: str, model: str) -> None:
    _assert_rarely_called_trained(DESIGNS[kind], MODELS[model])


LOOKED = {
    "one look": Design(candidates=10, slots=3),  # a switch of tests would err more
    "three looks": Design(candidates=10, slots=3, releases=3),
    "any number": Design(candidates=10, slots=3, releases=0),
    "one slot, two looks": Design(candidates=40, releases=2),
    "one slot, three looks": Design(candidates=128, releases=3),
    "one slot, any number": Design(candidates=128, releases=0),
}


def _drifting(draw: Draw, rng: np.random.Generator) -> list[np.ndarray]:
    """Most looks are alike, as releases of one model are; now and then one candidate leaps."""
    m = len(draw.slots[0].candidates)
    found = []
    for number, _ in enumerate(draw.slots):
        base = np.random.default_rng([m, number]).normal(size=(1, m))
        scores = base + 0.3 * rng.normal(size=(1, m))
        scores[0, rng.integers(m)] += 8.0 * (rng.random() < 0.3)
        found.append(scores)
    return found


@pytest.mark.long
@pytest.mark.parametrize("model", [_by_name, _drifting, _steps])
@pytest.mark.parametrize("kind", LOOKED)
def test_whoever_looks_until_it_suits_is_told_trained_in_at_most_alpha_of_audits(
    kind: str, model: Model
) -> None:
    """8 looks where their number is open, and one more than announced where it is not."""
    design = LOOKED[kind]
    looks = design.releases + 1 if design.releases else 8

    def least(number: int) -> list[float]:
        return list(
            np.minimum.accumulate([o.p_value for o in _audit(design, model, number, looks)])
        )

    by_look = np.array([least(number) for number in range(DRAWS)])
    for upto in range(looks):
        for level in (0.01, 0.05, 0.1, 0.3):
            hits = int((by_look[:, upto] <= level).sum())
            # There are some 700 such comparisons, and each is exceeded by chance once in 100,000.
            assert hits <= binom.ppf(1 - 1e-5, DRAWS, level), (upto + 1, level)


def test_the_level_is_that_of_the_design() -> None:
    found = _audit(dataclasses.replace(DESIGNS["rank"], alpha="1/30"), _by_place, 4)
    assert found[0].alpha == pytest.approx(1 / 30)
