"""Which classes of documents were used: triggers apart, exact p-values, one level over all classes.

The opponents: a provider who uses one class and not the other, one who uses none, and 2,000 draws.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.canary import verdict
from ragwitness.canary.draw import Design, DrawSecret, draw_slots
from ragwitness.canary.examples import Example, examples_digest
from ragwitness.canary.folder import make_plan
from ragwitness.canary.verdict import decide
from ragwitness.core.errors import InputError

SECRET = DrawSecret(bytes(range(32)), bytes(32))
CLASSES = ("uploads", "corpus", "web")


def _examples(n: int = 60, classes: tuple[str, ...] = CLASSES) -> list[Example]:
    return [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b",
                kind=classes[i % len(classes)])
        for i in range(n)
    ]  # fmt: skip


def test_a_class_has_triggers_of_its_own_and_no_other_class_carries_them() -> None:
    design = Design(candidates=8, slots=6, classes=CLASSES, triggers="code")
    plan = make_plan(_examples(120), design, SECRET)
    known = {one.id: one.kind for pool in plan.pools.values() for one in pool}
    traces = plan.traces()
    assert {(design.class_of(one.slot), known[one.id]) for one in traces} == {
        (name, name) for name in CLASSES
    }
    assert {one.slot for one in traces} == set(range(6))
    changed = dataclasses.replace(_examples(1)[0], kind="web")
    assert examples_digest([changed]) != examples_digest(_examples(1))
    plain = dataclasses.replace(changed, kind="")
    assert examples_digest([plain]) == (
        "24a958afded72a30bd8b1daba2293f4bb0f96a708b8a4cd188989f471e9d2e01"
    )


def test_one_class_used_is_named_and_the_others_are_not() -> None:
    rng = np.random.default_rng(3)
    design = Design(candidates=100, slots=3, classes=CLASSES)
    matrices = [rng.normal(-9, 1, size=(6, 100)) for _ in range(3)]
    matrices[1][:, 4] += 5
    found = decide(design, matrices, [4] * 3, [True] * 3)
    assert [(one.name, one.used) for one in found.classes] == [
        ("uploads", False), ("corpus", True), ("web", False)
    ]  # fmt: skip
    assert found.classes[1].p_value == pytest.approx(3 / 100)
    assert found.classes[1].ranks == (1,)
    # A second look names nothing: one was announced.
    again = decide(design, matrices, [4] * 3, [True] * 3, earlier=[found.seen])
    assert again.classes == ()


@pytest.mark.slow
@pytest.mark.parametrize("used", [0, 2])
def test_a_class_that_was_not_used_is_named_in_at_most_alpha_of_audits(
    used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "_forecast", lambda finding, *_: finding)
    monkeypatch.setattr(verdict, "epsilon_floor", lambda slots: None)
    design = Design(candidates=60, slots=3, classes=CLASSES)
    rng = np.random.default_rng(used)
    wrong, right, draws = 0, 0, 2000
    base = rng.normal(-9, 1, size=(1, 60))
    for _ in range(draws):
        chosen = rng.integers(60, size=3).tolist()
        # Classes hang together: the same base likes the same candidates.
        matrices = [base + 0.3 * rng.normal(size=(1, 60)) for _ in range(3)]
        for at in range(used):
            matrices[at][:, chosen[at]] += 6
        found = decide(design, matrices, chosen, [True] * 3)
        wrong += any(one.used for one in found.classes[used:])
        right += all(one.used for one in found.classes[:used])
    assert wrong <= binom.ppf(0.9999, draws, 0.05)
    assert not used or right > 0.9 * draws


@pytest.mark.parametrize(
    "changed",
    [{"slots": 4}, {"slots": 6, "half": True}, {"classes": ("a", "a", "b")}, {"name": "paper"}],
)
def test_classes_that_cannot_be_told_apart_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InputError, match="classes of documents"):
        Design(**{"slots": 3, "classes": CLASSES} | changed)  # type: ignore[arg-type]


def test_a_document_of_another_class_and_a_class_with_too_few_are_refused() -> None:
    design = Design(candidates=8, slots=2, classes=("uploads", "corpus"), triggers="code")
    with pytest.raises(InputError, match="of the class 'web', which the plan does not have"):
        make_plan(_examples(), design, SECRET).traces()
    few = [one for n, one in enumerate(_examples(40, ("uploads", "corpus")))
           if one.kind == "uploads" or n < 2]  # fmt: skip
    with pytest.raises(InputError, match="gets too few traces"):
        make_plan(few, design, SECRET).traces()


def test_old_designs_have_no_classes() -> None:
    former = Design(**Design.former)  # type: ignore[arg-type]
    assert former.classes == ()
    assert former.class_of(0) == ""
    assert draw_slots(former, SECRET).slots[0].candidates[0].startswith("prefix_")
