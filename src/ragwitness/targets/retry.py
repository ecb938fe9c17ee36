"""When and how long to wait before asking again: pure functions of attempt, reply and clock."""

from __future__ import annotations

import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

__all__ = ["OVERLOAD", "RETRIED", "RetryPolicy", "Setback", "retry_after"]

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses below 500 that may go away by themselves."""

OVERLOAD = frozenset({429, 503})
"""Statuses that say: too many requests."""


@dataclass(frozen=True, slots=True)
class Setback:
    """A request that brought no answer.

    Attributes:
        overload: The server is asked too much, or did not reply in time.
        refused: It was turned away before anything was worked on, so nothing is billed.
        again: It will be repeated.
    """

    overload: bool
    refused: bool
    again: bool


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is repeated.

    Attributes:
        retries: Repetitions after the first attempt.
        first: Upper limit of the first wait, in seconds; it doubles with every attempt.
        longest: Upper limit of any wait of our choosing, in seconds.
        patience: Longest wait that the server may ask for, in seconds.
    """

    retries: int = 5
    first: float = 0.5
    longest: float = 30.0
    patience: float = 120.0

    def wait(self, attempt: int, rng: random.Random) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first): full jitter.

        Clients that failed together must not come back together.
        """
        return rng.uniform(0.0, min(self.longest, self.first * 2.0**attempt))

    def repeats(self, status: int) -> bool:
        """Whether a status may go away by itself."""
        return status in RETRIED or status >= 500


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for.

    Args:
        header: Seconds or an HTTP date (RFC 9110, Sec. 10.2.3).
        now: Seconds since the epoch.

    Returns:
        None where there is no header or it cannot be read; never negative.
    """
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.replace(".", "", 1).isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
