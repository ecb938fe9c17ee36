"""One governor per target account: what may still be spent, and how many queries at a time.

Every query passes through :meth:`Governor.spend`. Before it is sent, the most it may use is set
aside; a query that could pass a cap even if all others under way used nothing more is refused.
How many are under way follows the target: one more after a round of answers, a fifth fewer when
it says that it is asked too much (additive increase, multiplicative decrease). See
``docs/design/runs.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from ragwitness.errors import CapReachedError, RagwitnessError
from ragwitness.runs.budget import OPTIONS, Budget, Use, most, used
from ragwitness.runs.ledger import LEDGER, Ledger, spent_in
from ragwitness.runs.pace import Pace, Throttle
from ragwitness.runs.shards import files_of_shards, refuse_beside
from ragwitness.targets.retry import Setback
from ragwitness.types import Answer, Query

__all__ = ["Governor", "Held", "Pace"]

T = TypeVar("T")


@dataclass(slots=True)
class Held:
    """What is set aside for one query.

    Attributes:
        worst: The most that one request of it may use.
        round: When it was sent, in decreases of the limit.
        query: The question.
        lost: What requests without an answer may have used.
        number: In the ledger.
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


_OWN: ContextVar[Held | None] = ContextVar("query under way", default=None)


class Governor:
    """Lets queries pass. Use as a context manager where it has a ledger.

    Args:
        budget: Caps and prices.
        pace: Queries under way at a time.
        ledger: Remembers what was spent; None starts from nothing.
        elsewhere: Spent by others under the same caps.

    Attributes:
        spent: Queries and tokens so far, earlier starts included.
        cap: Name of the cap that refused a query; None while none did.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        pace: Pace | None = None,
        ledger: Ledger | None = None,
        elsewhere: Use | None = None,
    ) -> None:
        self.budget = budget or Budget()
        self.pace = pace or Pace()
        self.spent = (ledger.before if ledger else Use()) + (elsewhere or Use())
        self.cap: str | None = None
        self._ledger = ledger
        self._throttle = Throttle(self.pace)
        self._under_way = 0
        self._set_aside = Use()
        self._surplus = 0
        self._waiting: deque[tuple[Use, asyncio.Future[None]]] = deque()

    @classmethod
    def of_run(
        cls, run: Path | None, budget: Budget | None = None, pace: Pace | None = None
    ) -> Self:
        """Return the governor of a run folder, with what its earlier starts and shards spent.

        Raises:
            InputError: Another process is at work there, or its files cannot be used.
        """
        if run is None:
            return cls(budget, pace)
        ledger = Ledger(run / LEDGER)  # first: it keeps shards out that start now
        try:
            refuse_beside(run)
            elsewhere = sum(map(spent_in, files_of_shards(run, LEDGER)), Use())
        except RagwitnessError:
            ledger.close()
            raise
        return cls(budget, pace, ledger, elsewhere)

    @property
    def limit(self) -> int:
        """Queries that may be under way now."""
        return self._throttle.limit

    @property
    def cost(self) -> float | None:
        """Money spent so far; None without prices."""
        return self.budget.price(self.spent)

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:
        """Wait for a turn, send a query and settle what it used.

        Args:
            query: The question.
            send: Puts it to the target.

        Raises:
            CapReachedError: The query, or one more attempt at it, could pass a cap.
        """
        held = await self.begin(query)
        token = _OWN.set(held)
        try:
            answer = await send(query)
        except BaseException:
            self.end(held, None)
            raise
        finally:
            _OWN.reset(token)
        self.end(held, answer)
        return answer

    async def begin(self, query: Query) -> Held:
        """Wait for a turn and set aside what a query may use; the first half of :meth:`spend`.

        Raises:
            CapReachedError: The query could pass a cap.
        """
        worst = most(query, self._surplus)
        await self._turn(worst)
        held = Held(worst, self._throttle.round, query)
        try:
            # Before the query leaves: a killed process must not forget it.
            held.number = self._ledger.open(worst) if self._ledger else 0
        except BaseException:
            self._settle(held, Use())  # nothing was sent
            raise
        return held

    def end(self, held: Held, answer: object) -> None:
        """Settle what a query used; None where it brought no answer."""
        if answer is None:
            self._settle(held, Use() if held.refused else held.worst)
            return
        if held.smooth:
            self._throttle.answered(self._under_way)
        self._settle(held, self._counted(answer, held))

    def setback(self, setback: Setback) -> None:
        """Take note of an attempt that brought no answer; the transport calls this.

        Raises:
            CapReachedError: It is to be repeated, and that could pass a cap.
        """
        held = _OWN.get()
        if held is not None:  # else asked by somebody else, such as doctor
            self.set_back(held, setback)

    def set_back(self, held: Held, setback: Setback) -> None:
        """Take note of it for a query begun by :meth:`begin`; see :meth:`setback`."""
        if setback.overload:
            held.round = self._throttle.overloaded(held.round)
        held.smooth = False
        held.refused = setback.refused and not setback.again
        if setback.refused or not setback.again:
            return
        # The lost attempt may have been billed; the next one is set aside anew.
        if cap := self.budget.passed(self.spent + self._set_aside + held.worst):
            raise self._over(cap)
        held.lost += held.worst
        self._set_aside += held.worst
        if self._ledger:
            self._ledger.note(held.number, held.lost + held.worst)

    def refuse_if_capped(self, what: str) -> None:
        """End a run that can say nothing because a cap refused its queries.

        Raises:
            CapReachedError: A cap did.
        """
        if self.cap is not None:
            error = self._over(self.cap)
            raise CapReachedError(f"{error.message} before enough {what} were asked.", error.hint)

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _counted(self, answer: object, held: Held) -> Use:
        if not isinstance(answer, Answer):
            return held.worst
        use = used(answer, held.worst)
        # What a target adds to a prompt cannot be seen; the most seen so far is expected again.
        self._surplus = max(self._surplus, use.prompt - most(held.query).prompt)
        return use

    async def _turn(self, worst: Use) -> None:
        """Wait until there is room, first come, first served."""
        if not self._waiting and self._admitted(worst):
            return
        place = worst, asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place[1]
        except BaseException:
            if place in self._waiting:
                self._waiting.remove(place)
            elif place[1].done() and not place[1].cancelled() and not place[1].exception():
                self._leave(worst)  # it had its turn and was stopped before it knew
            raise

    def _admitted(self, worst: Use) -> bool:
        """Take a turn where there is room; False says wait.

        Raises:
            CapReachedError: No room will come.
        """
        if cap := self.budget.passed(self.spent + worst):
            raise self._over(cap)
        # Those under way may use less than was set aside for them: wait and see.
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

    def _settle(self, held: Held, use: Use) -> None:
        """Replace what was set aside by what was used."""
        total = held.lost + use
        self.spent += total
        self._set_aside -= held.lost
        try:
            if self._ledger and held.number:
                self._ledger.note(held.number, total)
        finally:
            self._leave(held.worst)

    def _leave(self, worst: Use) -> None:
        self._under_way -= 1
        self._set_aside -= worst
        while self._waiting:
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
