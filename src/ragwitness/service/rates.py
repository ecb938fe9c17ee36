"""The rate of each key: how many requests a second the service takes from one account."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ragwitness.core.errors import InputError


class KeyRates:
    """Requests per second of each account, by a bucket that refills (in this process alone).

    Args:
        rate: Requests per second; a bucket holds two seconds of them, and at least one.
        clock: Clock of seconds that never go back.

    Raises:
        InputError: The rate is not above 0.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"The rate of a key is above 0 requests per second, not {rate:g}.")
        self._rate, self._clock = rate, clock
        self._most = max(1.0, 2 * rate)
        self._left: dict[int, tuple[float, float]] = {}  # by account; only real ones get here

    def wait(self, account: int) -> float:
        """Take one request of an account; return 0, or the seconds until there is one."""
        now = self._clock()
        left, then = self._left.get(account, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        admitted = left >= 1
        self._left[account] = (left - admitted, now)
        return 0.0 if admitted else (1 - left) / self._rate
