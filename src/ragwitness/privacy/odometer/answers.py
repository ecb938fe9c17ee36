"""The meter of noise that no Gaussian bounds: it counts answers, each at its worst.

Noise of coins (docs/design/noise.md) is accounted by the number of answers alone, whatever was
asked. Answers add up as squares of mu do, so that budgets of windows and lives are kept alike: what
stands in place of mu is the square root of a number of answers.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.core.errors import InputError
from ragwitness.privacy.accounting.ranges import positive, whole

_MAGIC = b"ragwitness answers 1\n"
_ROUNDING = 1e-12  # of a square root that is squared again


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """What a meter of answers measures against.

    Attributes:
        dimension: Dimension of the query vectors.
        budget: Square root of the most answers.
    """

    dimension: int
    budget: float

    def __post_init__(self) -> None:
        """Refuse what no mechanism has.

        Raises:
            InputError: A value is outside its range.
        """
        whole("dimension", self.dimension)
        positive("budget", self.budget)

    @property
    def most(self) -> int:
        """Answers that may be given."""
        return math.floor(self.budget * self.budget * (1 + _ROUNDING))


class AnswerMeter:
    """Counts answers up to a budget; in every place where an odometer of Gaussian noise stands.

    Args:
        terms: Terms of the mechanism, with the budget.
    """

    def __init__(self, terms: AnswerTerms) -> None:
        self.terms = terms
        self.queries = 0

    def charge(self, vector: ArrayLike) -> bool:
        """Charge one query if it fits; return whether it did. A refused query costs nothing.

        Raises:
            InputError: It is not one vector.
        """
        count = self._count(vector)
        if count != 1:
            raise InputError(f"One query at a time is charged, not {count}.")
        if self.queries >= self.terms.most:
            return False
        self.queries += 1
        return True

    def add(self, vectors: ArrayLike) -> None:
        """Count queries that were answered already, within the budget or not.

        Args:
            vectors: Shape (queries, dimension) or (dimension,).

        Raises:
            InputError: Another shape.
        """
        self.queries += self._count(vectors)

    def mu(self) -> float:
        """Return the square root of the answers given."""
        return math.sqrt(self.queries)

    def to_bytes(self) -> bytes:
        """Return the whole state."""
        fields = {
            "dimension": self.terms.dimension,
            "budget": self.terms.budget,
            "queries": self.queries,
        }
        state = _MAGIC + json.dumps(fields, sort_keys=True, allow_nan=False).encode()
        return state + sha256(state).digest()

    @classmethod
    def from_bytes(cls, state: bytes) -> AnswerMeter:
        """Return a meter from what :meth:`to_bytes` gave.

        Raises:
            InputError: It is something else, or damaged.
        """
        state, digest = state[:-32], state[-32:]
        if not state.startswith(_MAGIC) or sha256(state).digest() != digest:
            raise InputError("This is not the state of a meter of answers, or it is damaged.")
        fields = json.loads(state.removeprefix(_MAGIC))
        made = cls(AnswerTerms(fields["dimension"], fields["budget"]))
        made.queries = fields["queries"]
        return made

    def _count(self, vectors: ArrayLike) -> int:
        rows = np.atleast_2d(np.asarray(vectors))
        if rows.ndim != 2 or rows.shape[1] != self.terms.dimension:
            raise InputError(
                f"A query vector has {self.terms.dimension} numbers, not shape {np.shape(vectors)}."
            )
        return len(rows)
