"""Features of Eq. 3-5 and their treatment of censored and unread words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.core.types import Interval
from ragwitness.membership.methods.srag import counts
from ragwitness.membership.response_parsing.probabilities import UNREAD, log_odds


@given(st.lists(st.floats(0, 1), max_size=40), st.integers(1, 20))
def test_points_are_counted_as_equation_4_says(values: list[float], m: int) -> None:
    literal = np.zeros(m)
    for p in values:
        literal[min(math.floor(m * p) + 1, m) - 1] += 1
    assert counts([Interval(p, p) for p in values], m).tolist() == literal.tolist()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30), st.integers(1, 20))
def test_censored_words_keep_their_mass(pairs, m: int) -> None:
    intervals = [Interval(*sorted(pair)) for pair in pairs]
    read = [item for item in intervals if item != UNREAD]
    assert counts(intervals, m).sum() == pytest.approx(len(read))


def test_censored_word_is_spread_evenly() -> None:
    assert counts([Interval(0.0, 0.2)], 10)[:3] == pytest.approx([0.5, 0.5, 0.0])


def test_unread_words_are_not_evidence_of_absence() -> None:
    assert counts([UNREAD]).sum() == 0
    assert log_odds(UNREAD, 0.01) == 0.0
