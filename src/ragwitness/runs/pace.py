"""How many queries may be under way: additive increase, multiplicative decrease (AIMD)."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.errors import InputError

__all__ = ["Pace", "Throttle"]

_LESS = 0.8  # of the limit is left when the target says that it is asked too much


@dataclass(frozen=True, slots=True)
class Pace:
    """How many queries may be under way at a time.

    Attributes:
        start: At first.
        ceiling: At most.

    Raises:
        InputError: Not 1 <= start <= ceiling.
    """

    start: int = 4
    ceiling: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.start <= self.ceiling:
            raise InputError(
                f"At least 1 query must be under way, not {min(self.start, self.ceiling)}.",
                "Correct --concurrency.",
            )

    @classmethod
    def up_to(cls, ceiling: int) -> Pace:
        """Start with few, and grow towards the ceiling while the target keeps up."""
        return cls(min(cls().start, ceiling), ceiling)

    @classmethod
    def at_most(cls, ceiling: int) -> Pace:
        """Start at the ceiling; fewer only while the target asks for it."""
        return cls(ceiling, ceiling)


class Throttle:
    """The limit now. It knows nothing of queries but when they were sent.

    Args:
        pace: Start and ceiling.

    Attributes:
        round: Decreases so far; a query remembers the one it was sent in.
    """

    def __init__(self, pace: Pace) -> None:
        self._ceiling = float(pace.ceiling)
        self._limit = float(pace.start)
        self._answered = 0
        self.round = 0

    @property
    def limit(self) -> int:
        """Queries that may be under way."""
        return int(self._limit)

    def answered(self, under_way: int) -> None:
        """One more at a time after a round of answers, if the limit was what held us back.

        Args:
            under_way: Queries under way, the one answered included.
        """
        if under_way < self.limit:
            return
        self._answered += 1
        if self._answered >= self.limit:
            self._answered = 0
            self._limit = min(self._ceiling, self._limit + 1.0)

    def overloaded(self, sent_in: int) -> int:
        """A fifth fewer, once for all queries that were sent before the last decrease.

        Args:
            sent_in: Round in which the query was sent.

        Returns:
            The round in which its next attempt is sent.
        """
        if sent_in == self.round:
            self.round += 1
            self._answered = 0
            self._limit = max(1.0, self._limit * _LESS)
        return self.round
