"""Cells that a service refused, and slots that no training can have seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.canary.draw import Design
from ragwitness.canary.verdict import ModelVerdict, decide, filled
from ragwitness.core.errors import InputError


def test_missing_cells_are_what_their_example_and_candidate_lead_to_expect() -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(6, 1)), rng.normal(size=(1, 9))
    whole = rows + columns
    holed = np.where(rng.random(whole.shape) < 0.3, np.nan, whole)
    assert np.allclose(filled(holed), whole, atol=1e-6)
    assert filled(whole) is whole  # nothing is touched where nothing is missing
    # By least squares, written out: the same means.
    noisy = np.where(np.isnan(holed), np.nan, whole + 0.1 * rng.normal(size=whole.shape))
    at = [(i, j) for i, j in np.ndindex(noisy.shape) if not np.isnan(noisy[i, j])]
    design = np.zeros((len(at), 15))
    for n, (i, j) in enumerate(at):
        design[n, i] = design[n, 6 + j] = 1
    fit = np.linalg.lstsq(design, np.array([noisy[one] for one in at]), rcond=None)[0]
    expected = fit[6:] + fit[:6].mean()
    assert np.allclose(filled(noisy).mean(axis=0), expected, atol=1e-6)


def test_an_example_that_was_always_refused_has_the_candidates_of_the_others() -> None:
    rng = np.random.default_rng(3)
    whole = rng.normal(size=(4, 1)) + rng.normal(size=(1, 9))
    holed = np.where(np.arange(4)[:, None] == 2, np.nan, whole)
    assert np.allclose(np.diff(filled(holed)), np.diff(whole), atol=1e-6)


def test_a_candidate_that_was_always_refused_stands_last() -> None:
    scores = np.random.default_rng(1).normal(size=(4, 20)) - 5
    scores[:, 7] = np.nan
    found = decide(Design(candidates=20), [scores], [7])
    assert found.ranks == (20,)
    equal = filled(np.array([[-2.0, -2.0, np.nan], [-3.0, -3.0, np.nan]]))
    assert (equal[:, 2] < equal[:, :2].min(axis=1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_a_filter_leaves_the_test_exact(share: float) -> None:
    """A model with likes of its own and a filter with dislikes of its own; t* is drawn anew."""
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(600):
        likes, disliked = rng.normal(size=20), rng.random(20) * 2 * share
        scores = likes + 0.5 * rng.normal(size=(5, 20)) + rng.normal(size=(5, 1)) - 6
        scores[rng.random(scores.shape) < disliked] = np.nan
        chosen = int(rng.integers(20))
        verdict = decide(Design(candidates=20), [scores], [chosen]).verdict
        false += verdict is ModelVerdict.KNOWN
    assert binom.ppf(0.001, 600, 0.05) <= false <= binom.ppf(0.999, 600, 0.05)


def test_what_late_slots_show_too_is_a_memory_and_no_training() -> None:
    design = Design(candidates=20, slots=8, late=4)
    rng = np.random.default_rng(3)

    def shown(*lifted: int) -> tuple[ModelVerdict, str]:
        scores = [rng.normal(size=(4, 20)) * 0.1 - 6 for _ in range(8)]
        for slot in lifted:
            scores[slot][:, 5] += 4
        found = decide(design, scores, [5] * 8)
        assert len(found.ranks) == 4  # the early ones alone
        return found.verdict, found.reason

    assert shown(0, 1, 2, 3) == (ModelVerdict.TRAINED, "")
    verdict, reason = shown(*range(8))
    assert verdict is ModelVerdict.KNOWN
    assert "the service remembers what it was sent" in reason
    assert shown(4, 5)[0] is ModelVerdict.INCONCLUSIVE
    # Early ones stand out, one late one does as well: not significant, and not ruled out either.
    verdict, reason = shown(0, 1, 4)
    assert verdict is ModelVerdict.KNOWN
    assert "late" in reason


@pytest.mark.parametrize(
    ("settled", "verdict"),
    [
        ({}, ModelVerdict.KNOWN),
        ({"releases": 3}, ModelVerdict.KNOWN),
        ({"slots": 3, "late": 1}, ModelVerdict.KNOWN),  # one late slot could not show a memory
        ({"slots": 6, "late": 3}, ModelVerdict.TRAINED),
    ],
)
def test_without_late_slots_nobody_is_called_trained(
    settled: dict[str, object], verdict: ModelVerdict
) -> None:
    design = Design(candidates=80, **settled)  # type: ignore[arg-type]
    slots = [np.random.default_rng(4).normal(size=(4, 80)) * 0.1 - 6 for _ in range(design.slots)]
    for scores in slots[: max(1, design.slots - design.late)]:
        scores[:, 5] += 4
    found = decide(design, slots, [5] * design.slots)
    assert found.verdict is verdict
    assert bool(found.reason) == (verdict is ModelVerdict.KNOWN)


@pytest.mark.parametrize(
    "changed",
    [{"late": 1}, {"slots": 2, "late": 2}, {"slots": 3, "late": 1, "releases": 2}, {"spares": -1},
     {"refresh": -1},
     {"form": "letters"}, {"form": "one", "template": "{context}"},
     {"form": "one", "temperature": "warm"}],
)  # fmt: skip
def test_a_design_that_cannot_be_kept_to_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Design(candidates=20, **changed)  # type: ignore[arg-type]
