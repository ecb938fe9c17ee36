"""The index's meter: its bound, its filter, its state, and what an attack reaches against it."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of, epsilon_at, mu_for, mu_of
from ragwitness.privacy.mechanism import mechanism_for
from ragwitness.privacy.odometer import Odometer, Terms

SCALE = 4096


def whole(vectors: np.ndarray) -> np.ndarray:
    """Unit vectors as whole numbers, no longer than SCALE."""
    return np.trunc(SCALE * vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(int)


def drawn(seed: int, count: int, dimension: int, kept: int | None = None) -> np.ndarray:
    """Queries over the first ``kept`` directions alone, so that few directions fill up."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    vectors[:, (kept or dimension) :] *= 0.05
    return whole(vectors)


def top(vectors: np.ndarray) -> float:
    scaled = vectors / SCALE
    return float(np.linalg.eigvalsh(scaled.T @ scaled)[-1])


def test_reading_is_the_largest_eigenvalue() -> None:
    queries = drawn(0, 300, 16)
    meter = Odometer(Terms(16, SCALE, 5.0, 100.0))
    meter.add(queries[:100])
    for query in queries[100:]:
        assert meter.charge(query)
    assert meter.queries == 300
    assert meter.mu() == pytest.approx(2 * math.sqrt(top(queries)) / 5, rel=1e-9)
    assert meter.epsilon(1e-6) == pytest.approx(epsilon_at(1e-6, meter.mu()))


def test_one_direction_costs_what_the_exact_account_says() -> None:
    query = np.array([SCALE, 0, 0])
    meter = Odometer(Terms(3, SCALE, 50.0, 1.0))
    assert sum(meter.charge(query) for _ in range(700)) == 624  # 2 sqrt(625) / 50 = 1
    assert meter.mu() == pytest.approx(mu_of(50.0, 624, 2.0), rel=1e-9)
    other = Odometer(Terms(3, SCALE, 50.0, 1.0, "add-remove"))
    assert sum(other.charge(query) for _ in range(2600)) == 2499
    assert meter.charge(np.array([0, SCALE, 0]))  # another direction has its own room


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 8]), st.sampled_from([0.0, 0.01]))
def test_filter_decides_as_eigenvalues_do(seed: int, kept: int, grid: float) -> None:
    queries = drawn(seed, 250, 8, kept)
    terms = Terms(8, SCALE, 4.0, 2.5, grid=grid)
    meter = Odometer(terms)
    taken: list[np.ndarray] = []
    for query in queries:
        would = terms.mu_of(top(np.array([*taken, query])), len(taken) + 1)
        accepted = meter.charge(query)
        if abs(would - terms.budget) > 1e-6:
            assert accepted == (would < terms.budget)
        if accepted:
            taken.append(query)
    assert len(taken) < 250
    assert meter.mu() <= terms.budget


def test_filter_stays_exact_over_thousands_of_queries() -> None:
    queries = drawn(3, 4000, 24)
    meter = Odometer(Terms(24, SCALE, 10.0, 2.2))
    taken = np.array([query for query in queries if meter.charge(query)])
    assert 1500 < len(taken) < 4000
    assert 2.199 < 2 * math.sqrt(top(taken)) / 10 <= 2.2
    refused = next(query for query in queries[::-1] if not meter.fits(query))
    assert 2 * math.sqrt(top(np.array([*taken, refused]))) / 10 > 2.2


def test_a_refused_query_costs_nothing_and_asking_costs_nothing() -> None:
    meter = Odometer(Terms(2, SCALE, 1.0, 3.0))
    assert meter.charge([SCALE, 0])
    assert meter.charge([SCALE, 0])
    before = meter.to_bytes()
    assert not meter.fits([SCALE, 0])
    assert not meter.charge([SCALE, 0])
    assert meter.fits([0, SCALE])
    assert meter.to_bytes() == before


def test_answers_that_were_given_anyway_are_counted_beyond_the_budget() -> None:
    meter = Odometer(Terms(2, SCALE, 1.0, 3.0))
    meter.add(np.tile([SCALE, 0], (9, 1)))
    assert meter.mu() == pytest.approx(6.0)
    assert not meter.fits([0, SCALE])


def test_state_survives_bytes_and_order() -> None:
    queries = drawn(1, 900, 12)
    terms = Terms(12, SCALE, 20.0, 50.0, "add-remove", (-0.5, 1.0), 0.001)
    one, other = Odometer(terms), Odometer(terms)
    one.add(queries)
    for query in queries[::-2]:
        other.charge(query)
    other.add(queries[::2][::-1])
    assert other.to_bytes() == one.to_bytes()
    again = Odometer.from_bytes(one.to_bytes())
    assert again.terms == terms
    assert (again.queries, again.mu()) == (900, one.mu())
    assert again.charge(queries[0]) == one.charge(queries[0])
    assert again.to_bytes() == one.to_bytes()


def test_a_meter_read_back_refuses_what_the_first_refused() -> None:
    meter = Odometer(Terms(2, SCALE, 1.0, 3.0))
    meter.add([[SCALE, 0], [SCALE, 0]])
    assert not Odometer.from_bytes(meter.to_bytes()).charge([SCALE, 0])


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-1],
        lambda b: b + b"\0",
        lambda b: b[5:],
        lambda b: b.replace(b'"queries": 2', b'"queries": 1'),
        lambda b: b[:-50] + bytes([b[-50] ^ 1]) + b[-49:],
        lambda _: b"",
        lambda _: b"ragwitness odometer 1\n[]\n",
    ],
)
def test_a_damaged_state_is_refused(damage) -> None:  # type: ignore[no-untyped-def]
    meter = Odometer(Terms(2, SCALE, 1.0, 3.0))
    meter.add([[SCALE, 0], [SCALE, 0]])
    with pytest.raises(InputError, match="state of a meter"):
        Odometer.from_bytes(damage(meter.to_bytes()))


def test_clipping_and_grid_bound_every_sequence_of_answers() -> None:
    rng = np.random.default_rng(11)
    grid, clip = 0.05, (-0.1, 0.4)
    for relation in ("replace", "add-remove"):
        terms = Terms(4, SCALE, 1.0, 1e3, relation, clip, grid)  # type: ignore[arg-type]
        for _ in range(200):
            queries = drawn(int(rng.integers(1 << 30)), int(rng.integers(1, 30)), 4, 2)
            pair = rng.normal(size=(2, 4))
            pair /= np.linalg.norm(pair, axis=1, keepdims=True)
            if relation == "add-remove":
                pair[1] = 0
            answers = np.clip(grid * np.floor(queries / SCALE @ pair.T / grid), *clip)
            moved = math.sqrt(float(((answers[:, 0] - answers[:, 1]) ** 2).sum()))
            assert moved <= terms.mu_of(top(queries), len(queries)) + 1e-9


def test_terms_of_the_integer_mechanism_cover_its_scores() -> None:
    mechanism = mechanism_for(8, 10, 3, 0.5, clip=(-0.25, 0.75))
    terms = Terms.of(mechanism, 2.0)
    step = (1 << mechanism.shift) / mechanism.scale**2
    assert terms.worst_mu(1) == pytest.approx(
        mechanism.sensitivity("replace") / mechanism.gaussian_sigma, rel=1e-12
    )
    assert terms.sigma == pytest.approx(0.5, rel=1e-3)
    assert terms.clip == pytest.approx((-0.25, 0.75), abs=step)
    added = Terms.of(mechanism, 2.0, "add-remove")
    assert added.worst_mu(1) == pytest.approx(
        mechanism.sensitivity("add-remove") / mechanism.gaussian_sigma, rel=1e-12
    )


def test_bound_holds_against_the_best_attack_and_is_below_the_worst_case() -> None:
    """Research, section 4.5: 200 queries in 16 dimensions, sigma 5; ours is another draw."""
    rng = np.random.default_rng(2)
    queries = drawn(2, 200, 16)
    meter = Odometer(Terms(16, SCALE, 5.0, 100.0))
    meter.add(queries)
    first, second = rng.normal(size=(2, 16))
    change = first / np.linalg.norm(first) - second / np.linalg.norm(second)
    shift = queries / SCALE @ change
    mu = float(np.linalg.norm(shift)) / 5
    assert mu < meter.mu() < mu_of(5.0, 200, 2.0)
    noise = rng.normal(0, 5, size=(2, 100_000, 8)).sum(axis=2)  # a projection: variance 8 * 25
    scores = noise / math.sqrt(8) / 5
    wins = np.mean(scores[0] + mu > scores[1])
    assert wins == pytest.approx(auc_of(mu), abs=0.006)


@pytest.mark.slow
def test_an_adaptive_coalition_gains_no_more_than_the_budget() -> None:
    """Each query leans towards where earlier answers lay; one run per coin, optimal test."""
    terms = Terms(6, SCALE, 3.0, 1.2)
    rng = np.random.default_rng(4)
    present, absent = np.eye(6)[0], -np.eye(6)[0]
    found: dict[bool, list[float]] = {True: [], False: []}
    for run in range(600):
        world = run % 2 == 0
        meter, ratio, lean = Odometer(terms), 0.0, np.zeros(6)
        for _ in range(40):
            query = whole(lean + 0.7 * rng.normal(size=6))
            if not meter.charge(query):
                break
            scores = [float(query / SCALE @ slot) for slot in (present, absent)]
            answer = scores[0 if world else 1] + rng.normal(0, 3)
            ratio += (answer - sum(scores) / 2) * (scores[0] - scores[1]) / 9
            lean += query / SCALE * answer / 10
        found[world].append(ratio)
    high, low = np.array(found[True]), np.array(found[False])
    auc = float(np.mean(high[:, None] > low[None, :]))
    assert 0.6 < auc <= auc_of(1.2) + 3 * math.sqrt(1 / 6 / 300)


@pytest.mark.slow
def test_honest_load_in_many_directions_is_cheap_and_a_coalition_shows() -> None:
    """Research, section 4.5: lambda 97 against a worst case of 30,000; 16 accounts read as 16.8."""
    rng = np.random.default_rng(0)
    meter = Odometer(Terms(384, SCALE, 1.0, 1e6))
    meter.add(whole(rng.normal(size=(30_000, 384))))
    honest = (meter.mu() / 2) ** 2
    assert honest == pytest.approx(97, abs=2)
    meter.add(np.tile(whole(rng.normal(size=384)), (1600, 1)))
    assert (meter.mu() / 2) ** 2 / 100 == pytest.approx(16.8, abs=0.15)


def test_a_charge_costs_far_less_than_a_scan() -> None:
    queries = drawn(5, 60, 384)
    documents = np.random.default_rng(1).normal(size=(10_000, 384)).astype(np.float32)
    meter = Odometer(Terms(384, SCALE, 100.0, mu_for(1.0, 1e-6)))
    charges, scans = [], []
    for query in queries:
        start = time.process_time()
        assert meter.charge(query)
        charges.append(time.process_time() - start)
        start = time.process_time()
        documents @ query.astype(np.float32)
        scans.append(time.process_time() - start)
    assert np.median(charges) < 3 * np.median(scans)  # of a tenth of 100,000 rows


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.charge([1, 2]), r"has 3 numbers, not shape \(2,\)"),
        (lambda m: m.charge([0.5, 0.5, 0.0]), "whole numbers here, not float64"),
        (lambda m: m.charge([math.nan, 0.0, 0.0]), "whole numbers here"),
        (lambda m: m.charge([SCALE, 1, 0]), "longer than its scale, 4096"),
        (lambda m: m.charge([1 << 62, 0, 0]), "longer than its scale"),
        (lambda m: m.charge([[1, 0, 0], [0, 1, 0]]), "not 2"),
        (lambda m: m.epsilon(0.0), "delta must be .* not 0"),
        (lambda _: Terms(0, SCALE, 1.0, 1.0), "dimension must be .* not 0"),
        (lambda _: Terms(3, 1 << 21, 1.0, 1.0), "scale must be at most"),
        (lambda _: Terms(3, SCALE, math.inf, 1.0), "sigma must be .* not inf"),
        (lambda _: Terms(3, SCALE, 1.0, -1.0), "budget must be .* not -1"),
        (lambda _: Terms(3, SCALE, 1.0, 1.0, "swap"), "'swap'"),
        (lambda _: Terms(3, SCALE, 1.0, 1.0, grid=-0.1), "grid must be .* not -0.1"),
    ],
)
def test_unusable_input_is_named_and_charges_nothing(call, said: str) -> None:  # type: ignore[no-untyped-def]
    meter = Odometer(Terms(3, SCALE, 1.0, 1.0))
    with pytest.raises(InputError, match=said):
        call(meter)
    assert meter.queries == 0
