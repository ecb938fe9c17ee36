"""A lower bound on epsilon from guesses: what a privacy claim must at least admit.

It holds for any mechanism, from many planted documents in a single run instead of many runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragwitness.errors import InputError


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound on a privacy parameter.

    Attributes:
        value: The bound on epsilon, never below 0.
        n: Number of guesses or scores that it was counted on.
        confidence: Probability with which the parameter is at least ``value``.
        assumes: Assumption about the mechanism; empty where there is none.
    """

    value: float
    n: int
    confidence: float
    assumes: str = ""


def epsilon_one_run(
    correct: int, guesses: int, canaries: int, delta: float, *, confidence: float = 0.95
) -> Floor:
    """Return epsilon from guesses about planted documents in one run (2305.08846, Thm. 5.2).

    Each canary was planted by a fair coin of its own; for some, the attack says whether it was.
    Under (epsilon, delta) the number of correct guesses is hardly above a binomial with
    e^eps / (1 + e^eps); the largest epsilon that the count refutes is returned.

    Args:
        correct: Number of right guesses.
        guesses: Number of guesses, fixed in advance; the attack may abstain on the rest.
        canaries: Number of canaries, each with a coin of its own.
        delta: Failure probability of the claim, for one document.
        confidence: Confidence of the bound.

    Raises:
        InputError: A count or value is outside its range.
    """
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InputError(
            "One run needs 0 <= correct <= guesses <= canaries and a guess, not"
            f" {correct}, {guesses}, {canaries}."
        )
    if delta != 0:
        _share("delta", delta)
    error = 1 - _share("confidence", confidence)

    def refuted(epsilon: float) -> bool:
        return _one_run_p_value(correct, guesses, canaries, epsilon, delta) <= error

    if not refuted(0.0):
        return Floor(0.0, guesses, confidence)
    low, high = 0.0, 1.0
    # The p-value rises with epsilon: double until it is not refuted, then halve the bracket.
    while refuted(high) and high < 700:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return Floor(low, guesses, confidence)


def _one_run_p_value(
    correct: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> float:
    from scipy.special import expit
    from scipy.stats import binom

    chance = float(expit(epsilon))
    # Thm. 5.2, delta = 0: correct guesses are at most Binomial(guesses, e^eps / (1 + e^eps)).
    tail = float(binom.sf(correct - 1, guesses, chance))
    if not delta or not correct:
        return tail
    # Its delta term: 2 m delta times the steepest mean of the probabilities just below the count.
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, chance))
    steepest = float((below / np.arange(1, correct + 1)).max())
    return tail + 2 * canaries * delta * steepest


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise InputError(f"{name} must be a number above 0 and below 1, not {value:g}.")
    return value
