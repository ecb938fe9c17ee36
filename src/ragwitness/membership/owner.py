"""Evidence about a whole collection (ours): does the target hold documents of one owner?

One document may leave doubt where a hundred do not. Documents of the collection and documents known
to be outside are asked about in one random order, and bets are placed on which of the two each one
is, by its score; the owner may stop as soon as the evidence suffices
(:mod:`ragwitness.stats.sequential`). Or all scores are compared at once, by permutation.

The null: the owner's documents are exchangeable with those known to be outside. It also fails where
the two differ in kind, in date or in author, so take the known-outside documents from the same
source. It does not fail where the target changes meanwhile.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.stats.sequential import Permutation, bet_on_labels, permutation_test

_LN10 = math.log(10)
_LARGEST = 700.0  # exp() of more is infinite


@dataclass(frozen=True, slots=True)
class CollectionEvidence:
    """What the documents asked about so far say of the collection.

    Attributes:
        e_value: The martingale's last value; at least 1/alpha refuses the null at alpha,
            whenever one stops. May be infinite; ``log10_e`` is not.
        log10_e: Its decimal logarithm.
        p_value: Anytime-valid: 1 / largest value so far, at most 1.
        decided: Whether 1/alpha was reached.
        unscorable: Documents of the collection left out.
        path: log10 of the martingale after each scored document, known ones included.
    """

    e_value: float
    log10_e: float
    p_value: float
    decided: bool
    unscorable: int
    path: tuple[float, ...]


class Bets:
    """Bets on documents as their scores come in; nothing is computed twice.

    Args:
        documents: In the collection.
        known: Documents known to be outside, asked about in one random order with them.
        alpha: Level.

    Raises:
        InputError: ``alpha`` is not in (0, 1).

    Attributes:
        decided: Whether 1/alpha was reached; then nothing is bet on any more.
    """

    def __init__(self, documents: int, known: int, *, alpha: float = 0.05) -> None:
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {alpha}.")
        self.decided = False
        self._enough = -math.log(alpha)
        self._unscorable = 0
        self._path: list[float] = []
        # The stream is asked for one bet per document, just after it was put here, so it never
        # sees an empty queue and lives on between calls.
        self._queue: deque[tuple[float | None, bool]] = deque()
        arrived = iter(self._queue.popleft, object())
        self._stream = bet_on_labels(arrived, documents, known)

    def add(self, arrivals: Iterable[tuple[float | None, bool]]) -> None:
        """Bet on further documents in the order of asking; none is read after the decision.

        Args:
            arrivals: Score, None where unscorable, and whether it is the collection's.

        Raises:
            InputError: A score is not finite.
        """
        if self.decided:
            return
        for arrival in arrivals:
            self._queue.append(arrival)
            value = next(self._stream)
            if value is None:
                self._unscorable += arrival[1]
                continue
            self._path.append(value)
            # Ville's inequality: under the null the martingale ever gets here with chance alpha.
            if value >= self._enough:
                self.decided = True
                return

    def evidence(self) -> CollectionEvidence:
        """Return what the documents so far say."""
        last, best = (self._path[-1], max(self._path)) if self._path else (0.0, 0.0)
        return CollectionEvidence(
            e_value=math.exp(last) if last < _LARGEST else math.inf,
            log10_e=last / _LN10,
            # Anytime-valid: 1 / sup of the martingale is a p-value at every stop.
            p_value=min(1.0, math.exp(-best)),
            decided=self.decided,
            unscorable=self._unscorable,
            path=tuple(value / _LN10 for value in self._path),
        )


def collection_difference(
    collection: Sequence[float | None],
    outside: Sequence[float | None],
    *,
    rng: random.Random,
) -> Permutation:
    """Compare the mean score of the collection with that of documents known to be outside.

    Unscorable documents are left out on both sides.

    Args:
        collection: Scores of the owner's documents, all of them asked about.
        outside: Known-outside scores.
        rng: Draws arrangements where there are too many to count.

    Raises:
        InputError: No score is left on one side.
    """
    ours = [score for score in collection if score is not None]
    others = [score for score in outside if score is not None]
    return permutation_test(ours, others, rng=rng)
