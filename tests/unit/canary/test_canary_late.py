"""Late slots: a memory is told from training by early triggers that stand above late ones."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from experiments.canary.memories import (
    audit,
    chat_history,
    index_of_votes,
    nightly_index,
    training,
    training_beside_memory,
)
from ragwitness.canary.draw import Design
from ragwitness.canary.power import NEEDED, late_power, refuse_weak_late
from ragwitness.canary.rank_test import SlotScores, divisions, early_above_late, standing
from ragwitness.canary.verdict import ModelVerdict
from ragwitness.core.errors import InputError


def _slots(rng: np.random.Generator, count: int, kind: int) -> list[SlotScores]:
    scores = rng.normal(size=(count, 12)) if kind else rng.integers(0, 3, size=(count, 12)) / 7
    return [SlotScores(row, int(rng.integers(12))) for row in scores]


@pytest.mark.parametrize(("early", "late"), [(1, 1), (3, 3), (4, 2), (2, 5), (6, 6)])
@pytest.mark.parametrize("kind", [0, 1])
def test_the_p_value_is_that_of_all_divisions_written_out(early: int, late: int, kind: int) -> None:
    rng = np.random.default_rng(early + 10 * late + 100 * kind)
    slots = _slots(rng, early + late, kind)
    places = [float(standing(slot.scores)[slot.chosen]) for slot in slots]
    true = sum(places[:early]) / early - sum(places[early:]) / late
    as_high = total = 0
    for chosen in itertools.combinations(range(early + late), early):
        inside = [places[n] for n in chosen]
        outside = [places[n] for n in range(early + late) if n not in chosen]
        total += 1
        as_high += sum(inside) / early - sum(outside) / late >= true - 1e-9
    assert total == math.comb(early + late, early)
    assert early_above_late(slots[:early], slots[early:]) == pytest.approx(as_high / total)


def test_slots_that_all_stand_alike_give_one() -> None:
    slots = [SlotScores(np.arange(5.0), 4) for _ in range(6)]
    assert early_above_late(slots[:3], slots[3:]) == 1.0


def test_too_many_divisions_are_drawn_with_the_true_one_first() -> None:
    drawn = divisions(10, 10, seed=3, draws=99)
    assert drawn.shape == (100, 20)
    assert (drawn.sum(axis=1) == 10).all()
    assert drawn[0].tolist() == [True] * 10 + [False] * 10
    assert divisions(3, 2).shape == (10, 5)
    assert divisions(3, 2)[0].tolist() == [True] * 3 + [False] * 2


@pytest.mark.parametrize("count", [6, 16])
def test_the_test_between_slots_keeps_its_level(count: int) -> None:
    rng = np.random.default_rng(count)
    hits = 0
    for number in range(600):
        slots = _slots(rng, count, number % 2)
        hits += early_above_late(slots[: count // 2], slots[count // 2 :], seed=number) <= 0.05
    assert hits <= binom.ppf(0.999, 600, 0.05)


def _verdicts(service: object, lead: float, audits: int) -> Counter[ModelVerdict]:
    rng = np.random.default_rng(5)
    return Counter(audit(rng, 6, 6, service, lead)[0] for _ in range(audits))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("service", [chat_history, nightly_index, index_of_votes])
@pytest.mark.parametrize("lead", [0.0, 1.5, 2.5])
def test_a_service_that_only_remembers_is_not_called_trained(service: object, lead: float) -> None:
    verdicts = _verdicts(service, lead, 400)
    assert verdicts[ModelVerdict.TRAINED] <= binom.ppf(0.999, 400, 0.05)
    if lead == 2.5:  # its knowledge is shown, and named
        assert verdicts[ModelVerdict.KNOWN] >= 360


def test_a_nightly_index_was_called_trained_by_one_weak_late_slot() -> None:
    """The rule that was: late slots that are not significant (`--slots 3 --late 1`)."""
    rng = np.random.default_rng(6)
    audits = [audit(rng, 3, 1, nightly_index, 1.5) for _ in range(60)]
    assert sum(former for _, former in audits) >= 20
    assert not any(verdict is ModelVerdict.TRAINED for verdict, _ in audits)


@pytest.mark.slow
def test_the_power_of_late_slots_is_told_as_it_is() -> None:
    told = late_power(6, 6, 40, 0.05)
    seen = _verdicts(training, 1.5, 400)[ModelVerdict.TRAINED]
    assert binom.ppf(0.001, 400, told - 0.03) <= seen <= binom.ppf(0.999, 400, told + 0.03)
    # A provider that trains and remembers as well is not acquitted.
    beside = _verdicts(training_beside_memory, 1.5, 60)
    assert beside[ModelVerdict.INCONCLUSIVE] == 0


@pytest.mark.slow
def test_too_few_late_slots_are_refused_with_the_number_that_is_needed() -> None:
    def refusal(slots: int, late: int, **settled: object) -> str:
        with pytest.raises(InputError) as stop:
            refuse_weak_late(Design(slots=slots + late, late=late, **settled))  # type: ignore[arg-type]
        return f"{stop.value.message} {stop.value.hint}"

    said = refusal(6, 1)
    assert "1 late beside 6 early slots would call 0% of the providers `trained`" in said
    assert "Plan --slots 6 --late 5" in said
    assert late_power(6, 5, 128, 0.05) >= NEEDED > late_power(6, 4, 128, 0.05)
    assert "Plan --slots 6 --late 6" in refusal(3, 3)  # no number is enough beside three
    assert "No number of late slots is enough" in refusal(1, 1, alpha="0.0001")
    refuse_weak_late(Design(slots=11, late=5))
    refuse_weak_late(Design())  # without late slots the word is not available
