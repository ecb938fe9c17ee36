"""``--method auto``: the first audit that the target, the documents and the caps admit.

A system that shows its passages is read from these. Any other is asked several kinds of questions
(``joint``), since a method that suits one target sees nothing at another. A pilot says whether the
answers can be read at all; it is advice, and the audit goes on all the same.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.run_files import PILOT
from ragwitness.core.types import Answer, Audit, Capability, Document, Probe, Query, Score, Target
from ragwitness.membership.assumptions import ranks_decide
from ragwitness.membership.forecast import refuse_unscorable, rehearse
from ragwitness.membership.joint import NATURAL
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan, Stages, among, stages_of
from ragwitness.membership.prepared import fitted_config
from ragwitness.membership.response_parsing.replies import (
    DECLINED,
    AnswerOutcome,
    read_answer,
)
from ragwitness.membership.windows import WindowedAudit
from ragwitness.models.base import LanguageModel
from ragwitness.runner.budget import OPTIONS, Budget, Use
from ragwitness.runner.capabilities import CapabilityReport
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, Spender, Worker
from ragwitness.text.sample import load_sample
from ragwitness.text.words import cut_characters

_log = logging.getLogger(__name__)

# A pilot: can a method read this target at all? It runs before any text of the user is sent.
#
# A few generated texts of the package are asked about twice: first hidden, then shown in the
# question, so that any system can answer as if it held them. A method reads this target if its
# scores differ between the two. A pilot has a separate response store: its answers calibrate
# nothing, since they come before all others.

TEXTS = 4
"""Documents of a pilot, each asked about twice."""

_NEEDED = 3
"""Shown texts that must stand out from every hidden text: by chance in one pilot of fourteen."""

_QUESTIONS = 3  # of a kind about a pilot text, where the choice is made: each wording once
_LOOK = 2  # questions that suffice for a document of which nothing is said, where pilots ran on
_EXAMPLES = 2  # questions of each side that are kept for the user
_EXCERPT = 800  # characters of a document that are asked about and shown
_SHOWN = "Context: {passage}\n\n{question}"


@dataclass(frozen=True, slots=True)
class Pilot:
    """Scores of texts that were shown in the question, and of the same texts hidden.

    Attributes:
        method: The audit's name.
        shown: Scores of the texts shown.
        hidden: Scores of the same texts, not shown.
        queries: Sent for it, those answered from its response store included.
        examples: Some questions with their answers, of texts shown first.
        declined: Whether every answer about a text that was shown declined.
    """

    method: str
    shown: tuple[Score, ...]
    hidden: tuple[Score, ...]
    queries: int
    examples: tuple[tuple[str, str], ...] = ()
    declined: bool = False

    def standing_out(self) -> int:
        """Count the shown texts that score above all hidden texts."""
        bar = max((s.value for s in self.hidden if s.value is not None), default=-math.inf)
        return sum(s.value is not None and s.value > bar for s in self.shown)

    @property
    def possible(self) -> bool:
        """Whether the method reads this target; scores of both sides are needed."""
        read = min(sum(s.value is not None for s in side) for side in (self.shown, self.hidden))
        return min(read, self.standing_out()) >= _NEEDED

    @property
    def runs_on(self) -> bool:
        """Whether the first questions made the target run on with every text that was shown."""
        details = [score.details for score in self.shown]
        return self.possible and all(
            counts.get("ran on", 0) > 0 and counts["asked"] <= _LOOK for counts in details
        )

    @property
    def told(self) -> str:
        """The outcome of the pilot, in words."""
        start = f"in a pilot of {self.queries} questions"
        count = f"{self.standing_out()} of {len(self.shown)} texts shown in the question"
        if self.possible:
            return f"{start} {count} stood out from texts not shown"
        if len(self.shown) < _NEEDED:
            return f"it can ask about {len(self.shown)} pilot texts, and {_NEEDED} are needed"
        # The side with fewer scores says why they are missing.
        sides = (self.hidden, self.shown)
        unread = max(([s.reason or "" for s in side if s.value is None] for side in sides), key=len)
        if len(unread) > len(self.shown) - _NEEDED:
            ((reason, times),) = Counter(unread).most_common(1)
            return f"{times} of {len(self.shown)} pilot answers cannot be read: {reason}"
        if self.declined:
            return f"{start} all about texts that were shown were declined: {DECLINED}"
        return f"{start} only {count} stood out from texts not shown"


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
                queries = generator.send(answers)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:
                score: Score = stop.value
                return score
            answers = yield [_showing(query, document) for query in queries]


def _showing(query: Query, document: Document) -> Query:
    # The question goes in last and once: a document may itself contain "{question}".
    before, after = _SHOWN.split("{question}")
    return replace(query, prompt=before.replace("{passage}", document.text) + query.prompt + after)


def pilot_documents(audit: Audit) -> list[Document]:
    """Return generated texts of the package, which no system holds, as far as a method asks."""
    chosen: list[Document] = []
    for document in load_sample():
        if len(chosen) == TEXTS:
            break
        # Of a document that is asked about in windows, the first window.
        windows = audit.windows(document) if isinstance(audit, WindowedAudit) else [document]
        text = windows[0].text if windows else ""
        excerpt = replace(document, text=cut_characters(text.strip(), _EXCERPT)[0])
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
    """Whether a method reads answers; one that reads passages alone needs no pilot."""
    return audit.requires != frozenset({Capability.CONTEXTS})


async def run_pilot(
    target: Target,
    limiter: Spender | None,
    run: Path | None,
    audit: Audit,
    progress: Progress | None = None,
) -> Pilot:
    """Ask a target about texts hidden, then shown in the question, and read the answers.

    Args:
        target: The system under audit.
        limiter: Lets the questions pass; None does not count them.
        run: Folder of the pilot's response store; None keeps nothing.
        audit: The method.
        progress: Called after each text.

    Raises:
        InputError: The pilot would pass a cap.
        TargetUnreachableError: No connection.
    """
    # 1. Excerpts, and a few answers for the user.
    documents = pilot_documents(audit)
    examples: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    declined: list[bool] = []  # of each text shown

    def watch(_document: Document, query: Query, answer: Answer) -> None:
        is_shown = query.prompt.startswith(_SHOWN.partition("{")[0])
        # The same ones at every start, in whatever order answers come.
        pairs = {*examples[is_shown], (query.prompt, answer.text)}
        examples[is_shown] = sorted(pairs)[:_EXAMPLES]
        if is_shown:
            declined.append(read_answer(answer).outcome is AnswerOutcome.DECLINED)

    # 2. Ask with the text hidden, then shown: a target with a memory has seen nothing before.
    with ExitStack() as files:
        journal = files.enter_context(ResponseStore(run / PILOT)) if run else None
        worker = Worker(target, journal, watch=watch, limiter=limiter)
        hidden = await worker.run(audit, documents, "pilot, hidden", progress)
        visible = await worker.run(_ShownAudit(audit), documents, "pilot, shown", progress)
    if any(outcome.capped for outcome in (*visible, *hidden)):
        raise InputError(
            f"A cap ended the pilot of {audit.name}, which asks whether its answers can be read.",
            f"Raise {', '.join(sorted(set(OPTIONS.values())))}, whichever is given; or name a"
            " --method, which is not piloted.",
        )
    pilot = Pilot(
        audit.name,
        tuple(outcome.score for outcome in visible),
        tuple(outcome.score for outcome in hidden),
        sum(outcome.queries for outcome in (*visible, *hidden)),
        (*examples[True], *examples[False]),
        {*declined} == {True},
    )
    _log.info("pilot of %s: %s", audit.name, pilot.told)
    return pilot


def _brief(config: Any) -> Any:
    """Return the configuration of a pilot: the first questions tell whether answers are read."""
    asks = getattr(config, "asks", "")
    return replace(config, **{asks: min(_QUESTIONS, getattr(config, asks))}) if asks else config


# The choice.

AUTO = "auto"
CANDIDATES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("passages", {}),
    ("joint", {}),
    ("mba", {}),
    ("rag-mia", {}),
)
"""Methods with their options, the best first; the last asks least."""

ALONE: tuple[tuple[str, Mapping[str, object]], ...] = (
    CANDIDATES[0],
    ("runon", {"natural": NATURAL, "enough": 30.0, "further": 12}),
)
"""The same where e-values decide alone: other kinds of questions add nothing to these, and asking
ends when two places or so were continued."""

USUAL = CANDIDATES[1]
"""The method of a forecast without a target: few systems show their passages."""

KINDS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("runon", {}),
    ("s-rag:few", {}),
    ("mba", {}),
    ("rag-mia", {}),
)
"""Methods that ``doctor`` tries."""

Piloting: TypeAlias = Callable[[Audit], Awaitable[Pilot]]
"""Tries whether a target's answers can be read: :func:`run_pilot` with a target."""

_FEW = 10  # documents that take hardly more questions than a pilot, where e-values decide alone
_SAMPLE = 5  # documents of each kind that are rehearsed
_READABLE = 0.5  # share of them that a method must have a question for


@dataclass(frozen=True, slots=True)
class Choice:
    """A method that was chosen.

    Attributes:
        method: Registered name.
        config: Its configuration.
        why: One line: its name, its cost, and why no candidate before it.
        asked: Queries so far: those that measured the target, and of all pilots.
    """

    method: str
    config: Any
    why: str
    asked: int


async def choose(
    plan: AuditPlan,
    seen: CapabilityReport,
    proxy: LanguageModel,
    budget: Budget,
    piloting: Piloting,
) -> Choice:
    """Return the first candidate that the target, the documents and the caps admit.

    If none stays within the caps, it is the one with the fewest queries; a run that a cap ends can
    be resumed.

    Args:
        plan: Documents in question and known to be outside.
        seen: Measured abilities of the target, and their cost.
        proxy: The auditor's own model.
        budget: Caps and prices.
        piloting: Tries whether answers can be read; a failure is reported, and decides nothing.

    Raises:
        CapabilityError: No candidate can be used at all.
        InputError: A cap ended a pilot.
    """
    stages, passed, spent = stages_of(plan, shadow=False), list[str](), seen.requests
    beyond_caps = list[tuple[float, str, Any, Audit]]()

    async def chosen(
        queries: float, method: str, config: Any, audit: Audit, beyond: str = ""
    ) -> Choice:
        """Return the choice, and what a pilot says of it."""
        nonlocal spent
        evidence = "the target shows the passages that it retrieves"
        if needs_pilot(audit) and alone and len(plan.documents) <= _FEW:
            evidence = "ten documents or fewer take no pilot"
        elif needs_pilot(audit):
            pilot = await piloting(
                among(build_audit(method, proxy, _brief(config)), plan.every_document)
            )
            spent, evidence = spent + pilot.queries, pilot.told
            if pilot.runs_on and hasattr(config, "look"):
                config = replace(config, look=_LOOK)
                evidence += f"; where {_LOOK} questions bring nothing, no more are asked"
            if not pilot.possible:
                evidence = f"{evidence}, so little may be found; it is asked all the same"
        many = "1 query" if queries == 1 else f"{queries:.3g} queries"
        cost = f"auto chose {audit.name}: about {many} a document{beyond}"
        return Choice(method, config, "; ".join((cost, evidence, *passed)) + ".", spent)

    # 1. In the order given; candidates beyond a cap are set aside.
    alone = bool(plan.references) and not ranks_decide(plan, stages.reference)
    for method, options in (*ALONE, *CANDIDATES[1:]) if alone else CANDIDATES:
        config = fitted_config(configure(method, options), seen.alternatives)
        audit = among(build_audit(method, proxy, config), plan.every_document)
        use, unusable = await _use_of(audit, stages, seen, proxy, by_odds=bool(plan.references))
        queries = use.queries / stages.count
        if cap := not unusable and budget.passed(use + Use(spent)):
            unusable = (
                f"the whole would take {use.queries + spent:,} queries and {use.tokens:,} tokens,"
                f" more than {OPTIONS[cap]} allows"
            )
            beyond_caps.append((queries, method, config, audit))
        if unusable:
            _log.info("auto passes over %s: %s", audit.name, unusable)
            passed.append(f"not {audit.name}: {unusable}")
        else:
            return await chosen(queries, method, config, audit)
    # 2. Where none stays within the caps: the one that asks least.
    if beyond_caps:
        beyond = "; no method stays within the caps, this one asks least"
        return await chosen(*min(beyond_caps, key=lambda candidate: candidate[0]), beyond)
    raise CapabilityError(
        f"No method can be chosen ({'; '.join(passed)}).",
        "Look at answers of the target: ragwitness doctor TARGET.",
    )


async def refuse_beforehand(plan: AuditPlan, proxy: LanguageModel) -> None:
    """Refuse documents that no candidate could score, before anything is sent.

    Raises:
        InputError: Nothing could be scored.
    """
    *first, last = (
        among(build_audit(m, proxy, configure(m, options)), plan.every_document)
        for m, options in CANDIDATES
    )
    for audit in first:
        with suppress(InputError):
            return await refuse_unscorable(audit, plan, plan.known_out)
    return await refuse_unscorable(last, plan, plan.known_out)


async def _use_of(
    audit: Audit, stages: Stages, seen: CapabilityReport, proxy: LanguageModel, *, by_odds: bool
) -> tuple[Use, str]:
    """Return the cost of an audit, and why it cannot be used; empty if it can.

    E-values (``by_odds``) decide without known documents, so these need no question.
    """
    # 1. The target must give everything it requires.
    if missing := sorted(audit.requires - seen.capabilities):
        silent = f": {seen.silence}" if seen.silence and Capability.TEXT in missing else ""
        return Use(), f"the target does not give {', '.join(missing)}{silent}"
    # 2. It must have questions for most documents, tried on the first few of each kind.
    use = Use()
    for stage, documents in stages.documents.items():
        tried = documents[:_SAMPLE]
        outcomes, cost = await rehearse(audit, tried, proxy)
        read = sum(bool(outcome.queries) for outcome in outcomes)
        if (stage == "documents" or not by_odds) and read < _READABLE * len(tried):
            return Use(), f"it can ask about {read} of {len(tried)} documents tried"
        use += cost.of(len(documents))
    return use, ""
