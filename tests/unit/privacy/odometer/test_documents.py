"""The documents' meter: each pays for its own scores, exactly, and is left out in time."""

import math

import numpy as np
import pytest

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.privacy.odometer.documents import DocumentMeter


def test_each_document_pays_for_its_own_scores() -> None:
    rng = np.random.default_rng(0)
    meter = DocumentMeter(50, 40.0, 1.5)
    kept = np.zeros((200, 50))
    for answer in range(200):
        scores = rng.integers(-9, 10, 50)
        scores[0] = 0  # a free slot
        taking_part = meter.charge(scores)
        kept[answer] = np.where(taking_part, scores, 0)
        assert taking_part[0]
    paid = np.sqrt((kept**2).sum(axis=0))
    assert meter.mu() == pytest.approx(paid / 40, rel=1e-9)
    assert meter.mu().max() <= 1.5
    assert meter.mu()[0] == 0
    assert np.any(kept[-50:] == 0)
    assert meter.largest_epsilon(1e-6) == pytest.approx(epsilon_at(1e-6, meter.mu().max()))


def test_a_document_is_left_out_before_its_budget_is_passed_and_others_go_on() -> None:
    meter = DocumentMeter(3, 10.0, 1.0)  # 100 in squares
    assert meter.charge([6, 1, 0]).tolist() == [True, True, True]
    assert meter.fits([9, 1, 0]).tolist() == [False, True, True]
    assert meter.charge([9, 1, 0]).tolist() == [False, True, True]
    assert meter.spent.tolist() == [36, 2, 0]
    assert meter.charge([7, 9, 11]).tolist() == [True, True, False]
    assert (meter.mu() <= 1.0).all()


def test_budget_is_one_that_sums_of_squares_cannot_pass() -> None:
    meter = DocumentMeter(1, 7.0, 1.0)
    assert sum(bool(meter.charge([1])[0]) for _ in range(60)) == 48  # 49 would be 7^2 to a margin
    assert float(meter.mu()[0]) <= 1.0


def test_individual_filter_against_the_best_test_of_one_document() -> None:
    """What the answers tell of one document is its own mu, however strong the others' scores."""
    rng = np.random.default_rng(3)
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for run in range(600):
        present = run % 2 == 0
        meter, ratio = DocumentMeter(2, 4.0, 1.0), 0.0
        while True:
            scores = rng.integers(0, 4, 2)
            taking_part = meter.charge(scores)
            if not taking_part[0]:
                break
            answer = (scores[0] if present else 0) + rng.normal(0, 4)
            ratio += (answer - scores[0] / 2) * scores[0] / 16
        ratios[present].append(ratio)
    high, low = np.array(ratios[True]), np.array(ratios[False])
    auc = float(np.mean(high[:, None] > low[None, :]))
    assert 0.65 < auc <= 0.7603 + 3 * math.sqrt(1 / 6 / 300)  # Phi(1 / sqrt 2)


def test_state_survives_bytes_and_merging() -> None:
    left, right = DocumentMeter(4, 10.0, 2.0), DocumentMeter(4, 10.0, 2.0)
    left.charge([1, -2, 3, 0])
    right.charge([4, 0, 0, 5])
    both = left.merged(right)
    assert both.spent.tolist() == [17, 4, 9, 25]
    again = DocumentMeter.from_bytes(both.to_bytes())
    assert again.to_bytes() == both.to_bytes()
    assert (again.sigma, again.budget) == (10.0, 2.0)
    for damaged in (
        b"",
        both.to_bytes()[:-1],
        both.to_bytes().replace(b" documents", b" dokuments"),
    ):
        with pytest.raises(InputError, match="state of a meter"):
            DocumentMeter.from_bytes(damaged)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.charge([1, 2, 3]), r"2 whole numbers, not int64 of shape \(3,\)"),
        (lambda m: m.charge([0.5, 1.0]), "not float64"),
        (lambda m: m.charge([-(1 << 63), 0]), "beyond 64 bits"),
        (lambda m: m.merged(DocumentMeter(2, 1.0, 2.0)), "different terms"),
        (lambda _: DocumentMeter(0, 1.0, 1.0), "slots must be .* not 0"),
        (lambda _: DocumentMeter(2, -1.0, 1.0), "sigma must be .* not -1"),
        (lambda _: DocumentMeter(2, 1e6, 1e6), "beyond 64 bits"),
    ],
)
def test_unusable_input_is_named_and_charges_nothing(call, said: str) -> None:  # type: ignore[no-untyped-def]
    meter = DocumentMeter(2, 10.0, 1.0)
    with pytest.raises(InputError, match=said):
        call(meter)
    assert not meter.spent.any()
