"""A lower bound on epsilon from guesses: what a privacy claim must at least admit.

It holds for any mechanism, from many planted documents in a single run instead of many runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.core.errors import InputError


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


def epsilon_one_run(correct: int, guesses: int, *, confidence: float = 0.95) -> Floor:
    """Return epsilon from guesses about planted documents in one run (2305.08846, Thm. 5.2).

    Each canary was planted by a fair coin of its own; for some, the attack says whether it was.
    Under pure epsilon (delta = 0) the number of correct guesses is at most a binomial with
    e^eps / (1 + e^eps); the largest epsilon that the count refutes is returned.

    Args:
        correct: Number of right guesses.
        guesses: Number of guesses, fixed in advance; the attack may abstain on the rest.
        confidence: Confidence of the bound.

    Raises:
        InputError: A count is outside its range.
    """
    if not 0 <= correct <= guesses or guesses < 1:
        raise InputError(
            f"One run needs 0 <= correct <= guesses and a guess, not {correct} and {guesses}."
        )
    from scipy.special import expit
    from scipy.stats import binom

    def refuted(epsilon: float) -> bool:
        tail = float(binom.sf(correct - 1, guesses, float(expit(epsilon))))
        return tail <= 1 - confidence

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
