"""The documents' meter: each text pays for its own scores, exactly, and is left out in time."""

import math

import numpy as np
import pytest

from ragwitness.errors import InputError
from ragwitness.privacy.odometer.documents import DocumentMeter, limit_of, mu_of_sum


def meter_of(limits: list[int], texts: str = "", free: int = 0) -> DocumentMeter:
    """Texts a, b, c, … with limits, one a slot unless said otherwise."""
    meter = DocumentMeter(free)
    meter.admit({chr(97 + at): limit for at, limit in enumerate(limits)})
    seats = texts or "".join(chr(97 + at) for at in range(len(limits)))
    meter.seat([at for at, one in enumerate(seats) if one != "-"], seats.replace("-", ""))
    return meter


@pytest.mark.parametrize("free", [0, 3])
def test_each_text_pays_for_its_own_distance_from_a_free_slot(free: int) -> None:
    rng = np.random.default_rng(0)
    seats = "abcdefg-" * 6  # every text in six slots, six slots free
    meter = meter_of([9_000] * 7, seats, free)
    kept = np.zeros((200, len(seats)))
    for answer in range(200):
        scores = rng.integers(-9, 10, len(seats))
        scores[7::8] = free
        before = meter.spent()
        answered = meter.charge(scores)
        kept[answer] = answered - free
        # By hand: all copies of a text take part, or none.
        for at, text in enumerate("abcdefg"):
            cost = int(((scores[at::8] - free) ** 2).sum())
            fits = before[text] + cost <= 9_000
            assert meter.spent()[text] == before[text] + cost * fits
            assert answered[at::8].tolist() == (scores[at::8].tolist() if fits else [free] * 6)
    assert (kept[:, 7::8] == 0).all()
    per_text = (kept**2).sum(axis=0).reshape(6, 8).sum(axis=0)[:7]
    assert [*meter.spent().values()] == per_text.astype(int).tolist()
    assert per_text.max() <= 9_000
    assert (kept[-20:].reshape(20, 6, 8)[:, :, :7] == 0).all(axis=1).mean() > 0.9  # nearly all left
    assert sum(meter.left().values()) == 7 * 9_000 - per_text.sum()


def test_a_text_is_left_out_before_its_budget_is_passed_and_others_go_on() -> None:
    meter = meter_of([100, 100, 100])
    assert meter.charge([6, 1, 0]).tolist() == [6, 1, 0]
    assert meter.charge([9, 1, 0]).tolist() == [0, 1, 0]
    assert meter.charge([8, 9, 11]).tolist() == [8, 9, 0]
    assert meter.spent() == {"a": 100, "b": 83, "c": 0}
    # The slot of a text that left keeps its number: nothing moves.
    meter.seat([0, 2], ["b", "a"])
    assert meter.charge([4, 7, 1]).tolist() == [4, 7, 0]


def test_a_limit_is_one_that_sums_of_squares_cannot_pass() -> None:
    meter = meter_of([limit_of(1.0, 7.0)])
    assert sum(bool(meter.charge([1])[0]) for _ in range(60)) == 48  # 49 would be 7^2 to a margin
    assert 48 / 49 < mu_of_sum(meter.spent()["a"], 7.0) ** 2 <= 1.0
    rng = np.random.default_rng(1)
    for mu, sigma in zip(rng.uniform(0.01, 9, 500), rng.uniform(1, 1e4, 500), strict=True):
        assert mu_of_sum(limit_of(mu, sigma), sigma) <= mu * (1 + 1e-15)
    assert limit_of(1e30, 1e6) < 1 << 62


@pytest.mark.slow
def test_individual_filter_against_the_best_test_of_one_document() -> None:
    """What the answers tell of one document is its own mu, however strong the others' scores."""
    rng = np.random.default_rng(3)
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for run in range(600):
        present = run % 2 == 0
        meter, ratio = meter_of([16, 16]), 0.0
        for _ in range(40):
            # The opponent asks by what he has seen so far: nearer where he thinks it is there.
            scores = rng.integers(0, 4, 2) + (ratio > 0)
            [score, _] = meter.charge(scores).tolist()
            answer = (score if present else 0) + rng.normal(0, 4)
            ratio += (answer - score / 2) * score / 16
        ratios[present].append(ratio)
    high, low = np.array(ratios[True]), np.array(ratios[False])
    auc = float(np.mean(high[:, None] > low[None, :]))
    assert 0.65 < auc <= 0.7603 + 3 * math.sqrt(1 / 6 / 300)  # Phi(1 / sqrt 2)


@pytest.mark.slow
def test_replacing_a_text_costs_twice_its_budget_and_no_more_on_any_path() -> None:
    """Two texts in one slot, each with its own filter: the distance of what they may answer."""
    rng = np.random.default_rng(5)
    most = 0.0
    for run in range(200):
        one, other = meter_of([400]), meter_of([400])
        squares = 0.0
        for step in range(400):
            # The worst case is among them: opposite texts, and one that lasts longer.
            score = int(rng.integers(-20, 21)) if run else 1 + step % 3
            against = -score if run % 2 == 0 else int(rng.integers(-20, 21))
            [first], [second] = one.charge([score]).tolist(), other.charge([against]).tolist()
            squares += (first - second) ** 2
        most = max(most, squares)
        assert squares <= 4 * 400
    assert most > 0.98 * 4 * 400  # half the budget a text is not too careful


def test_state_survives_bytes_and_what_was_settled_is_counted_once() -> None:
    meter = meter_of([50, 50], "ab-a", free=-2)
    meter.charge([1, -2, -2, 0])
    again = DocumentMeter.from_bytes(meter.to_bytes())
    again.seat([0, 1, 3], ["a", "b", "a"])
    assert (again.free, again.spent(), again.left()) == (-2, {"a": 13, "b": 0}, {"a": 37, "b": 50})
    assert again.settle() == {"a": 13}
    assert again.settle() == again.unsettled() == {}
    again.charge([-1, 0, -2, -2])
    kept = DocumentMeter.from_bytes(again.to_bytes())
    assert kept.settled() == {"a": 13, "b": 0}
    assert kept.settle() == {"a": 1, "b": 4}
    # A text that comes later, and one whose limit was raised, keep what they have spent.
    kept.admit({"c": 9, "a": 60})
    assert kept.left() == {"a": 46, "b": 46, "c": 9}
    for damaged in (b"", meter.to_bytes()[:-1], meter.to_bytes().replace(b" 2\n", b" 3\n")):
        with pytest.raises(InputError, match="state of a meter"):
            DocumentMeter.from_bytes(damaged)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.charge([1]), "more slots than 1"),
        (lambda m: m.charge([0.5, 1.0]), "not float64"),
        (lambda m: m.charge([[1, 2]]), r"shape \(1, 2\)"),
        (lambda _: limit_of(-1.0, 1.0), "mu must be .* not -1"),
        (lambda _: limit_of(1.0, -1.0), "sigma must be .* not -1"),
    ],
)
def test_unusable_input_is_named_and_charges_nothing(call, said: str) -> None:  # type: ignore[no-untyped-def]
    meter = meter_of([100, 100])
    with pytest.raises(InputError, match=said):
        call(meter)
    assert set(meter.spent().values()) == {0}


def test_a_score_beyond_64_bits_squared_is_left_out_and_not_wrapped_around() -> None:
    meter = meter_of([(1 << 62) - 1] * 2, "aab")
    assert meter.charge([1 << 31, 1 << 31, 1 << 31]).tolist() == [0, 0, 0]
    assert meter.charge([-(1 << 40), 5, 3]).tolist() == [0, 0, 3]
    assert meter.spent() == {"a": 0, "b": 9}
