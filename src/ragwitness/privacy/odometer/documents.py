"""A second meter, one budget per document: each pays for its own scores alone.

Adding or removing document d moves the answer to query v by <v, d>, which the scan has computed
anyway. A document whose budget would be passed is left out of that answer, as if its slot were
free, and the others go on (individual filters: Feldman & Zrnic 2020 for Renyi, Koskela et al. 2022
for Gaussian privacy). Covers adding and removing a document, not replacing it; and what is spent
depends on the documents, so no account may see it.
"""

from __future__ import annotations

import math
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.privacy.accounting.ranges import positive, whole

_MAGIC = b"ragwitness documents 1\n"
_FULL = 1 << 62


class DocumentMeter:
    """What each slot of an index has spent, in whole numbers.

    Args:
        slots: Of the index; a free slot scores 0 and spends nothing.
        sigma: Noise, in units of the whole-number scores.
        budget: mu that no document may pass.

    Raises:
        InputError: A value is outside its range, or budgets beyond 64 bits.
    """

    def __init__(self, slots: int, sigma: float, budget: float) -> None:
        self.sigma, self.budget = positive("sigma", sigma), positive("budget", budget)
        limit = math.floor((budget * sigma) ** 2 * (1 - 1e-12))
        if limit >= _FULL:
            raise InputError(f"A budget of {budget:g} at sigma {sigma:g} is beyond 64 bits.")
        self._limit = limit
        self.spent = np.zeros(whole("slots", slots), dtype=np.int64)

    def fits(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Return which documents may take part in one more answer; nothing is charged.

        Args:
            scores: Whole numbers, as they are before the noise, shape (slots,).

        Raises:
            InputError: Another shape or type.
        """
        # Spent is Σ score²; a document fits while that stays within (budget · sigma)².
        sizes = self._sizes(scores)
        small = sizes <= math.isqrt(self._limit)
        return small & (np.where(small, sizes, 0) ** 2 <= self._limit - self.spent)

    def charge(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Charge the documents that fit; return which they are. The others must score 0.

        Raises:
            InputError: Another shape or type.
        """
        fitting = self.fits(scores)
        self.spent += np.where(fitting, self._sizes(scores), 0) ** 2
        return fitting

    def mu(self) -> NDArray[np.float64]:
        """Return mu of each document, shape (slots,): a secret of the index."""
        return np.sqrt(self.spent.astype(np.float64)) * ((1 + 1e-12) / self.sigma)

    def largest_epsilon(self, delta: float) -> float:
        """Return epsilon of the document that has spent most: a secret of the index.

        Raises:
            InputError: delta is outside its range.
        """
        return epsilon_at(delta, float(self.mu().max()))

    def merged(self, other: DocumentMeter) -> DocumentMeter:
        """Return one meter over the answers of two that charged different ones.

        Raises:
            InputError: They differ in slots, noise or budget.
        """
        same = (self.spent.size, self.sigma, self.budget) == (
            other.spent.size,
            other.sigma,
            other.budget,
        )
        if not same:
            raise InputError("Two meters with different terms cannot be added up.")
        both = DocumentMeter(self.spent.size, self.sigma, self.budget)
        both.spent = self.spent + other.spent  # each is below 2^62
        return both

    def to_bytes(self) -> bytes:
        """Return the whole state."""
        terms = f"{self.spent.size} {self.sigma.hex()} {self.budget.hex()}\n".encode()
        state = _MAGIC + terms + self.spent.astype("<i8").tobytes()
        return state + sha256(state).digest()

    @classmethod
    def from_bytes(cls, state: bytes) -> DocumentMeter:
        """Return a meter from what :meth:`to_bytes` gave.

        Raises:
            InputError: It is something else, or damaged.
        """
        state, digest = state[:-32], state[-32:]
        if not state.startswith(_MAGIC) or sha256(state).digest() != digest:
            raise InputError("This is not the state of a meter, or it is damaged.")
        head, _, body = state.removeprefix(_MAGIC).partition(b"\n")
        slots, sigma, budget = head.decode("ascii").split(" ")
        made = cls(int(slots), float.fromhex(sigma), float.fromhex(budget))
        made.spent = np.frombuffer(body, dtype="<i8").astype(np.int64)
        return made

    def _sizes(self, scores: ArrayLike) -> NDArray[np.int64]:
        values = np.asarray(scores)
        if values.shape != self.spent.shape or values.dtype.kind not in "iu":
            raise InputError(
                f"Scores are {self.spent.size} whole numbers, not {values.dtype} of shape"
                f" {values.shape}."
            )
        if int(values.max()) >= _FULL or int(values.min()) <= -_FULL:
            raise InputError(f"A score of {np.abs(values).max()} is beyond 64 bits squared.")
        return np.abs(values.astype(np.int64))
