"""The paper's own bounds: every number that the rebuilt paper has of them, and where they fail."""

import math

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import (
    PrivacyBudget,
    classic_sigma,
    implied_epsilon,
    joint_budget,
    per_query,
)
from ragwitness.privacy.gaussian import (
    ORDERS,
    epsilon_at,
    moments_epsilon,
    mu_of,
    renyi_epsilon,
    sigma_for,
)
from research.inference import leading_sigma
from tests.support.composition import advanced_composition, best_order, simplified_epsilon

DELTA = 1e-6

# epsilon, queries: T3.4 / RDP (3.6) / exact, at k = 1, 16, 256, 1024 (research, section 5)
TABLE = {
    (0.1, 100): "0.101/.016/.0089 .412/.059/.033 1.79/.204/.110 3.94/.375/.196",
    (0.1, 1000): "0.101/.015/.0083 .412/.055/.031 1.79/.192/.103 3.94/.353/.183",
    (0.1, 10_000): "0.101/.014/.0079 .412/.052/.029 1.79/.183/.096 3.94/.335/.171",
    (0.5, 1000): ".518/.075/.048 2.29/.277/.182 12.6/.984/.656 34.5/1.86/1.25",
    (1.0, 100): "1.07/.160/.109 5.16/.592/.416 34.5/2.15/1.56 106/4.20/3.12",
    (1.0, 1000): "1.07/.151/.102 5.16/.558/.390 34.5/2.02/1.46 106/3.93/2.90",
    (1.0, 10_000): "1.07/.143/.097 5.16/.529/.368 34.5/1.91/1.37 106/3.71/2.72",
    (2.0, 1000): "2.29/.303/.215 12.6/1.13/.835 106/4.27/3.29 360/8.75/6.98",
}


def simple_growth(epsilon: float, accounts: int) -> float:
    """Return sqrt(k) epsilon: Theorem 3.4 without its second term; a rate, no bound."""
    return epsilon * math.sqrt(accounts)


def last_digit(text: str) -> float:
    """One unit of the last printed digit, times 1.02: the source rounded some numbers twice."""
    return 0.51 * 10.0 ** -len(text.partition(".")[2]) + 6e-5


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_table_of_three_accounts_at_equal_delta(row: tuple[float, int]) -> None:
    epsilon, queries = row
    sigma = classic_sigma(epsilon, DELTA, queries)
    for accounts, cell in zip((1, 16, 256, 1024), TABLE[row].split(), strict=True):
        paper, renyi, exact = cell.split("/")
        joint = joint_budget(epsilon, DELTA, queries, accounts)
        mu = mu_of(sigma, accounts * queries)
        assert joint.delta == pytest.approx((accounts + 1) * DELTA)
        assert joint.epsilon == pytest.approx(float(paper), abs=last_digit(paper))
        assert renyi_epsilon(mu, joint.delta) == pytest.approx(float(renyi), abs=last_digit(renyi))
        assert epsilon_at(joint.delta, mu) == pytest.approx(float(exact), abs=last_digit(exact))


def test_how_loose_the_paper_is() -> None:
    ratios = {
        (epsilon, queries, accounts): joint_budget(epsilon, DELTA, queries, accounts).epsilon
        / epsilon_at(
            (accounts + 1) * DELTA,
            mu_of(classic_sigma(epsilon, DELTA, queries), accounts * queries),
        )
        for epsilon, queries in TABLE
        for accounts in (1, 16, 256, 1024)
    }
    found = [ratios[1.0, 1000, accounts] for accounts in (1, 16, 1024)]
    assert found == pytest.approx([10.5, 13.2, 36.6], abs=0.06)
    assert min(ratios.values()) == pytest.approx(9.9, abs=0.06)
    assert max(ratios.values()) == pytest.approx(52, abs=4)  # "9.9-55" over a larger grid


def test_calibration_per_query() -> None:
    strict, exact = per_query(1, DELTA, 1000), per_query(1, DELTA / 2, 1000)
    assert strict.epsilon == pytest.approx(1 / math.sqrt(2000 * math.log(1e6)))
    assert (strict.delta, strict.total) == (pytest.approx(1e-9), pytest.approx(2e-6))
    assert (exact.delta, exact.total) == (pytest.approx(5e-10), pytest.approx(1e-6))
    assert strict.epsilon / exact.epsilon == pytest.approx(1.0248, abs=5e-5)
    for part in (strict, exact):  # Lemma 3.2 gives the account's epsilon back, to first order
        whole = advanced_composition(PrivacyBudget(part.epsilon, part.delta), 1000, part.slack)
        assert whole.delta == pytest.approx(part.total)
        assert 1 < whole.epsilon < 1 + 1 / math.log(1e6)


@pytest.mark.parametrize("queries", [100, 1000])
def test_noise_as_the_paper_calibrates_it(queries: int) -> None:
    published = {100: (3210, 321), 1000: (10_759, 1076)}[queries]
    found = [classic_sigma(e, DELTA, queries) for e in (0.1, 1.0)]
    assert found == pytest.approx(published, abs=0.6)
    assert implied_epsilon(found[1], DELTA, queries) == pytest.approx(1, rel=1e-12)
    assert classic_sigma(1, DELTA, queries, 2.0) == pytest.approx(2 * found[1])


def test_paper_needs_eight_times_the_noise() -> None:
    ratios = []
    for accounts, published in zip((1, 4, 16, 64), (1076, 2152, 4304, 8607), strict=True):
        paper = classic_sigma(1 / math.sqrt(accounts), DELTA, 1000)
        assert paper == pytest.approx(published, abs=0.6)
        ratios.append(paper / sigma_for(1, DELTA, 1000 * accounts))
    assert ratios == pytest.approx([8.05] * 4, abs=0.006)


def test_theorem_is_advanced_composition_with_its_second_term_rounded_up() -> None:
    for accounts in (1, 16, 1024):
        part = per_query(2.0, DELTA, 100)
        lemma = advanced_composition(
            PrivacyBudget(part.epsilon, part.delta), 100 * accounts, part.slack
        )
        theorem = joint_budget(2.0, DELTA, 100, accounts)
        assert lemma.delta == pytest.approx(theorem.delta)
        assert lemma.epsilon <= theorem.epsilon
        halved = advanced_composition(
            PrivacyBudget(part.epsilon, part.delta), 100 * accounts, part.slack, tight=True
        )
        assert halved.epsilon < lemma.epsilon


def test_other_slack_is_taken_from_the_first_term_alone() -> None:
    own, small = joint_budget(1, DELTA, 1000, 16), joint_budget(1, DELTA, 1000, 16, slack=1e-9)
    root = 4 * (math.sqrt(math.log(1e9) / math.log(1e6)) - 1)
    assert small.epsilon - own.epsilon == pytest.approx(root)
    assert small.delta == pytest.approx(16e-6 + 1e-9)


@pytest.mark.parametrize("rule", ["classic", "exact"])
def test_theorem_holds_at_its_own_delta_and_not_at_the_accounts(rule: str) -> None:
    tightest = math.inf
    for epsilon in (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0):
        for accounts in (1, 2, 4, 16, 64, 256, 1024):
            sigma = (classic_sigma if rule == "classic" else sigma_for)(epsilon, DELTA, 1000)
            joint = joint_budget(epsilon, DELTA, 1000, accounts)
            exact = epsilon_at(joint.delta, mu_of(sigma, 1000 * accounts))
            tightest = min(tightest, joint.epsilon / max(exact, 1e-300))
    assert tightest > 1
    if rule == "exact":
        assert tightest == pytest.approx(1.058, abs=0.03)
        wide = epsilon_at(DELTA, mu_of(sigma_for(0.1, DELTA, 1000), 1_024_000))
        assert wide == pytest.approx(4.235, abs=5e-4)
        assert wide > joint_budget(0.1, DELTA, 1000, 1024).epsilon == pytest.approx(3.941, abs=1e-3)


def test_growth_with_the_root_of_k_is_no_bound_at_a_fixed_delta() -> None:
    sigma = sigma_for(1, DELTA, 1000)
    excess = [epsilon_at(DELTA, mu_of(sigma, 1000 * k)) / simple_growth(1, k) for k in (16, 1024)]
    assert excess == pytest.approx([1.15, 2.0], abs=0.03)


def test_simplified_renyi_bound_is_the_full_one_for_its_own_noise() -> None:
    for epsilon, accounts in [(0.1, 1), (1.0, 16), (8.0, 64)]:
        sigma = leading_sigma(epsilon, DELTA, 1000)
        full = renyi_epsilon(mu_of(sigma, 1000 * accounts), DELTA)
        short = simplified_epsilon(epsilon, DELTA, 1000, accounts, sigma)
        assert short == pytest.approx(full, rel=1e-12)
        assert epsilon_at(DELTA, mu_of(sigma, 1000 * accounts)) < short


def test_simplified_renyi_bound_is_refused_where_it_would_be_false() -> None:
    sigma = sigma_for(1, DELTA, 1000)
    exact = epsilon_at(DELTA, mu_of(sigma, 16_000))
    formula = 4 + 16 / (4 * math.log(1e6))
    assert (exact, formula) == (pytest.approx(4.592, abs=6e-4), pytest.approx(4.290, abs=6e-4))
    with pytest.raises(InputError, match=r"\(3.7\) is derived for sigma 166.*with 133"):
        simplified_epsilon(1, DELTA, 1000, 16, sigma)


def test_leading_noise_breaks_its_own_promise_beyond_eight() -> None:
    own = [epsilon_at(DELTA, mu_of(leading_sigma(e, DELTA, 1000), 1000)) for e in (8.3, 8.4, 10)]
    assert own[0] < 8.3
    assert own[1] > 8.4
    assert own[2] == pytest.approx(10.35, abs=5e-3)


def test_moments_accountant_lies_between_the_closed_form_and_the_exact_account() -> None:
    for mu in (1e-3, 0.05, 0.5, 3.0):
        delta = 1.7e-5
        closed = renyi_epsilon(mu, delta)
        orders = np.append(ORDERS, best_order(mu, delta))
        by_r3 = orders * mu * mu / 2 - math.log(delta) / (orders - 1)
        assert closed <= by_r3[:-1].min() <= closed * 1.0001
        assert by_r3[-1] == pytest.approx(closed, rel=1e-12)
        assert epsilon_at(delta, mu) <= moments_epsilon(mu, delta) < closed
    mu = mu_of(classic_sigma(1, DELTA, 1000), 16_000)
    assert moments_epsilon(mu, 17e-6) == pytest.approx(0.4311, abs=1e-4)
    mu = mu_of(classic_sigma(1, DELTA, 10_000), 10_240_000)
    assert moments_epsilon(mu, 1025e-6) == pytest.approx(3.0758, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: per_query(0.0, DELTA, 10), "epsilon must be .* not 0"),
        (lambda: per_query(1.0, 2.0, 10), "delta must be .* not 2"),
        (lambda: per_query(1.0, DELTA, -3), "queries must be .* not -3"),
        (lambda: classic_sigma(9.0, DELTA, 1), "holds below 1 per query; epsilon 9 over 1"),
        (lambda: implied_epsilon(0.5, DELTA, 10), "sigma 0.5 is too small"),
        (lambda: joint_budget(9.0, DELTA, 1, 4), "needs at most 1.2564 per query"),
        (lambda: joint_budget(1.0, DELTA, 10, 0), "accounts must be .* not 0"),
        (lambda: joint_budget(1.0, DELTA, 10, 2, slack=0.0), "delta' must be .* not 0"),
    ],
)
def test_values_outside_their_range_are_named(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        call()
