"""One rate limiter per target account: it holds the caps and the number of queries under way.

Every query passes through :meth:`RateLimiter.spend`. Before it is sent, its worst case is
reserved. A query that could pass a cap, even if all others under way used nothing more, is refused.
The number of queries under way follows the target: one more after a round of answers, a fifth fewer
after a refusal for overload (additive increase, multiplicative decrease). After an answer that came
too late, queries are sent one by one. See ``docs/design/runs.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from ragwitness.core.errors import CapReachedError, InputError
from ragwitness.core.files import Closing
from ragwitness.core.run_files import SPENT
from ragwitness.core.types import Answer, Query
from ragwitness.runner.budget import OPTIONS, Budget, UsageLog, Use, stated_use, worst_case
from ragwitness.targets.transport import Setback

# How many queries may be under way: additive increase, multiplicative decrease (AIMD).

_LESS = 0.8  # factor of the limit after a refusal for overload


class Throttle:
    """The current limit of queries under way.

    Args:
        most: Its ceiling.
        start: The limit at first; None starts at the ceiling.

    Attributes:
        round: Decreases so far; a query remembers the one it was sent in.

    Raises:
        InputError: No query could be under way.
    """

    def __init__(self, most: int, start: int | None = None) -> None:
        first = most if start is None else min(start, most)
        if first < 1:
            raise InputError(
                f"At least 1 query must be under way, not {first}.", "Correct --concurrency."
            )
        self._ceiling, self._limit = float(most), float(first)
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
        # Additive increase, only under load: an unused limit says nothing about the target.
        if under_way < self.limit:
            return
        self._answered += 1
        if self._answered >= self.limit:
            self._answered = 0
            self._limit = min(self._ceiling, self._limit + 1.0)

    def overloaded(self, sent_in: int, *, late: bool = False) -> int:
        """A fifth fewer, once for all queries that were sent before the last decrease.

        Args:
            sent_in: Round in which the query was sent.
            late: No answer came in time, and the target may still work on it: one at a time then,
                and later never more than half as many as were under way.

        Returns:
            The round in which its next attempt is sent.
        """
        # Multiplicative decrease, once a round: refusals of queries sent together are one message.
        if sent_in == self.round:
            self.round += 1
            self._answered = 0
            if late:
                self._ceiling = max(1.0, self._limit // 2)
            self._limit = 1.0 if late else max(1.0, self._limit * _LESS)
        return self.round


T = TypeVar("T")


@dataclass(slots=True)
class Reservation:
    """The reservation of one query.

    Attributes:
        worst: Largest use of one request.
        round: When it was sent, in decreases of the limit.
        query: The question.
        lost: Possible use of requests without an answer.
        number: Id in the usage log.
        refused: The last request was turned away, so that nothing was used.
        smooth: No request of it failed.
    """

    worst: Use
    round: int
    query: Query
    lost: Use = field(default_factory=Use)
    number: int = 0
    refused: bool = False
    smooth: bool = True


_CURRENT: ContextVar[Reservation | None] = ContextVar("query under way", default=None)


class RateLimiter(Closing):
    """Lets queries pass. Use as a context manager where it has a usage log.

    Args:
        budget: Caps and prices.
        at_once: The most queries under way at a time.
        usage_log: Use of earlier starts; None starts from zero.
        start: Queries under way at first; more follow while the target keeps up. None starts
            with ``at_once``.

    Attributes:
        spent: Queries and tokens so far, earlier starts included.
        cap: Name of the cap that refused a query; None while none did.
        answered: Queries of this start that brought an answer.
        turned_away: Requests of this start that the target turned away, or did not answer, and that
            were repeated.
        late: Of these, the ones that it did not answer in time.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        at_once: int = 4,
        usage_log: UsageLog | None = None,
        start: int | None = None,
    ) -> None:
        self.budget = budget or Budget()
        self.spent = usage_log.before if usage_log else Use()
        self.cap: str | None = None
        self.answered = self.turned_away = self.late = 0
        self._usage_log = usage_log
        self._throttle = Throttle(at_once, start)
        self._under_way = 0
        self._set_aside = Use()
        self._surplus = 0
        self._waiting: deque[tuple[Use, asyncio.Future[None]]] = deque()

    @classmethod
    def of_run(
        cls,
        run: Path | None,
        budget: Budget | None = None,
        at_once: int = 4,
        start: int | None = None,
    ) -> Self:
        """Return the rate limiter of a run folder, with the use of its earlier starts.

        Raises:
            InputError: Another process is at work there, or its files cannot be used.
        """
        return cls(budget, at_once, None if run is None else UsageLog(run / SPENT), start)

    @property
    def limit(self) -> int:
        """Queries that may be under way now."""
        return self._throttle.limit

    @property
    def cost(self) -> float | None:
        """Money spent so far; None without prices."""
        return self.budget.price(self.spent)

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:
        """Wait for a turn, send a query and settle its use.

        Args:
            query: The question.
            send: Sends it to the target.

        Raises:
            CapReachedError: The query, or one more attempt at it, could pass a cap.
        """
        # 1. Reserve its worst case, and wait for a turn.
        reservation = await self._begin(query)
        # 2. Send it; a failure may have been billed and settles at its worst case.
        token = _CURRENT.set(reservation)
        try:
            answer = await send(query)
        except BaseException:
            self._settle(reservation, Use() if reservation.refused else reservation.worst)
            raise
        finally:
            _CURRENT.reset(token)
        # 3. Replace the reservation by the use that the answer states.
        self.answered += 1
        if reservation.smooth:
            self._throttle.answered(self._under_way)
        self._settle(reservation, self._counted(answer, reservation))
        return answer

    async def _begin(self, query: Query) -> Reservation:
        worst = worst_case(query, self._surplus)
        await self._turn(worst)
        reservation = Reservation(worst, self._throttle.round, query)
        try:
            # Before the query leaves: a killed process must not forget it.
            reservation.number = self._usage_log.open(worst) if self._usage_log else 0
        except BaseException:
            self._settle(reservation, Use())  # nothing was sent
            raise
        return reservation

    def setback(self, setback: Setback) -> None:
        """Record an attempt that brought no answer; the transport calls this.

        Raises:
            CapReachedError: It is to be repeated, and that could pass a cap.
        """
        self.turned_away += setback.again
        self.late += setback.late
        reservation = _CURRENT.get()
        if reservation is None:  # asked by somebody else, such as doctor
            return
        if setback.overload:
            reservation.round = self._throttle.overloaded(reservation.round, late=setback.late)
        reservation.smooth = False
        reservation.refused = setback.refused and not setback.again
        if setback.refused or not setback.again:
            return
        # The lost attempt may have been billed; reserve the next one as well.
        if cap := self.budget.passed(self.spent + self._set_aside + reservation.worst):
            raise self._over(cap)
        reservation.lost += reservation.worst
        self._set_aside += reservation.worst
        if self._usage_log:
            self._usage_log.note(reservation.number, reservation.lost + reservation.worst)

    def refuse_if_capped(self, what: str) -> None:
        """End a run without a result, where a cap refused its queries.

        Raises:
            CapReachedError: A cap did.
        """
        if self.cap is not None:
            error = self._over(self.cap)
            raise CapReachedError(f"{error.message} before enough {what} were asked.", error.hint)

    def close(self) -> None:
        """Close the usage log."""
        if self._usage_log:
            self._usage_log.close()

    def _counted(self, answer: object, reservation: Reservation) -> Use:
        if not isinstance(answer, Answer):
            return reservation.worst
        use = stated_use(answer, reservation.worst)
        # Tokens that a target adds to a prompt are unknown; expect the largest surplus so far.
        self._surplus = max(self._surplus, use.prompt - worst_case(reservation.query).prompt)
        return use

    async def _turn(self, worst: Use) -> None:
        """Wait until there is room, first come, first served."""
        if not self._waiting and self._admitted(worst):
            return
        # Its turn comes in _leave, when another query settles.
        entry = worst, asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        try:
            await entry[1]
        except BaseException:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif entry[1].done() and not entry[1].cancelled() and not entry[1].exception():
                self._leave(worst)  # it had its turn and was stopped before it knew
            raise

    def _admitted(self, worst: Use) -> bool:
        """Take a turn where there is room; False says wait.

        Raises:
            CapReachedError: No room will come.
        """
        # Passed even if all under way turned out free: waiting cannot help.
        if cap := self.budget.passed(self.spent + worst):
            raise self._over(cap)
        # Queries under way may use less than their reservations: wait.
        full = self._under_way >= self.limit
        if full or self.budget.passed(self.spent + self._set_aside + worst):
            return False
        self._under_way += 1
        self._set_aside += worst
        return True

    def _over(self, cap: str) -> CapReachedError:
        self.cap = self.cap or cap
        return CapReachedError(
            f"{cap} cap reached", f"The same command with a higher {OPTIONS[cap]} resumes."
        )

    def _settle(self, reservation: Reservation, use: Use) -> None:
        """Replace a reservation by the real use."""
        total = reservation.lost + use
        # The sums first, then the row; a disk that fails still gives the turn back.
        self.spent += total
        self._set_aside -= reservation.lost
        try:
            if self._usage_log and reservation.number:
                self._usage_log.note(reservation.number, total)
        finally:
            self._leave(reservation.worst)

    def _leave(self, worst: Use) -> None:
        # Give the turn back, then admit waiting queries while there is room.
        self._under_way -= 1
        self._set_aside -= worst
        while self._waiting:
            # First come, first served: a small query waits behind a large one; none starves.
            worst, turn = self._waiting[0]
            try:
                if not turn.done() and not self._admitted(worst):
                    return
            except CapReachedError as error:
                turn.set_exception(error)
            else:
                if not turn.done():
                    turn.set_result(None)
            self._waiting.popleft()
