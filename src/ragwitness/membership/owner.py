"""Evidence about a whole collection (ours): does the target hold documents of one owner?"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.stats.sequential import (
    Permutation,
    bet,
    online_p_values,
    permutation_test,
)

# From the scores of an owner's documents to one statement about the collection (ours).
#
# One document may leave doubt where a hundred do not. Each document's score is set against scores
# of documents known to be outside, and the p-values are bet on, document by document; the owner
# may stop as soon as the evidence suffices, and need not say beforehand how many to ask about
# (:mod:`ragwitness.stats.sequential`). Or all scores are compared at once, by permutation.
#
# The null: the owner's documents are exchangeable with those known to be outside. It also fails
# where the two differ in kind, in date or in author, so take the known-outside documents from the
# same source. The order of the owner's documents must not be chosen by their scores.

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
        decided_after: Scored documents after which 1/alpha was reached; None where it was not.
        scored: Documents that were bet on.
        unscorable: Documents left out.
        p_values: Of each scored document.
        path: log10 of the martingale after each of them.
    """

    e_value: float
    log10_e: float
    p_value: float
    decided_after: int | None
    scored: int
    unscorable: int
    p_values: tuple[float, ...]
    path: tuple[float, ...]


class Bets:
    """Bets on a collection's documents as their scores come in; nothing is computed twice.

    Args:
        outside: Known-outside scores that all documents are compared with; each document is
            also compared with the owner's before it, which keeps p-values independent.
        alpha: Level.

    Raises:
        InputError: ``alpha`` is not in (0, 1).

    Attributes:
        decided_after: Scored documents after which 1/alpha was reached; None where it was not.
    """

    def __init__(
        self,
        outside: Sequence[float],
        *,
        alpha: float = 0.05,
    ) -> None:
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {alpha}.")
        self.decided_after: int | None = None
        self._enough = -math.log(alpha)
        self._unscorable = 0
        self._p_values: list[float] = []
        self._path: list[float] = []
        # The stream is asked for one bet per score, just after the score was put here, so it
        # never sees an empty queue and lives on between calls.
        self._queue: deque[float] = deque()
        arrived = iter(self._queue.popleft, object())
        self._stream = bet(online_p_values(arrived, outside))

    def add(self, documents: Iterable[float | None]) -> None:
        """Bet on further documents; none is read after 1/alpha was reached.

        Args:
            documents: Their scores, None where unscorable.

        Raises:
            InputError: The scores cannot be compared.
        """
        if self.decided_after is not None:
            return
        for score in documents:
            # One document, one bet: nothing is decided before its score is known.
            if score is None:
                self._unscorable += 1
                continue
            self._queue.append(score)
            p, value = next(self._stream)
            self._p_values.append(p)
            self._path.append(value)
            # Ville's inequality: under the null the martingale ever gets here with chance alpha.
            if value >= self._enough:
                self.decided_after = len(self._path)
                return

    def evidence(self) -> CollectionEvidence:
        """Return what the documents so far say."""
        path = self._path
        last, best = (path[-1], max(path)) if path else (0.0, 0.0)
        return CollectionEvidence(
            e_value=math.exp(last) if last < _LARGEST else math.inf,
            log10_e=last / _LN10,
            # Anytime-valid: 1 / sup of the martingale is a p-value at every stop.
            p_value=min(1.0, math.exp(-best)),
            decided_after=self.decided_after,
            scored=len(path),
            unscorable=self._unscorable,
            p_values=tuple(self._p_values),
            path=tuple(value / _LN10 for value in path),
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
