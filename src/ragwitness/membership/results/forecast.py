"""The result of ``ragwitness plan``: what audits would cost and could show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ragwitness.core.types import Shown
from ragwitness.membership.results.assumptions import VerdictReach
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Table,
    plain_table,
    table_rows,
)
from ragwitness.report.result_type import ResultType, Row, plain, restored
from ragwitness.runner.budget import Budget, Use
from ragwitness.stats.power import AuditPower, needed_together

_REASONS = 2  # shown per method; the JSON has all


@dataclass(frozen=True, slots=True)
class Spent:
    """What one document costs on average.

    Attributes:
        queries: Queries put to the target.
        sent: Tokens of their prompts, by the proxy's tokenizer.
        answer: Tokens that the target may answer with at most.
        longest: Characters of the longest prompt.
    """

    queries: float
    sent: float
    answer: float
    longest: int = 0

    def of(self, documents: int) -> Use:
        """Return what so many documents take."""
        return Use(*(round(documents * each) for each in (self.queries, self.sent, self.answer)))


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents of one kind.

    Attributes:
        documents: All there are.
        sampled: Those that were probed at the stand-in.
        reasons: Of them, those without a score before the first query, by reason.
        per_document: At a target that answers each query once and for all.
        per_document_most: At a target that says again what it was asked.
        own_seconds: The auditor's own work per document, at a target that takes no time.
        same_questions: Documents that cannot be scored since they ask the same question as
            another; all of them are looked at.
    """

    documents: int
    sampled: int
    reasons: Mapping[str, int]
    per_document: Spent
    per_document_most: Spent
    own_seconds: float = field(default=0.0, compare=False)
    same_questions: int = 0

    @property
    def lost(self) -> int:
        """Documents of the sample without a score."""
        return sum(self.reasons.values())

    @property
    def unscorable(self) -> int:
        """Documents without a score: the sample's share of all, and those that ask the same."""
        share = self.lost / max(1, self.sampled)
        return self.same_questions + round((self.documents - self.same_questions) * share)

    @property
    def scorable(self) -> int:
        """The others."""
        return self.documents - self.unscorable


@dataclass(frozen=True, slots=True)
class Expected:
    """What one method would cost and could show.

    Attributes:
        method: Registered name.
        documents: Those in question.
        known_out: Those that calibrate.
        shadow_of_your_own: It trains on a shadow system of the auditor's own, unseen by the target.
        power: By label of the separation; empty where nothing is known or can be scored.
        shadow_seconds: What asking the shadow system takes; 0 where there is none.
    """

    method: str
    documents: Workload
    known_out: Workload
    shadow_of_your_own: bool
    power: Mapping[str, AuditPower]
    shadow_seconds: float = field(default=0.0, compare=False)

    @property
    def own(self) -> float:
        """Seconds of the auditor's own work: its models' passes, and its shadow system."""
        both = (self.documents, self.known_out)
        return self.shadow_seconds + sum(part.documents * part.own_seconds for part in both)

    @property
    def queries(self) -> int:
        """Queries to the target in all, known-out documents included."""
        both = (self.documents, self.known_out)
        return round(sum(part.documents * part.per_document.queries for part in both))

    @property
    def dearest(self) -> Use:
        """The most that it asks: that many queries, and every answer as long as it may be.

        Tokens are the proxy's; passages that a RAG system adds to a prompt are not among them.
        """
        both = (self.documents, self.known_out)
        return sum((part.per_document_most.of(part.documents) for part in both), Use())


@dataclass(frozen=True, slots=True)
class Outlook(Shown):
    """Everything foreseen about one plan.

    Attributes:
        methods: One entry per method.
        alpha: Level of the verdicts.
        inside_share: Probability that a document in question is inside.
        calibration: ``"known-out"`` or ``"generated"``.
        warning: What to beware of; None where the user vouches for the calibration.
        tokens_by: Whose tokens are counted.
        sample_seed: Seed of the sample.
        in_flight: Queries at the same time.
        seconds_per_short_answer: As measured; None without a target.
        price_in: Price of a million tokens read; None where it is not known.
        price_out: Price of a million tokens written.
    """

    methods: tuple[Expected, ...]
    alpha: float
    inside_share: float
    calibration: str
    warning: str | None
    tokens_by: str
    sample_seed: int
    in_flight: int
    seconds_per_short_answer: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warning, where there is one."""
        return () if self.warning is None else (self.warning,)

    def cost(self, one: Expected) -> float | None:
        """Return what a method costs at most; None without prices."""
        return Budget(price_in=self.price_in, price_out=self.price_out).price(one.dearest)

    def time(self, one: Expected) -> tuple[float, float] | None:
        """Return the time from all queries side by side to one after the other.

        None without a latency. Two ends, because nobody knows how a target answers under load.
        """
        if self.seconds_per_short_answer is None:
            return None
        whole = one.queries * self.seconds_per_short_answer
        return whole / max(1, self.in_flight), whole


def dump(outlook: Outlook) -> Row:
    """Return ``{"methods": {name: {...}}, ...}``, with what follows from the counts."""
    methods = {one.method: _method(one, outlook) for one in outlook.methods}
    return dict(plain(asdict(outlook) | {"methods": methods}))


def _method(one: Expected, outlook: Outlook) -> Row:
    # Documents that cannot be scored cost nothing and decide nothing: p-values are counted without
    # them.
    asked, known = one.documents.scorable, one.known_out.scorable
    return asdict(one) | {
        "queries": one.queries,
        "queries_most": one.dearest.queries,
        "seconds": outlook.time(one),
        "seconds_of_your_own": one.own,
        "tokens_most": {"sent": one.dearest.prompt, "answer": one.dearest.completion},
        "cost_most": outlook.cost(one),
        "needed_together": needed_together(outlook.alpha, asked, known),
    }


def load(data: Mapping[str, Any]) -> Outlook:
    """Return what :func:`dump` was given; a share that nobody could measure is null there."""
    methods = [
        one
        | {
            "power": {
                label: {name: math.nan if value is None else value for name, value in told.items()}
                for label, told in one["power"].items()
            }
        }
        for one in data["methods"].values()
    ]
    return restored(Outlook, {**data, "methods": methods}, RESULT_TYPE)


def _report(outlook: Outlook) -> ReportDocument:
    asked = fmt.documents(outlook.methods[0].documents.documents)
    title = f"What audits of {asked} would cost and could show"
    return ReportDocument(
        RESULT_TYPE.words, title, warnings=outlook.warnings, sections=sections(outlook)
    )


def sections(outlook: Outlook) -> tuple[Section, ...]:
    """Return costs, then expected power, each with what it rests on, then what can be decided."""
    costs: list[Block] = [_costs(outlook), *map(_small, _about_costs(outlook))]
    parts = [Section("costs", "Costs", tuple(costs))]
    if any(one.power for one in outlook.methods):
        power: list[Block] = [_powers(outlook.methods), *map(_small, _about_power(outlook))]
        parts.append(Section("power", "Expected share of members found", tuple(power)))
    # What can be decided at all depends on numbers of documents alone, so methods share a sentence.
    groups = _alike(outlook.methods)
    reach = (_reach(same, outlook, named=len(groups) > 1) for same in groups)
    decided = tuple(Paragraph(line, "", brief=True) for line in reach)
    return (*parts, Section("decided", "What can be decided", decided))


def _small(text: str) -> Paragraph:
    return Paragraph(text, brief=True)


def _costs(outlook: Outlook) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in outlook.methods:
        asked, seconds, cost = one.documents, outlook.time(one), outlook.cost(one)
        rows.append(
            (
                Name(one.method),
                fmt.count(asked.unscorable),
                f"{asked.per_document.queries:.3g}",
                fmt.count(one.queries),
                fmt.count(round(asked.per_document.sent)),
                fmt.count(round(asked.per_document.answer)),
                *([] if cost is None else [f"{cost:.4g}"]),
                *([" to ".join(map(fmt.duration, seconds))] if seconds else []),
            )
        )
    priced, timed = outlook.price_in is not None, outlook.seconds_per_short_answer is not None
    more = [*(["cost"] * priced), *(["time"] * timed)]
    names = ("method", "lost", "q/doc", "queries", "sent", "answer", *more)
    return plain_table("What each method would cost", names, rows, "time")


def _about_costs(outlook: Outlook) -> Iterable[str]:
    first = outlook.methods[0]
    counted = []
    for asked, what in ((first.documents, "in question"), (first.known_out, "known outside")):
        part = f" (counted on {asked.sampled})" if asked.sampled < asked.documents else ""
        counted.append(f"{fmt.count(asked.documents)} {what}{part}")
    yield (
        f"{' and '.join(counted)}. lost: documents in question with no score before the first"
        f" query. sent, answer: tokens per document, as {outlook.tokens_by} counts them; answer is"
        " the most asked for."
    )
    if outlook.price_in is not None:
        yield (
            f"cost: at most, at {outlook.price_in:g} and {outlook.price_out:g} per million tokens"
            " sent and answered; the passages that a RAG system adds left aside."
        )
    own = ", ".join(f"{one.method} {fmt.duration(one.own)}" for one in outlook.methods)
    yield f"Besides, this machine works on the probes, and on a shadow system: {own}."
    if outlook.seconds_per_short_answer is not None:
        yield (
            f"time: from {outlook.in_flight} queries at once to one after the other, at the"
            f" {outlook.seconds_per_short_answer:.2f} s of a short answer; longer answers take"
            " longer."
        )
    for one in outlook.methods:
        if one.shadow_of_your_own:
            yield f"{one.method}: its shadow system is your own and costs the target nothing."
        if one.dearest.queries > one.queries:
            yield (
                f"{one.method}: up to {fmt.count(one.dearest.queries)} queries to a target that"
                " says again what it was asked."
            )
        for asked, what in ((one.documents, "in question"), (one.known_out, "known outside")):
            if asked.same_questions:
                yield (
                    f"{one.method}: {fmt.count(asked.same_questions)} {what} lost: they ask the"
                    " same question as another document."
                )
        for reason, n in Counter(one.documents.reasons).most_common(_REASONS):
            yield f"{one.method}: {n} of {one.documents.sampled} lost: {reason}."


def _alike(
    methods: Iterable[Expected], also: Callable[[Expected], object] | None = None
) -> list[list[Expected]]:
    """Put methods together that can score as many documents and agree in ``also``."""
    groups: dict[object, list[Expected]] = {}
    for one in methods:
        key = (one.documents.scorable, one.known_out.scorable, also and also(one))
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _powers(methods: Iterable[Expected]) -> Table:
    """Members found by method: over several separations, or at one with its spread."""
    groups = _alike(methods, lambda one: repr(one.power))  # NaN is not like itself; its text is
    labels = list(dict.fromkeys(label for same in groups for label in same[0].power))
    names = ["AUC", "found", "in 90 % of audits"] if len(labels) == 1 else labels
    rows: list[tuple[Cell, ...]] = []
    for same in groups:
        powers = same[0].power
        told: list[str | None] = [None] * len(names)
        if powers:
            told = [fmt.percent(powers[label].found) for label in labels]
        if powers and len(labels) == 1:
            told = _spread(powers[labels[0]])
        most = [power.false for power in powers.values() if not math.isnan(power.false)]
        rows.append((_names(same), *told, f"{max(most):.2g}" if most else None))
    columns = ("members found by", *names, "falsely in")
    return plain_table("Expected verdicts", columns, rows, columns[0])


def _spread(power: AuditPower) -> list[str | None]:
    spread = f"{fmt.percent(power.low)} to {fmt.percent(power.high)}"
    return [f"{power.auc:.3f}", fmt.percent(power.found), spread]


def _about_power(outlook: Outlook) -> Iterable[str]:
    rounds = min(p.rounds for one in outlook.methods for p in one.power.values())
    yield (
        f"Expected share of scored members with the verdict in at alpha {outlook.alpha:g}, if each"
        f" document is inside with probability {outlook.inside_share:g}; {fmt.count(rounds)}"
        " simulated audits with every answer readable. falsely in: expected documents outside"
        " among them (at most, where several AUCs are shown)."
    )


def _reach(same: list[Expected], outlook: Outlook, *, named: bool) -> str:
    """Say what so many known-out documents can decide at all."""
    asked, known = same[0].documents.scorable, same[0].known_out.scorable
    who = f"{_names(same)}: " if named else ""
    if not asked:
        return f"{who}no document in question can be scored."
    told = VerdictReach(outlook.alpha, asked, known, outlook.inside_share).told
    return f"{who}{told[:1].lower()}{told[1:]}" if named else told


def _names(same: list[Expected]) -> str:
    return ", ".join(one.method for one in same)


RESULT_TYPE: ResultType[Outlook, str] = ResultType(
    name="plan",
    words="forecast of audits",
    verb="plan --json",
    dump=dump,
    load=load,
    report=_report,
    rows=lambda outlook: table_rows(_report(outlook)),
)
