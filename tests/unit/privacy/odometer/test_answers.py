"""The meter of answers: what fits, what is refused, and a state that comes back as it was."""

import math

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.odometer import AnswerMeter, AnswerTerms

ONE = np.zeros(8, np.int16)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100, 12_345, 10**9 + 7])
def test_a_square_root_gives_its_number_of_answers_back(most):
    assert AnswerTerms(8, math.sqrt(most)).most == most
    assert AnswerTerms(8, math.sqrt(math.sqrt(most) ** 2)).most == most  # as the database has it


def test_it_charges_what_fits_and_a_refusal_costs_nothing():
    meter = AnswerMeter(AnswerTerms(8, math.sqrt(3)))
    assert [meter.charge(ONE) for _ in range(5)] == [True, True, True, False, False]
    assert (meter.queries, meter.mu()) == (3, math.sqrt(3))
    meter.add(np.zeros((4, 8), np.int16))  # answered already, within the budget or not
    assert meter.queries == 7
    assert not meter.charge(ONE)


def test_its_state_comes_back_and_a_damaged_one_does_not():
    meter = AnswerMeter(AnswerTerms(8, math.sqrt(12)))
    meter.add(np.zeros((5, 8), np.int16))
    state = meter.to_bytes()
    again = AnswerMeter.from_bytes(state)
    assert (again.queries, again.terms) == (5, meter.terms)
    assert again.to_bytes() == state
    for place in range(len(state)):
        broken = bytearray(state)
        broken[place] ^= 1
        with pytest.raises(InputError, match="damaged"):
            AnswerMeter.from_bytes(bytes(broken))


def test_another_shape_is_refused():
    meter = AnswerMeter(AnswerTerms(8, 2.0))
    for wrong in (np.zeros(7), np.zeros((2, 8)), np.zeros((1, 1, 8))):
        with pytest.raises(InputError):
            meter.charge(wrong)
    with pytest.raises(InputError, match="budget"):
        AnswerTerms(8, 0.0)
