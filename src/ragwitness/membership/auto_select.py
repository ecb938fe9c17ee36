"""``--method auto``: the first audit that the target, the documents and the caps admit.

A pilot must have shown that it can read this target (:mod:`ragwitness.membership.auto_select`).

The order of the candidates is that of what they find on chat models that nobody here trained
(``docs/design/methods.md``); the first needs a system that shows what it retrieved.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.run_files import PILOT
from ragwitness.core.types import Answer, Audit, Capability, Document, Probe, Query, Score, Target
from ragwitness.membership.forecast import refuse_all_unscorable, rehearse
from ragwitness.membership.methods.method_registry import build_audit, configure
from ragwitness.membership.methods.response_parsing.replies import (
    DECLINED,
    AnswerOutcome,
    read_answer,
)
from ragwitness.membership.plan import AuditPlan, Stages, among, stages_of
from ragwitness.membership.prepared import fitted_config
from ragwitness.membership.windows import WindowedAudit
from ragwitness.models.base import LanguageModel
from ragwitness.runner.budget import OPTIONS, Budget, Use
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, Spender, Worker
from ragwitness.targets.probe import CapabilityReport
from ragwitness.text.sample import load_sample
from ragwitness.text.words import cut_characters

# A pilot: can a method read this target at all? Tried before anything in question is sent.
#
# A few documents known to be outside are asked about twice: once with the text shown inside the
# question, so that any system can answer as if it held it, and once without. A method whose reading
# tells the two apart is possible at this target; another is refused with the reason. A pilot has a
# journal of its own: its answers calibrate nothing, since they are asked before all others.


FIRST = 4
"""Documents of a pilot, each asked about twice."""

DOCUMENTS = 8
"""The same where some of the first stood out, and too few: small models answer some questions."""

_NEEDED = 3
"""Of them, those that must stand out from every text not shown; of all, one more may do so from all
but one, which another document of the index may hold in part. By chance one pilot of five passes.
"""

_EXAMPLES = 2  # questions of each side that are kept to be looked at
_EXCERPT = 800  # characters of a document that are asked about and shown
_SHOWN = "Context: {passage}\n\n{question}"


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a method read of texts that were shown in the question, and of the same not shown.

    Attributes:
        method: The audit's name.
        shown: Scores of the texts shown.
        hidden: Scores of the same texts, not shown.
        queries: Sent for it, those answered from its journal included.
        heard: Some questions with their answers, of texts shown first.
        declined: Whether every answer about a text that was shown declined.
    """

    method: str
    shown: tuple[Score, ...]
    hidden: tuple[Score, ...]
    queries: int
    heard: tuple[tuple[str, str], ...] = ()
    declined: bool = False

    def apart(self, but: int = 0) -> int:
        """Count the texts shown whose score is above that of all texts not shown but so many."""
        hidden = sorted((s.value for s in self.hidden if s.value is not None), reverse=True)
        bar = hidden[but] if len(hidden) > but else -math.inf
        return sum(s.value is not None and s.value > bar for s in self.shown)

    @property
    def _unread(self) -> list[str]:
        """Why scores are missing, of the side that has fewer."""
        shown, hidden = ([s.reason or "" for s in side if s.value is None] for side in self._sides)
        return shown if len(shown) > len(hidden) else hidden

    @property
    def _sides(self) -> tuple[tuple[Score, ...], tuple[Score, ...]]:
        return self.shown, self.hidden

    @property
    def possible(self) -> bool:
        """Whether the method reads this target."""
        read = all(sum(s.value is not None for s in side) >= _NEEDED for side in self._sides)
        return read and any(
            self.apart(but) >= _NEEDED + but for but in range(1 + (len(self.shown) > FIRST))
        )

    @property
    def told(self) -> str:
        """What the pilot showed, in words."""
        but = self.apart() < _NEEDED and self.possible
        of = f"{self.apart(but)} of {len(self.shown)} texts shown in the question"
        if self.possible:
            told = f"in a pilot of {self.queries} questions {of} stood out from texts not shown"
            return told + but * ", all but one"
        if len(self.shown) < _NEEDED:
            return f"it can ask about {len(self.shown)} pilot texts, and {_NEEDED} are needed"
        if len(self._unread) > len(self.shown) - _NEEDED:
            ((why, times),) = Counter(self._unread).most_common(1)
            return f"{times} of {len(self.shown)} pilot answers cannot be read: {why}"
        told = f"in a pilot of {self.queries} questions"
        if self.declined:
            return f"{told} all about texts that were shown were declined: {DECLINED}"
        return f"{told} only {of} stood out from texts not shown"


class _ShownAudit:
    """An audit whose every question shows the document first."""

    def __init__(self, audit: Audit) -> None:
        self.name = f"{audit.name}, shown"
        self.requires = audit.requires
        self._audit = audit

    def probe(self, document: Document) -> Probe:
        generator = self._audit.probe(document)
        answers: list[Answer] | None = None
        while True:
            try:
                asked = generator.send(answers)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:
                score: Score = stop.value
                return score
            answers = yield [_showing(query, document) for query in asked]


def _showing(query: Query, document: Document) -> Query:
    # The question goes in last and once: a document may itself say "{question}".
    before, after = _SHOWN.split("{question}")
    return replace(query, prompt=before.replace("{passage}", document.text) + query.prompt + after)


def pilot_documents(known_out: Sequence[Document], audit: Audit) -> list[Document]:
    """Return excerpts that a method has questions for: of documents known to be outside.

    Where these are too few, generated ones of the package serve, which no system holds.
    """
    chosen: list[Document] = []
    for one in (*known_out, *load_sample()):
        if len(chosen) == DOCUMENTS:
            break
        # Of a document that is asked about in windows, one of these.
        windows = audit.windows(one) if isinstance(audit, WindowedAudit) else [one]
        shown = windows[0].text if windows else ""
        excerpt = replace(one, text=cut_characters(shown.strip(), _EXCERPT)[0])
        if _asks(audit.probe(excerpt)):
            chosen.append(excerpt)
    return chosen


def _asks(generator: Generator[list[Query], list[Answer], Score]) -> bool:
    """Whether a probe has a question at all."""
    try:
        next(generator)
    except StopIteration:
        return False
    generator.close()
    return True


def needs_pilot(audit: Audit) -> bool:
    """Whether a method reads answers; what reads retrieved passages alone needs no pilot."""
    return audit.requires != frozenset({Capability.CONTEXTS})


async def pilot_use(audit: Audit, known_out: Sequence[Document], proxy: LanguageModel) -> Use:
    """Return the most that a pilot may take: as if it showed each text twice."""
    documents = pilot_documents(known_out, audit) if needs_pilot(audit) else []
    _, each = await rehearse(_ShownAudit(audit), documents[:FIRST], proxy)
    return each.of(2 * len(documents))


async def run_pilot(
    target: Target,
    limiter: Spender | None,
    run: Path | None,
    audit: Audit,
    known_out: Sequence[Document],
    progress: Progress | None = None,
) -> Pilot:
    """Ask a target about texts shown in the question and not shown, and read the answers.

    Args:
        target: The system under audit.
        limiter: Lets the questions pass; None does not count them.
        run: Folder whose pilot journal answers what was asked before; None keeps nothing.
        audit: The method.
        known_out: Documents known to be outside; excerpts of the first few are asked about.
        progress: Called after each text.

    Raises:
        InputError: The pilot would pass a cap.
        TargetUnreachableError: No connection.
    """
    documents = pilot_documents(known_out, audit)
    found = Pilot(audit.name, (), (), 0)
    heard: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    declined: list[bool] = []  # of each text shown

    def hear(_document: Document, query: Query, answer: Answer) -> None:
        shown = query.prompt.startswith(_SHOWN.partition("{")[0])
        heard[shown] = [*heard[shown], (query.prompt, answer.text)][:_EXAMPLES]
        if shown:
            declined.append(read_answer(answer).outcome is AnswerOutcome.DECLINED)

    with ExitStack() as files:
        journal = files.enter_context(ResponseStore(run / PILOT)) if run else None
        worker = Worker(target, journal, watch=hear, limiter=limiter)
        # The first few; the rest where some of these stood out, and too few.
        for part in (documents[:FIRST], documents[FIRST:]):
            if found.shown and (found.possible or not found.apart(1)):
                break
            shown = await worker.run(_ShownAudit(audit), part, "pilot, shown", progress)
            # What cannot be read of texts that were shown needs no comparison.
            read = found.apart(1) or sum(one.score.value is not None for one in shown) >= _NEEDED
            hidden = await worker.run(audit, part if read else (), "pilot, hidden", progress)
            if any(one.capped for one in (*shown, *hidden)):
                raise InputError(
                    f"A cap ended the pilot of {audit.name}, which asks whether its answers can be"
                    " read.",
                    f"Raise {', '.join(sorted(set(OPTIONS.values())))}, whichever is given; or name"
                    " a --method, which is not piloted.",
                )
            found = Pilot(
                audit.name,
                (*found.shown, *(one.score for one in shown)),
                (*found.hidden, *(one.score for one in hidden)),
                found.queries + sum(one.queries for one in (*shown, *hidden)),
                (*heard[True], *heard[False]),
                {*declined} == {True},
            )
    return found


# The choice.

AUTO = "auto"
CANDIDATES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("passages", {}),
    ("runon", {}),
    ("s-rag:few", {}),
    ("mba", {}),
    ("rag-mia", {}),
)
"""Methods with their options, the best first; the last asks least."""

USUAL = CANDIDATES[1]
"""What is foreseen before the target was asked: few systems show what they retrieved."""

Piloting: TypeAlias = Callable[[Audit, Sequence[Document]], Awaitable[Pilot]]
"""Tries an audit on documents known to be outside, as
:func:`run_pilot` does once it has the target."""

_SAMPLE = 5  # documents of each kind that are rehearsed
_READABLE = 0.5  # share of them that a method must have a question for


@dataclass(frozen=True, slots=True)
class Choice:
    """A method that was chosen.

    Attributes:
        method: Registered name.
        config: Its configuration.
        why: One line: what it is, what it costs, and why none before it.
        asked: Queries so far: those that say what the target gives, and of all pilots.
    """

    method: str
    config: Any
    why: str
    asked: int


@dataclass(frozen=True, slots=True)
class _Fit:
    """How a candidate fits, what it and its pilot take, and what speaks against it in words."""

    audit: Audit
    method: str
    config: Any
    queries: float = 0.0
    whole: Use = Use()  # noqa: RUF009  # frozen
    trial: Use = Use()  # noqa: RUF009
    unusable: str = ""
    over: str = ""


async def choose(
    plan: AuditPlan,
    seen: CapabilityReport,
    proxy: LanguageModel,
    budget: Budget,
    piloting: Piloting,
) -> Choice:
    """Return the first candidate that the target, the documents and the caps admit.

    Where none stays within the caps, it is the one that asks least; a run that a cap ends can be
    resumed.

    Args:
        plan: Documents in question and known to be outside.
        seen: What the target was seen to give, and what that took.
        proxy: The auditor's own model.
        budget: Caps and prices.
        piloting: Tries whether answers can be read, candidate by candidate until they can.

    Raises:
        CapabilityError: No candidate can be used at all.
        InputError: A cap ended a pilot.
    """
    stages, passed = stages_of(plan, shadow=False), list[str]()
    known, spent = stages.reference.documents, Use(seen.requests)

    async def in_turn() -> AsyncIterator[_Fit]:
        # In the order given; what would pass a cap comes last, and what asks least of it first.
        dear = []
        for method, options in CANDIDATES:
            config = fitted_config(configure(method, options), seen.alternatives)
            audit = among(build_audit(method, proxy, config), plan.every_document)
            fit = await _fit(_Fit(audit, method, config), stages, seen, proxy)
            used = spent + fit.trial
            why = fit.unusable or _over("its pilot, with what is asked before it,", used, budget)
            over = _over("the whole", used + fit.whole, budget)
            if why or over:
                passed.append(f"not {audit.name}: {why or over}")
                dear += [] if why else [replace(fit, over=over)]
            else:
                yield fit
        for fit in sorted(dear, key=lambda one: one.queries):
            yield fit

    async for fit in in_turn():
        # Its answers must be readable; that is tried where nothing else speaks against it.
        found = await piloting(fit.audit, known) if needs_pilot(fit.audit) else None
        if found:
            spent += replace(fit.trial, queries=found.queries)
        if found is None or found.possible:
            return Choice(fit.method, fit.config, _why(fit, found, passed), spent.queries)
        passed.append(f"not {fit.audit.name}: {found.told}")
    raise CapabilityError(
        f"No method can be chosen ({'; '.join(passed)}).",
        "Look at answers of the target: ragwitness doctor TARGET. A method that is named with"
        " --method is not piloted.",
    )


async def refuse_beforehand(plan: AuditPlan, proxy: LanguageModel, budget: Budget) -> None:
    """Refuse, before anything is sent, what no candidate can do.

    Raises:
        InputError: There is nothing that could be scored, or each pilot alone would pass a cap.
    """
    audits = [
        among(build_audit(m, proxy, configure(m, options)), plan.every_document)
        for m, options in CANDIDATES
    ]
    await refuse_all_unscorable(audits, plan)
    least = audits[-1]
    pilot = await pilot_use(least, plan.known_out, proxy)
    if over := _over(f"the pilot of {least.name}, which asks least,", pilot, budget):
        raise InputError(
            f"No pilot stays within the caps, so nothing was sent: {over}.",
            "Raise it; or name a --method, which is not piloted.",
        )


async def _fit(fit: _Fit, stages: Stages, seen: CapabilityReport, proxy: LanguageModel) -> _Fit:
    # 1. What it needs, the target must give.
    if missing := sorted(fit.audit.requires - seen.capabilities):
        silent = f": {seen.silence}" if seen.silence and Capability.TEXT in missing else ""
        return replace(fit, unusable=f"the target does not give {', '.join(missing)}{silent}")
    # 2. It must have questions for most documents, tried on the first few of each kind.
    use = Use()
    for part in filter(None, stages.documents.values()):
        tried = part[:_SAMPLE]
        outcomes, each = await rehearse(fit.audit, tried, proxy)
        read = sum(bool(one.queries) for one in outcomes)
        if read < _READABLE * len(tried):
            return replace(fit, unusable=f"it can ask about {read} of {len(tried)} documents tried")
        use += each.of(len(part))
    trial = await pilot_use(fit.audit, stages.reference.documents, proxy)
    return replace(fit, queries=use.queries / stages.count, whole=use, trial=trial)


def _over(what: str, use: Use, budget: Budget) -> str:
    """Say which cap would be passed, if one would."""
    if cap := budget.passed(use):
        took = f"{what} would take {use.queries:,} queries and {use.tokens:,} tokens"
        return f"{took}, more than {OPTIONS[cap]} allows"
    return ""


def _why(fit: _Fit, pilot: Pilot | None, passed: Sequence[str]) -> str:
    beyond = "; no method stays within the caps, this one asks least" if fit.over else ""
    queries = "1 query" if fit.queries == 1 else f"{fit.queries:.3g} queries"
    told = f"auto chose {fit.audit.name}: {queries} a document{beyond}"
    seen = pilot.told if pilot else "the target shows the passages that it retrieves"
    return "; ".join((told, seen, *passed)) + "."
