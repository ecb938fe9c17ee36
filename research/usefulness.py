"""What can be found under a small epsilon: other mechanisms than noise, and the limit of them all.

Neighbours are the service's: one slot holds another document. A mechanism sees questions one
after the other, each may depend on all answers before it, and gives at most K slots to each.

The limit of all of them. Put the document that a question asks for into a random slot of n. Were
it replaced by one as unrelated to the question as the rest, that slot would be returned with
probability K/n at most; so with the document it is returned with at most e^epsilon K/n + delta
(:func:`recall_limit`). A mechanism with fresh noise for every answer, accounted for m questions
about one document, gives Bin(m, r) hits to whoever asks the same m times, and is held to less
(:func:`fresh_limit`).

Three mechanisms that are nearer to it than noise on every score:

* coins (:class:`Coins`): a slot is returned by a coin of its own, whose chance is high where its
  document is relevant and has been so fewer than m times before, and low otherwise;
* codes (:mod:`ragwitness.privacy.codes`, as the service has them): each document is put
  under one of C public words, for life, by randomised response; answers cost nothing;
* sets (:func:`set_chances`): the exponential mechanism over all sets of K slots at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import moments_epsilon
from ragwitness.privacy.ranges import (
    Relation,
    at_least_zero,
    positive,
    probability,
    whole,
)
from ragwitness.privacy.sampler import Bits, uniform

Vector = NDArray[np.float64]
_STEPS = 1 << 48  # chances are whole numbers of these: drawn exactly, and exact as floats


def recall_limit(epsilon: float, delta: float, top: int, slots: int) -> float:
    """Return the most that any mechanism finds, on average over the slots of the answer.

    Args:
        epsilon: For a document, over all that is ever answered.
        delta: The same.
        top: Slots returned, K.
        slots: Of the index, n.

    Raises:
        InputError: A value is outside its range.
    """
    share = _share(top, slots)
    at_least_zero("epsilon", epsilon)
    probability("delta", delta)
    # Both sides of the definition: the slot is returned, and the slot is not returned.
    return min(
        1.0,
        share * math.exp(epsilon) + delta,
        1 - (1 - share - delta) * math.exp(-epsilon),
    )


def fresh_limit(epsilon: float, delta: float, top: int, slots: int, questions: int) -> float:
    """Return the most that a mechanism finds which answers each question with fresh randomness.

    It keeps (epsilon, delta) although all questions may be the same one.

    Args:
        epsilon: For a document, over all questions.
        delta: The same.
        top: Slots returned, K.
        slots: Of the index, n.
        questions: That are accounted for.

    Raises:
        InputError: A value is outside its range.
    """
    whole("questions", questions)
    low = round(_share(top, slots) * _STEPS)
    # The largest r for which Bin(questions, r) and Bin(questions, K/n) keep the promise.
    return _largest(epsilon, delta, questions, low, "add-remove") / _STEPS


def _share(top: int, slots: int) -> float:
    if whole("top", top) > whole("slots", slots):
        raise InputError(f"{slots} slots cannot give {top}.")
    return top / slots


# Coins: randomised response, slot by slot, with a budget of relevant questions for each document.


@dataclass(frozen=True, slots=True)
class Coins:
    """A coin for each slot and question.

    Whether a document is relevant depends on the question and on itself alone (a public
    threshold on its score). Its first ``uses`` relevant questions return its slot with chance
    ``high``; all others do with chance ``low``, and so does an empty slot.

    The price is exact. Two documents d and d' in a slot give coins of different chances at most
    at ``uses`` questions that only d counts as relevant, and at as many that only d' does. Where
    those are may depend on all answers; but whoever holds the coins of 2 uses such questions in
    advance can play both worlds. So no transcript tells more than X - Y, where X heads among
    ``uses`` coins of chance high (low) and Y among as many of chance low (high) are the one world
    (the other); asking what only d, then what only d' answers, tells that much.

    Attributes:
        high: Chance at a relevant question, in units of 2^-48.
        low: Chance otherwise, in the same units.
        uses: Relevant questions of a document in its life, m.

    Raises:
        InputError: Not 0 < low <= high < 2^48, or no use.
    """

    high: int
    low: int
    uses: int

    def __post_init__(self) -> None:
        whole("uses", self.uses)
        if not 0 < self.low <= self.high < _STEPS:
            raise InputError(
                f"The chances {self.high} and {self.low} are not 0 < low <= high < 2^48."
            )

    @property
    def chances(self) -> tuple[float, float]:
        """High and low, as probabilities."""
        return self.high / _STEPS, self.low / _STEPS

    def delta_at(self, epsilon: float, relation: Relation = "replace") -> float:
        """Return the delta that these coins keep at ``epsilon``, exact but for rounding.

        Args:
            epsilon: Of the guarantee.
            relation: ``"replace"``, or ``"add-remove"`` a document.

        Raises:
            InputError: A value is outside its range.
        """
        return _coin_delta(at_least_zero("epsilon", epsilon), self, relation)

    def spend(self, relevant: NDArray[np.bool_], spent: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Charge the documents that a question is relevant to; return those that still could pay.

        Args:
            relevant: By slot.
            spent: Relevant questions that each has paid for, by slot; changed.
        """
        paying: NDArray[np.bool_] = relevant & (spent < self.uses)
        spent += paying
        return paying

    def toss(self, paying: NDArray[np.bool_], top: int, bits: Bits) -> tuple[int, ...]:
        """Return the slots whose coins fall heads, in random order, and at most ``top`` of them.

        Args:
            paying: By slot, as :meth:`spend` gives it.
            top: Slots returned, K.
            bits: Source of randomness, secret; whoever knows it knows the documents.
        """
        # Every slot's coin is tossed before anything is left out.
        heads = [
            slot
            for slot, pays in enumerate(paying.tolist())
            if uniform(_STEPS, bits) < (self.high if pays else self.low)
        ]
        for at in range(min(top, len(heads))):  # Fisher and Yates, as far as it is read
            other = at + uniform(len(heads) - at, bits)
            heads[at], heads[other] = heads[other], heads[at]
        return tuple(heads[:top])


def coins_for(
    epsilon: float, delta: float, uses: int, low: float, relation: Relation = "replace"
) -> Coins:
    """Return the coins that find most under a budget for a document's life.

    Args:
        epsilon: Of the guarantee.
        delta: Of the guarantee.
        uses: Relevant questions of a document.
        low: Chance of a slot that is not relevant, e.g. 5 / slots.
        relation: Which indexes are neighbours.

    Raises:
        InputError: A value is outside its range.
    """
    base = round(probability("low", low) * _STEPS)
    return Coins(_largest(epsilon, delta, uses, base, relation), base, uses)


def _largest(epsilon: float, delta: float, uses: int, low: int, relation: Relation) -> int:
    """Largest high that keeps the budget, by bisection: delta grows with it."""
    at_least_zero("epsilon", epsilon)
    probability("delta", delta)
    promised = delta * (1 - 1e-9)  # rounding of the sums, with room
    first, last = low, _STEPS - 1
    while first < last:
        high = (first + last + 1) // 2
        if _coin_delta(epsilon, Coins(high, low, uses), relation) <= promised:
            first = high
        else:
            last = high - 1
    return first


def _coin_delta(epsilon: float, coins: Coins, relation: Relation) -> float:
    from scipy.stats import binom

    (high, low), m = coins.chances, coins.uses
    counts = np.arange(m + 1)
    inside, outside = binom.pmf(counts, m, high), binom.pmf(counts, m, low)
    yes, no = math.log(high / low), math.log1p(-high) - math.log1p(-low)
    if relation == "add-remove":
        # One document or none: heads among the uses, either world as the first.
        losses: Vector = counts * yes + (m - counts) * no
        return max(_hockey(inside, losses, epsilon), _hockey(outside, -losses, epsilon))
    if relation != "replace":
        raise InputError(f"No such relation: {relation!r}.", "Use add-remove or replace.")
    # Loss (yes - no)(X - Y); the other direction is its mirror image.
    difference: Vector = np.convolve(inside, outside[::-1])
    losses = np.arange(-m, m + 1, dtype=np.float64) * (yes - no)
    return _hockey(difference, losses, epsilon)


def _hockey(chances: Vector, losses: Vector, epsilon: float) -> float:
    above = losses > epsilon
    return float(chances[above] @ -np.expm1(epsilon - losses[above]))


@cache
def kept_share(relevant: int, slots: int, top: int, coins: Coins) -> float:
    """Return the chance that a slot whose coin fell heads is among the K returned.

    Args:
        relevant: Other slots that pay for the question.
        slots: All slots.
        top: Slots returned, K.
        coins: Their chances.
    """
    from scipy.stats import binom

    high, low = coins.chances
    rest = slots - 1 - relevant
    most = 12 * top + 60  # heads of low chance; beyond it less than 1e-12 for up to 3 K expected
    others = np.convolve(
        binom.pmf(np.arange(relevant + 1), relevant, high),
        binom.pmf(np.arange(min(rest, most) + 1), rest, low),
    )
    return float(others @ np.minimum(1.0, top / (1.0 + np.arange(others.size))))


# Sets: the exponential mechanism over all sets of K slots.


def set_chances(own: Vector, others: NDArray[np.float64], weight: float, top: int) -> Vector:
    """Return the chance of a slot to be in the set, drawn with weight e^(weight * sum of scores).

    Args:
        own: Score of the slot, by question, shape (m,).
        others: Scores of the other slots, shape (m, slots - 1).
        weight: Of a score; one document replaced changes the odds of its slot by e^(weight S)
            and nothing else.
        top: Slots in a set, K.

    Raises:
        InputError: There are too few slots.
    """
    _share(top, others.shape[1] + 1)
    highest = np.maximum(own, others.max(axis=1))[:, None]
    powers = np.exp(weight * (others - highest))
    # Elementary symmetric polynomials of the others, up to K, slot by slot; scaled as they grow.
    sums = np.zeros((len(own), top + 1))
    sums[:, 0] = 1.0
    for column in powers.T:
        sums[:, 1:] += sums[:, :-1] * column[:, None]
        sums /= sums.max(axis=1, keepdims=True)
    odds = np.exp(weight * (own - highest[:, 0]))
    with_it, without = odds * sums[:, top - 1], sums[:, top]
    return np.asarray(with_it / (with_it + without))


def set_weight(epsilon: float, delta: float, questions: int, sensitivity: float) -> float:
    """Return the weight of a score for which so many sets keep the budget.

    The log of the odds of a slot moves by h = weight * S: pure h for each question, and h^2/8 in
    concentrated privacy (bounded range: Dong, Durfee and Rogers 2020). The better of both is
    taken: a bound, not the optimum.

    Raises:
        InputError: A value is outside its range.
    """
    whole("questions", questions)
    pure = positive("epsilon", epsilon) / questions

    # h^2/8 is the concentrated privacy of Gaussian noise with mu = h/2; mu^2 adds up.
    def spent(step: float) -> float:
        return moments_epsilon(step / 2 * math.sqrt(questions), delta)

    concentrated = _root(spent, epsilon)
    return max(pure, concentrated) / positive("sensitivity", sensitivity)


def _root(spent: Callable[[float], float], budget: float) -> float:
    """Largest step with ``spent(step)`` within the budget; spent grows."""
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= budget else (low, middle)
    return low
