"""Many products checked as one: all true, or the first false one by name."""

import pytest

from ragwitness.crypto.proofs import opening as equations
from ragwitness.crypto.proofs.curve import Term, msm, product_holds
from ragwitness.crypto.proofs.opening import Equation, first_false, weighted
from ragwitness.crypto.proofs.points import G1_GENERATOR, G2_GENERATOR

pytestmark = pytest.mark.usefixtures("arithmetic")


def _equation(chunk, off=0):
    """e(6 G, H) e(-2 · 3G, H) = 1, or not."""
    three = msm([G1_GENERATOR], [3])
    terms = [Term(6 + off, G1_GENERATOR, G2_GENERATOR), Term(-2, three, G2_GENERATOR)]
    return Equation("a.check", 7, chunk, terms)


def test_true_equations_hold_together():
    assert first_false([]) is None
    assert first_false([_equation(chunk) for chunk in range(4)]) is None


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_the_first_false_one_is_named(wrong):
    made = [_equation(chunk, off=int(chunk >= wrong)) for chunk in range(4)]
    found = first_false(made)
    assert found is made[wrong]
    assert (found.check, found.place, found.chunk) == ("a.check", 7, wrong)


def test_errors_that_cancel_are_found_by_the_weights(monkeypatch):
    made = [_equation(0, off=1), _equation(1, off=-1)]
    assert product_holds([*made[0].terms, *made[1].terms])
    assert first_false(made) is made[0]
    monkeypatch.setattr(equations.secrets, "randbits", lambda bits: 1)
    assert first_false(made) is None  # so it is the weights


def test_weights_are_fresh_and_of_128_bits():
    terms = [_equation(0).terms] * 40
    first, *rest = (group.scalar // 6 for group in weighted(terms)[::2])
    assert first == 1
    assert len(set(rest)) == 39
    assert 1 << 120 < max(rest) < 1 << 128
