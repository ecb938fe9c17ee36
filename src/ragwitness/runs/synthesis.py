"""Making synthetic data from a corpus: the only loop of it that asks a model and writes a file.

Answers are kept as in every run, and finished records in ``made.jsonl``; the same command resumes.
Every text is held against the conditions once more before it is written, those of earlier starts
included: a record that was altered, or made under weaker conditions, does not slip through. A run
folder holds the corpus in its prompts and is as private as that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from ragwitness.defenses.synthetic.asking import StoppedError
from ragwitness.defenses.synthetic.base import (
    AnyMethod,
    CorpusMethod,
    CorpusSynthesis,
    Fate,
    Maker,
    Steps,
    Synthesis,
    checked,
    flaw,
)
from ragwitness.defenses.synthetic.guard import Guard
from ragwitness.errors import (
    CapReachedError,
    InputError,
    TargetError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.runs.budget import OPTIONS
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import ANSWERS, Asked, Journal, query_key
from ragwitness.runs.made import MADE, VOTES, Book, Shelf, SynthesisResult, digest
from ragwitness.runs.pace import Pace
from ragwitness.runs.remarks import spending
from ragwitness.runs.result import Spending
from ragwitness.runs.worker import Progress
from ragwitness.types import Answer, Document, Query, Target

__all__ = ["run_synthesis"]

T = TypeVar("T")

_LONGEST = 1_000_000  # characters of a record, where the method has no limit of its own
_GIVE_UP_AFTER = 3  # records in a row that found no connection
_PASSING = (Fate.FAILED, Fate.UNASKED)


@dataclass(slots=True)
class _Desk:
    """Where questions are asked and counted."""

    target: Target | None
    governor: Governor
    journal: Journal | None
    queries: int = 0
    sent: int = 0
    lost: int = 0

    async def follow(
        self, steps: Steps[T], record: str, told: Callable[[int], None] | None = None
    ) -> T:
        """Ask what a generator asks until it returns.

        Args:
            steps: The generator.
            record: Whose queries they are, for the journal.
            told: Called with the queries so far, after each batch.

        Raises:
            CapReachedError: A cap refused one of its queries.
            TargetUnreachableError: Several in a row found no connection.
        """
        answers: list[Answer] | None = None
        while True:
            try:
                batch = steps.send(answers)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as stop:
                result: T = stop.value
                return result
            try:
                answers = await self._ask_all(batch, record)
            except BaseException:
                steps.close()
                raise
            if told:
                told(self.queries)

    async def _ask_all(self, batch: Sequence[Query], record: str) -> list[Answer]:
        """Ask side by side; where one is refused, those under way are still kept."""
        asked = (self._ask(query, record) for query in batch)
        found = await asyncio.gather(*asked, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one for one in found if isinstance(one, Answer)]

    async def _ask(self, query: Query, record: str) -> Answer:
        if self.target is None:
            raise InputError("This method asks a model.", "Name one with --model.")
        self.queries += 1
        key = query_key(self.target.name, query)
        if self.journal is not None and (stored := self.journal.get(key)) is not None:
            return stored
        try:
            answer = await self.governor.spend(query, self.target.ask)
        except TargetUnreachableError as error:
            self.lost += 1
            if self.lost >= _GIVE_UP_AFTER:
                raise
            return Answer("", error=error.message)
        except TargetError as error:
            return Answer("", error=error.message)
        self.lost = 0
        self.sent += 1
        if self.journal is None or answer.error is not None:
            return answer
        asked = Asked(self.target.name, "synthesis", record, query)
        return self.journal.put(key, answer, asked)


async def run_synthesis(
    documents: Sequence[Document],
    method: AnyMethod,
    guard: Guard,
    target: Target | None = None,
    *,
    run: Path | None = None,
    in_flight: int = 4,
    progress: Progress | None = None,
    governor: Governor | None = None,
) -> SynthesisResult:
    """Make a text of every record; answers and records already in ``run`` are not made again.

    A corpus method makes its texts of all records together; its votes are not repeated either.

    Args:
        documents: The corpus.
        method: How texts are made.
        guard: The conditions; made from the same corpus, for a private method from no record.
        target: The language model; None for methods that ask none.
        run: Folder of the journal and the book; None keeps nothing.
        in_flight: Records at the same time.
        progress: Called after each record.
        governor: Lets queries pass; None makes one without caps for ``run``.

    Raises:
        InputError: No record can be used, or a file of the run.
        TargetUnreachableError: The model cannot be reached at all.
        TargetResponseError: It gave nothing to begin with.
        CapReachedError: A cap was reached before the first record.
    """
    clock = time.monotonic()
    settings = {**method.describe(), **guard.describe()}
    name = target.name if target else ""
    config = getattr(method, "config", None)
    identity = digest(
        [version("ragwitness"), name, repr(config), method.describe(), guard.identity]
    )
    usable = [d for d in documents if flaw(d.text, getattr(config, "longest", _LONGEST)) is None]
    if not usable:
        raise InputError(
            "No record of the corpus can be used.", "Records are empty, binary or too long."
        )
    with ExitStack() as files:
        if governor is None:
            governor = files.enter_context(Governor.of_run(run, pace=Pace.at_most(in_flight)))
        journal = book = None
        if run is not None:
            journal = Journal(run / ANSWERS)
            files.callback(journal.close)
        desk = _Desk(target, governor, journal)
        try:
            if isinstance(method, CorpusMethod):
                shelf = files.enter_context(Shelf(run and run / VOTES, "record of votes"))
                steps, most = method.make_all(usable, guard, shelf), method.most(len(usable))

                def told(queries: int) -> None:
                    if progress:
                        progress("synthesis", queries, max(queries, most))

                found = await desk.follow(steps, "", told)
            else:
                if run is not None:
                    book = files.enter_context(Book(run / MADE, identity))
                maker = await desk.follow(method.begin(usable, guard), "")
                work = _Work(documents, maker, guard, desk, book, in_flight, progress)
                found = CorpusSynthesis(await work.all())
        except StoppedError as stop:
            raise TargetResponseError(
                f"{method.name} cannot begin: {stop.reason}.",
                "Try another model, or give the attributes in a domain file.",
            ) from None
    made = found.made
    unasked = sum(one.fate is Fate.UNASKED for one in made)
    spent = replace(
        spending(governor.spent, governor.budget, governor.cap, ()),
        unasked=unasked,
    )
    seconds = time.monotonic() - clock
    of_records = () if isinstance(method, CorpusMethod) else _warnings(made, settings, spent)
    warnings = (*found.warnings, *of_records)
    return SynthesisResult(
        method.name, name, made, settings, desk.queries, desk.sent, seconds, spent, warnings
    )


@dataclass(slots=True)
class _Work:
    """The records under way."""

    documents: Sequence[Document]
    maker: Maker
    guard: Guard
    desk: _Desk
    book: Book | None
    in_flight: int
    progress: Progress | None
    done: int = 0
    capped: str = ""
    found: dict[int, Synthesis] = field(default_factory=dict)

    async def all(self) -> tuple[Synthesis, ...]:
        """Make every record, those of one text once."""
        first: dict[str, int] = {}
        for place, document in enumerate(self.documents):
            if first.setdefault(document.text, place) != place:
                reason = "the same text as an earlier record"
                self.found[place] = Synthesis(document.id, Fate.DUPLICATE, reason=reason)
        waiting = iter([n for n in range(len(self.documents)) if n not in self.found])
        self.done = len(self.found)

        async def take() -> None:
            for place in waiting:
                self.found[place] = await self._one(self.documents[place])
                self.done += 1
                if self.progress:
                    self.progress("synthesis", self.done, len(self.documents))

        takers = [asyncio.ensure_future(take()) for _ in range(max(1, self.in_flight))]
        try:
            await asyncio.gather(*takers)
        except BaseException:
            for taker in takers:
                taker.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            raise
        return tuple(self.found[place] for place in range(len(self.documents)))

    async def _one(self, document: Document) -> Synthesis:
        if self.book is not None and (kept := self.book.get(document)) is not None:
            return self._held(kept)
        if self.capped:
            return Synthesis(document.id, Fate.UNASKED, reason=self.capped)
        try:
            made = await self.desk.follow(self.maker(document), document.id)
        except CapReachedError as error:
            self.capped = error.message
            return Synthesis(document.id, Fate.UNASKED, reason=error.message)
        made = self._held(made)
        if self.book is not None and made.fate not in _PASSING:
            self.book.put(document, made)
        return made

    def _held(self, made: Synthesis) -> Synthesis:
        """Hold a text that is to be written against the conditions once more."""
        return checked(made, self.guard) if made.fate is Fate.PASSED else made


def _warnings(made: Sequence[Synthesis], settings: Mapping[str, str], spent: Spending) -> list[str]:
    found = [settings["warning"]] if "warning" in settings else []
    passed = sum(one.fate in (Fate.PASSED, Fate.UNGUARDED) for one in made)
    if passed * 2 < len(made):
        found.append(f"Only {passed} of {len(made)} records have a synthetic text.")
    if spent.stopped_by is not None:
        found.append(
            f"{spent.unasked} of {len(made)} records were not asked about: {spent.stopped_by} cap"
            f" reached. The same command with a higher {OPTIONS[spent.stopped_by]} resumes; nothing"
            " is asked twice."
        )
    if any(one.fate is Fate.FAILED for one in made):
        found.append("The model failed for some records; the same command asks again.")
    return found
