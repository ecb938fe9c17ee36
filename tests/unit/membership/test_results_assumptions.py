"""What so many documents can decide, in words that agree with the procedure itself."""

from __future__ import annotations

import numpy as np
import pytest

from ragwitness.membership.results.assumptions import SetLikeness, VerdictPower, VerdictReach
from ragwitness.stats.p_values import benjamini_hochberg


@pytest.mark.parametrize(
    ("documents", "known", "together", "hardly", "says"),
    [
        (20, 20, 20, True, "no single document can be called in at alpha 0.05"),
        (40, 20, 39, True, "(smallest p-value 0.0476, needed 0.00125)"),
        (16, 19, 16, True, "only 16 or more together; some 8 are expected inside"),
        (80, 100, 16, False, "only 16 or more together."),
        (1, 19, 1, False, "a single document can be called in"),
        (1, 18, None, True, "no document can be called in"),
        (30, 5, None, True, "it takes at least 19 known-out documents"),
    ],
)
def test_the_reviewers_audits_that_could_never_say_in(documents, known, together, hardly, says):
    found = VerdictReach(0.05, documents, known)
    assert (found.together, found.hardly) == (together, hardly)
    assert says in found.told
    # The oracle: so many documents at the least p-value, the others at 1.
    for count in range(1, documents + 1):
        p = np.array([1 / (known + 1)] * count + [1.0] * (documents - count))
        called = bool((benjamini_hochberg(p) <= 0.05).any())
        assert called == (together is not None and count >= together)


def test_too_few_documents_to_compare_are_not_called_alike() -> None:
    assert "cannot be tested" in SetLikeness(1, 20, 0.5, 1 / 21).told
    assert "do not tell them apart at 1%" in SetLikeness(40, 100, 0.5, 0.004).told
    assert not SetLikeness(40, 100, 0.011, 0.004).unlike
    assert SetLikeness(40, 100, 0.01, 0.004, 0.99, ("they are 4.0 times as long",)).unlike


def test_the_least_p_values_are_told_with_equal_scores() -> None:
    assert VerdictPower(40, 100, 1 / 101, 12).told == (
        "With 100 calibration documents no p-value is below 0.010, or 0.13 for a score that only"
        " equals the highest of theirs, which 12 share."
    )
    assert "which 1" not in VerdictPower(1, 100, 1 / 101, 1).told
    assert "no document in question could be scored" in VerdictPower(0, 9, 0.1, 1).told
    assert "no calibration document could be scored" in VerdictPower(5, 0, 1.0, 0).told
    assert "whatever a document scored" in VerdictPower(5, 9, 0.1, 1, withheld=True).told


@pytest.mark.parametrize(
    ("inside", "documents", "says"),
    [
        (0, 40, "documents that are inside this very system. Give some (--known-in)."),
        (9, 40, "that takes at least 19. Give more (--known-in)"),
        (19, 1, "a single document can be said to show no sign"),
        (100, 40, "8 or more together can be said to show no sign"),
        (100, 0, ""),
    ],
)
def test_whether_out_can_be_said_and_what_it_takes(inside, documents, says):
    found = VerdictPower(documents, 100, 1 / 101, 1, ranked_out=inside)
    assert says in found.told_out
    # The oracle: so many documents below every one inside.
    if inside and documents:
        q = benjamini_hochberg(np.full(documents, 1 / (inside + 1)))
        assert bool((q <= 0.05).any()) == ("No document" not in found.told_out)
