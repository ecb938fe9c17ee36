"""Coins and sets: their price by enumeration, their draws by count, none above the limit."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, binomtest, norm

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import mu_for
from ragwitness.privacy.sampler import ShakeBits
from research.usefulness import (
    Coins,
    coins_for,
    fresh_limit,
    kept_share,
    recall_limit,
    set_chances,
    set_weight,
)

HALF = 1 << 47
UNIT = 1 << 48


def transcripts(coins, policy, rounds, *, limit=True):
    """Probability of every transcript of one slot in either world, by the mechanism's definition.

    ``policy`` says from the heads so far whether the next question is relevant to the first and to
    the second document. Each document pays from its own purse.
    """
    high, low = coins.chances
    for heads in itertools.product((0, 1), repeat=rounds):
        chances, spent = [1.0, 1.0], [0, 0]
        for at in range(rounds):
            for world, relevant in enumerate(policy(heads[:at])):
                pays = relevant and (spent[world] < coins.uses or not limit)
                spent[world] += pays
                p = high if pays else low
                chances[world] *= p if heads[at] else 1 - p
        yield chances


def exact_delta(pairs, epsilon):
    pairs = list(pairs)
    return max(
        sum(max(0.0, pair[i] - math.exp(epsilon) * pair[1 - i]) for pair in pairs) for i in (0, 1)
    )


COINS = [
    Coins(HALF, HALF // 8, 1),
    Coins(3 * HALF // 2, HALF // 4, 2),
    Coins(HALF // 2, HALF // 10, 3),
]


@pytest.mark.parametrize("coins", COINS)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_price_of_coins_is_that_of_the_worst_questions(coins, epsilon):
    # First what only d answers, then what only d' does: no transcript is left out.
    m = coins.uses
    worst = transcripts(coins, lambda heads: (len(heads) < m, len(heads) >= m), 2 * m)
    assert exact_delta(worst, epsilon) == pytest.approx(coins.delta_at(epsilon), abs=1e-12)
    alone = transcripts(coins, lambda heads: (True, False), m + 1)
    found = exact_delta(alone, epsilon)
    assert found == pytest.approx(coins.delta_at(epsilon, "add-remove"), abs=1e-12)


@pytest.mark.parametrize("coins", COINS)
def test_no_adaptive_questions_cost_more(coins):
    rng = np.random.default_rng(0)
    rounds = 2 * coins.uses + 1
    for _ in range(60):
        plan = {
            heads: tuple(rng.random(2) < 0.6)
            for at in range(rounds)
            for heads in itertools.product((0, 1), repeat=at)
        }
        pairs = list(transcripts(coins, plan.__getitem__, rounds))
        for epsilon in (0.0, 0.7, 1.5, 3.0):
            assert exact_delta(pairs, epsilon) <= coins.delta_at(epsilon) + 1e-12


def test_coins_without_a_purse_break_the_promise():
    # The opponent: the same chances, but nobody counts how often a document was relevant.
    coins = COINS[1]
    endless = transcripts(coins, lambda heads: (True, False), 2 * coins.uses + 2, limit=False)
    assert exact_delta(endless, 1.0) > coins.delta_at(1.0) + 0.05


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta", "uses"), [(1, 1e-6, 1), (3, 1e-6, 4), (10, 1e-5, 13)])
def test_the_best_coins_keep_the_budget_and_no_better_ones_do(relation, epsilon, delta, uses):
    coins = coins_for(epsilon, delta, uses, 0.01, relation)
    assert coins.delta_at(epsilon, relation) <= delta
    step = max(1, coins.high // 10**6)
    assert Coins(coins.high + step, coins.low, uses).delta_at(epsilon, relation) > delta


def test_coins_fall_as_their_chances_say_and_no_slot_minds_the_others():
    coins, spent = Coins(3 * UNIT // 4, UNIT // 8, 2), np.zeros(4, np.int64)
    relevant = np.array([True, False, True, False])
    payings = [coins.spend(relevant, spent) for _ in range(3)]
    assert [list(paying) for paying in payings] == [[True, False, True, False]] * 2 + [[False] * 4]
    assert list(spent) == [2, 0, 2, 0]
    bits, n = ShakeBits(b"coins"), 4000
    for paying, wanted in ((payings[0], (0.75, 0.125)), (payings[2], (0.125, 0.125))):
        heads = np.zeros(4, int)
        pairs = 0
        for _ in range(n):
            found = coins.toss(paying, 4, bits)
            heads[list(found)] += 1
            pairs += 0 in found and 2 in found
        for slot in range(4):
            p = wanted[slot % 2]
            assert binomtest(int(heads[slot]), n, p).pvalue > 1e-5
        assert binomtest(pairs, n, wanted[0] ** 2).pvalue > 1e-5


def test_a_likelihood_ratio_test_on_tosses_stays_within_the_promise():
    # What the code does, not what it should do: both worlds asked at their worst, 20,000 times.
    epsilon, delta = 1.5, 1e-3
    coins, n = coins_for(epsilon, delta, 1, 0.25), 20_000
    counts = np.zeros((2, 2, 2))
    bits = ShakeBits(b"worlds")
    for world in (0, 1):
        for _ in range(n):
            spent = np.zeros(2, np.int64)  # slot 0 is under attack
            seen = [
                0 in coins.toss(coins.spend(np.array([world == at, True]), spent), 2, bits)
                for at in (0, 1)
            ]
            counts[world, int(seen[0]), int(seen[1])] += 1
    share = counts / n
    found = np.maximum(0, share[0] - math.exp(epsilon) * share[1]).sum()
    tolerance = 5 * math.sqrt((1 + math.exp(2 * epsilon)) / n)
    assert found <= delta + tolerance
    # And the promise is used up: at an epsilon that is smaller by .5 it fails visibly.
    less = np.maximum(0, share[0] - math.exp(epsilon - 0.5) * share[1]).sum()
    assert less > coins.delta_at(epsilon - 0.5) - 0.05 > 0.05


def test_the_share_that_is_kept_is_that_of_the_tosses():
    coins, top, slots = Coins(3 * UNIT // 4, UNIT // 4, 1), 2, 6
    paying = np.array([True, True, True, False, False, False])
    bits, n = ShakeBits(b"kept"), 4000
    found = sum(0 in coins.toss(paying, top, bits) for _ in range(n))
    assert binomtest(found, n, 0.75 * kept_share(2, slots, top, coins)).pvalue > 1e-5


def subsets_chance(scores, weight, top):
    sets = list(itertools.combinations(range(len(scores)), top))
    weights = np.array([math.exp(weight * sum(scores[i] for i in chosen)) for chosen in sets])
    return sum(w for w, chosen in zip(weights, sets, strict=True) if 0 in chosen) / weights.sum()


def test_the_chances_of_sets_are_those_of_all_sets():
    rng = np.random.default_rng(0)
    scores = rng.random((5, 7))
    for top, weight in ((1, 3.0), (3, 1.0), (6, 8.0), (7, 2.0)):
        found = set_chances(scores[:, 0], scores[:, 1:], weight, top)
        wanted = [subsets_chance(row, weight, top) for row in scores]
        assert found == pytest.approx(wanted, abs=1e-12)


def test_one_document_changes_the_odds_of_its_slot_and_nothing_else():
    scores = np.random.default_rng(1).random(6)
    other = scores.copy()
    other[0] += 0.4
    before, after = (subsets_chance(s, 2.0, 3) for s in (scores, other))
    odds = after / (1 - after) / (before / (1 - before))
    assert math.log(odds) == pytest.approx(0.8)


@pytest.mark.parametrize("questions", [1, 10, 200])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
def test_sets_keep_the_budget_whatever_chance_a_slot_has(questions, epsilon):
    step, delta = set_weight(epsilon, 1e-6, questions, 1.0), 1e-6
    for p in (0.01, 0.1, 0.3, 0.5, 0.7, 0.95):
        odds = p / (1 - p) * math.exp(step)
        counts = np.arange(questions + 1)
        pairs = np.stack([binom.pmf(counts, questions, q) for q in (p, odds / (1 + odds))], axis=1)
        assert exact_delta(pairs, epsilon) <= delta * (1 + 1e-6) + 1e-13


def test_one_use_reaches_the_limit_of_all_mechanisms():
    for epsilon in (0.5, 1, 3, 10):
        coins = coins_for(epsilon, 1e-6, 1, 0.01, "add-remove")
        limit = recall_limit(epsilon, 1e-6, 10, 1000)
        assert coins.chances[0] == pytest.approx(limit, rel=1e-6)
        assert fresh_limit(epsilon, 1e-6, 10, 1000, 1) == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("questions", [1, 30, 1000])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_neither_noise_nor_sets_pass_the_limit(questions, epsilon):
    # The best that either can do: one score above all others by the whole sensitivity.
    limit = fresh_limit(epsilon, 1e-6, 10, 1000, questions)
    noise = norm.cdf(mu_for(epsilon, 1e-6) / math.sqrt(questions) + ndtri(0.01))
    scores = np.zeros((1, 1000))
    sets = set_chances(np.ones(1), scores[:, 1:], set_weight(epsilon, 1e-6, questions, 1.0), 10)[0]
    assert 0.01 < max(noise, sets) <= limit + 1e-6


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Coins(5, 6, 1), "low <= high"),
        (lambda: Coins(6, 5, 0), "uses"),
        (lambda: coins_for(1, 1e-6, 2, 0.0), "low"),
        (lambda: coins_for(1, 0.0, 2, 0.01), "delta"),
        (lambda: Coins(6, 5, 1).delta_at(1.0, "other"), "relation"),
        (lambda: recall_limit(1, 1e-6, 11, 10), "10 slots cannot give 11"),
        (lambda: set_chances(np.zeros(1), np.zeros((1, 3)), 1.0, 5), "cannot give 5"),
        (lambda: fresh_limit(1, 1e-6, 1, 10, 0), "questions"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
