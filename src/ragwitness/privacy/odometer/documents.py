"""A meter of its own for each text of an index: it pays for its own scores, and for no other's.

Whether a text is there moves the answer to query v by its score alone, which the scan has computed
anyway. A text whose budget would be passed is left out of that answer, as if its slots were free,
and the others go on (individual filters: Feldman & Zrnic 2020 for Renyi, Koskela et al. 2022 for
Gaussian privacy; the argument for this noise is in docs/design/odometer.md). What is spent depends
on the documents, so no account may see it, and nothing that an account sees may hang on it but the
answers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import at_least_zero, positive
from ragwitness.privacy.odometer.spectral import pack_state, unpack_state

_MAGIC = b"ragwitness documents 2\n"
_FULL = 1 << 62
"""Sums stay below, so that whole numbers of 64 bits hold them exactly."""


def limit_of(mu: float, sigma: float) -> int:
    """Return the sum of squared scores that a budget of ``mu`` leaves room for, rounded down.

    Args:
        mu: Gaussian privacy that no text may pass.
        sigma: Noise, in grid steps of the scores.

    Raises:
        InputError: A value is outside its range.
    """
    room = (at_least_zero("mu", mu) * positive("sigma", sigma)) ** 2 * (1 - 4e-12)
    return min(math.floor(room), _FULL - 1)


def mu_of_sum(squares: float, sigma: float) -> float:
    """Return mu of a sum of squared scores, rounded up.

    Args:
        squares: Squared lengths, in squared grid steps.
        sigma: Noise, in grid steps.
    """
    return math.sqrt(squares) * (1 + 1e-12) / sigma


class DocumentMeter:
    """What each text has spent, in whole numbers; copies of one text share its meter.

    Args:
        free: Score of a free slot: what a text that is left out scores, and what a score's
            distance is counted from.
    """

    def __init__(self, free: int = 0) -> None:
        self.free = free
        self._number: dict[str, int] = {}
        self._spent = np.zeros(0, np.int64)
        self._limits = np.zeros(0, np.int64)
        self._settled = np.zeros(0, np.int64)
        self._slots = np.zeros(0, np.int64)
        self._texts = np.zeros(0, np.int64)
        self._largest = 0

    def __contains__(self, text: str) -> bool:
        """Whether a text has a budget here."""
        return text in self._number

    def admit(self, limits: Mapping[str, int]) -> None:
        """Give texts budgets, beside what they have spent; those that have one keep the meter.

        Args:
            limits: Sum of squares that each text, by its hash, may come to.
        """
        fresh = [text for text in limits if text not in self._number]
        for text in fresh:
            self._number[text] = len(self._number)
        nothing = np.zeros(len(fresh), np.int64)
        self._spent = np.concatenate([self._spent, nothing])
        self._settled = np.concatenate([self._settled, nothing])
        self._limits = np.concatenate([self._limits, nothing])
        for text, limit in limits.items():
            self._limits[self._number[text]] = min(limit, _FULL - 1)

    def seat(self, slots: Sequence[int], texts: Sequence[str]) -> None:
        """Say which text stands in which slot; every other slot is free.

        Args:
            slots: Each once.
            texts: Hash of the text in each slot; each has a budget.
        """
        self._slots = np.array(slots, np.int64)
        self._texts = np.array([self._number[text] for text in texts], np.int64)
        # Squares of all copies of one text together must stay within 64 bits.
        copies = int(np.bincount(self._texts).max()) if len(texts) else 1
        self._largest = math.isqrt(_FULL // (2 * copies))

    def charge(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Charge the texts that fit; return the scores with all others' slots as if free.

        Args:
            scores: Whole numbers, as they are before the noise, shape (slots,).

        Raises:
            InputError: Another type or shape, or fewer slots than texts stand in.
        """
        values = np.asarray(scores)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InputError(
                f"Scores are whole numbers, one a slot, not {values.dtype} of shape {values.shape}."
            )
        if len(self._slots) and int(self._slots.max()) >= len(values):
            raise InputError(f"There are texts in more slots than {len(values)}.")
        # 1. What each text would pay: the squares of its distances from a free slot's score.
        moved = values[self._slots].astype(np.int64) - self.free
        small = np.abs(moved) <= self._largest
        cost = np.zeros_like(self._spent)
        np.add.at(cost, self._texts, np.where(small, moved, 0) ** 2)
        # 2. It takes part with all its copies or with none, as its own sum alone decides.
        fits = cost <= self._limits - self._spent
        fits[self._texts[~small]] = False
        self._spent += np.where(fits, cost, 0)
        answered = values.astype(np.int64)
        answered[self._slots[~fits[self._texts]]] = self.free
        return answered

    def spent(self) -> dict[str, int]:
        """Return the sum of squares of each text: a secret of the index."""
        return dict(zip(self._number, self._spent.tolist(), strict=True))

    def left(self) -> dict[str, int]:
        """Return what each text has left: a secret of the index."""
        room = np.maximum(self._limits - self._spent, 0)
        return dict(zip(self._number, room.tolist(), strict=True))

    def settled(self) -> dict[str, int]:
        """Return what of it is kept elsewhere as well (:meth:`settle`)."""
        return dict(zip(self._number, self._settled.tolist(), strict=True))

    def unsettled(self) -> dict[str, int]:
        """Return what texts have spent since :meth:`settle`, those that have."""
        more = (self._spent - self._settled).tolist()
        return {text: one for text, one in zip(self._number, more, strict=True) if one}

    def outstanding(self) -> dict[str, int]:
        """Return what texts may still come to beside what was settled: reserved, or spent."""
        more = (np.maximum(self._limits, self._spent) - self._settled).tolist()
        return dict(zip(self._number, more, strict=True))

    def settle(self) -> dict[str, int]:
        """Return :meth:`unsettled`, which the caller now keeps elsewhere."""
        found = self.unsettled()
        self._settled = self._spent.copy()
        return found

    def to_bytes(self) -> bytes:
        """Return the whole state but the seats, which the index decides."""
        head = {"free": self.free, "texts": [*self._number]}
        return pack_state(_MAGIC, head, np.stack([self._spent, self._limits, self._settled]))

    @classmethod
    def from_bytes(cls, state: bytes) -> DocumentMeter:
        """Return a meter from what :meth:`to_bytes` gave.

        Raises:
            InputError: It is something else, or damaged.
        """
        fields, numbers = unpack_state(_MAGIC, state)
        made = cls(int(fields["free"]))
        made._number = {text: at for at, text in enumerate(fields["texts"])}
        made._spent, made._limits, made._settled = numbers.reshape(3, len(made._number))
        return made
