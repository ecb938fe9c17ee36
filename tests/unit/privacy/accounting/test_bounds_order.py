"""At equal delta: what an attack shows <= odometer <= exact <= paper, on every cell."""

import math

import numpy as np
import pytest

from ragwitness.privacy.bounds import classic_sigma, joint_budget
from ragwitness.privacy.gaussian import epsilon_at, moments_epsilon, mu_of, renyi_epsilon, sigma_for
from ragwitness.privacy.odometer import Odometer, Terms
from research.lower_bounds import epsilon_clopper_pearson, epsilon_one_run

DELTA, SCALE, DIMENSION = 1e-6, 1024, 16


@pytest.mark.parametrize("rule", [classic_sigma, sigma_for])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_bounds_are_in_order(rule, epsilon: float) -> None:  # type: ignore[no-untyped-def]
    queries, rng = 50, np.random.default_rng(0)
    sigma = rule(epsilon, DELTA, queries, 2.0)
    for accounts in (1, 4, 16, 64):
        count = accounts * queries
        joint = joint_budget(epsilon, DELTA, queries, accounts)
        mu = mu_of(sigma, count, 2.0)
        exact = epsilon_at(joint.delta, mu)
        vectors = rng.normal(size=(count, DIMENSION))
        vectors[: count // 2, 0] += 3  # half of the load leans one way
        vectors *= SCALE / np.linalg.norm(vectors, axis=1, keepdims=True)
        rows = np.trunc(vectors).astype(int)
        meter = Odometer(Terms(DIMENSION, SCALE, sigma, 1e9))
        meter.add(rows)
        axis = np.linalg.eigh(rows.T @ rows)[1][:, -1]
        moved = float(np.linalg.norm(rows / SCALE @ (2 * axis))) / sigma  # d' = -d, the worst pair
        inside, outside = rng.normal(moved, 1, 4000), rng.normal(0, 1, 4000)
        shown = epsilon_clopper_pearson(inside, outside, joint.delta, confidence=0.999).value
        odometer = meter.epsilon(joint.delta)
        assert shown <= odometer <= exact
        assert odometer == pytest.approx(epsilon_at(joint.delta, moved), rel=1e-6)
        assert exact <= moments_epsilon(mu, joint.delta) <= renyi_epsilon(mu, joint.delta) * 1.0001
        assert exact <= joint.epsilon


def test_one_run_with_canaries_in_one_index_stays_below_the_meter() -> None:
    """Coins decide which slots are filled; every slot answers every query, noise of its own."""
    rng = np.random.default_rng(1)
    canaries, count, sigma = 80, 400, 0.8
    slots = np.linalg.qr(rng.normal(size=(canaries, canaries)))[0]
    rows = np.trunc(slots[rng.integers(0, canaries, count)] * SCALE).astype(int)
    rows = np.concatenate([rows, np.tile(rows[:1], (64, 1))])
    meter = Odometer(Terms(canaries, SCALE, sigma, 1e9, "add-remove"))
    meter.add(rows)
    planted = rng.random(canaries) < 0.5
    scores = rows / SCALE @ slots.T
    answers = scores * planted + rng.normal(0, sigma, scores.shape)
    ratio = ((answers - scores / 2) * scores).sum(axis=0)
    called = np.argsort(-np.abs(scores).sum(axis=0))[:40]
    right = int(((ratio[called] > 0) == planted[called]).sum())
    # Thm. 5.2 adds at most 2 m delta = 1.6e-4 to the p-value; the rest of an error of .001 is ours.
    found = epsilon_one_run(right, 40, confidence=1 - (0.001 - 2 * canaries * DELTA))
    assert 1 < found.value <= meter.epsilon(DELTA)
    assert meter.mu() >= math.sqrt(64) / sigma * 0.99
