"""All accounts of one service side by side: where each holds, and in which order."""

import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import ServiceTerms, joint_bounds, noise_plan
from ragwitness.privacy.gaussian import epsilon_at, mu_of, sigma_for
from research.inference import leading_sigma


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("accounts", [1, 7, 300])
def test_accounts_of_the_same_noise_are_in_order(epsilon: float, accounts: int) -> None:
    found = joint_bounds(ServiceTerms(1e-7, 200, accounts, epsilon))
    assert found.label == pytest.approx(epsilon, rel=1e-12)
    assert found.paper is not None
    assert found.exact < found.moments < found.renyi
    assert found.exact < found.paper
    assert found.kept
    assert found.delta == pytest.approx((accounts + 1) * 1e-7)


def test_a_label_is_kept_or_not_by_the_noise_alone() -> None:
    enough = sigma_for(2.0, 1e-6, 50)
    assert joint_bounds(ServiceTerms(1e-6, 50, 4, 2.0, enough)).kept is True
    assert joint_bounds(ServiceTerms(1e-6, 50, 4, 2.0, enough * 0.999)).kept is False
    assert joint_bounds(ServiceTerms(1e-6, 50, 4, 2.0, enough, sensitivity=2.0)).kept is False
    assert joint_bounds(ServiceTerms(1e-6, 50, 4, sigma=enough)).kept is None
    assert (
        joint_bounds(ServiceTerms(1e-6, 50, 1, 10.0, leading_sigma(10.0, 1e-6, 50))).kept is False
    )


def test_slack_moves_delta_and_theorem_together() -> None:
    own, given = (joint_bounds(ServiceTerms(1e-6, 100, 9, 1.0, slack=s)) for s in (None, 1e-9))
    assert given.delta == pytest.approx(9.001e-6)
    assert given.exact > own.exact
    assert given.paper is not None
    assert own.paper is not None
    assert given.paper > own.paper


def test_a_thousand_accounts_of_many_queries_are_accounted_for() -> None:
    found = joint_bounds(ServiceTerms(1e-6, 10_000, 1024, 1.0))
    assert found.exact == pytest.approx(2.722121, abs=1e-6)  # dp-accounting: research, section 5
    assert found.paper == pytest.approx(106, abs=0.5)


def test_plan_without_the_paper_where_its_formula_does_not_hold() -> None:
    plan = noise_plan(40.0, 1e-6, 1, 4, 2.0)
    assert plan.paper is plan.ratio is None
    assert epsilon_at(1e-6, mu_of(plan.exact, 4, 2.0)) == pytest.approx(40)
    assert plan.share < plan.rule == 20.0


def test_nothing_to_account_for_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to account for"):
        joint_bounds(ServiceTerms(1e-6, 10, 2))
    with pytest.raises(InputError, match=r"epsilon must be .* not 0"):
        joint_bounds(ServiceTerms(1e-6, 10, 2, 0.0, 5.0))
