"""The result of ``ragwitness plan``: costs and expected verdicts of audits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.core.types import Shown
from ragwitness.membership.results.assumptions import VerdictReach
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
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
_INSIDE = 0.5  # assumed probability that a document in question is inside


@dataclass(frozen=True, slots=True)
class Spent:
    """Average cost of one document.

    Attributes:
        queries: Queries put to the target.
        sent: Tokens of their prompts, by the proxy's tokenizer.
        answer: Largest number of tokens in the target's answers.
        longest: Characters of the longest prompt.
    """

    queries: float
    sent: float
    answer: float
    longest: int = 0

    def of(self, documents: int) -> Use:
        """Return the cost of a number of documents."""
        return Use(*(round(documents * cost) for cost in (self.queries, self.sent, self.answer)))


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents of one kind.

    Attributes:
        documents: Their number.
        sampled: Those that were probed at the stand-in.
        reasons: Documents of the sample without a score before the first query, by reason.
        per_document: At a target that answers each query once and for all.
        per_document_most: At a target that repeats the question.
    """

    documents: int
    sampled: int
    reasons: Mapping[str, int]
    per_document: Spent
    per_document_most: Spent

    @property
    def unscorable(self) -> int:
        """Documents without a score: the sample's share of all."""
        return round(self.documents * sum(self.reasons.values()) / max(1, self.sampled))

    @property
    def scorable(self) -> int:
        """The others."""
        return self.documents - self.unscorable


@dataclass(frozen=True, slots=True)
class Expected:
    """Cost and expected verdicts of one method.

    Attributes:
        method: Registered name.
        documents: Those in question.
        known_out: Those that calibrate.
        shadow_of_your_own: It trains on a shadow system of the auditor's own, unseen by the target.
        power: By AUC; empty where nothing can be scored, or e-values decide.
    """

    method: str
    documents: Workload
    known_out: Workload
    shadow_of_your_own: bool
    power: Mapping[str, AuditPower]

    @property
    def queries(self) -> int:
        """Queries to the target in all, known-out documents included."""
        workloads = (self.documents, self.known_out)
        return sum(workload.per_document.of(workload.documents).queries for workload in workloads)

    @property
    def dearest(self) -> Use:
        """The highest cost: the most queries, and every answer as long as it may be.

        Tokens are the proxy's; the passages that a RAG system adds to a prompt are not counted.
        """
        workloads = (self.documents, self.known_out)
        return sum(
            (workload.per_document_most.of(workload.documents) for workload in workloads), Use()
        )


@dataclass(frozen=True, slots=True)
class Outlook(Shown):
    """The forecast of one plan.

    Attributes:
        methods: One entry per method.
        alpha: Level of the verdicts.
        calibration: ``"known-out"`` or ``"generated"``.
        warning: A caution about the calibration; None where the user vouches for it.
        tokens_by: Model whose tokens are counted.
        in_flight: Queries at the same time.
        seconds_per_short_answer: As measured; None without a target.
        price_in: Price of a million tokens read; None where it is not known.
        price_out: Price of a million tokens written.
    """

    methods: tuple[Expected, ...]
    alpha: float
    calibration: str
    warning: str | None
    tokens_by: str
    in_flight: int
    seconds_per_short_answer: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warning, where there is one."""
        return () if self.warning is None else (self.warning,)

    def cost(self, method: Expected) -> float | None:
        """Return the highest price of a method; None without prices."""
        return Budget(price_in=self.price_in, price_out=self.price_out).price(method.dearest)

    def time(self, method: Expected) -> tuple[float, float] | None:
        """Return the time from all queries side by side to one after the other.

        None without a latency. Two ends, because a target's answers under load are not known.
        """
        if self.seconds_per_short_answer is None:
            return None
        in_turn = method.queries * self.seconds_per_short_answer
        return in_turn / self.in_flight, in_turn


def dump(outlook: Outlook) -> Row:
    """Return ``{"methods": {name: {...}}, ...}``, with the figures that follow from the counts."""
    methods = {method.method: _method_row(method, outlook) for method in outlook.methods}
    return dict(plain(asdict(outlook) | {"methods": methods}))


def _method_row(method: Expected, outlook: Outlook) -> Row:
    # Documents that cannot be scored cost nothing and decide nothing: p-values are counted without
    # them.
    in_question, calibrating = method.documents.scorable, method.known_out.scorable
    return asdict(method) | {
        "queries": method.queries,
        "queries_most": method.dearest.queries,
        "seconds": outlook.time(method),
        "tokens_most": {"sent": method.dearest.prompt, "answer": method.dearest.completion},
        "cost_most": outlook.cost(method),
        "needed_together": needed_together(outlook.alpha, in_question, calibrating),
    }


def load(data: Mapping[str, Any]) -> Outlook:
    """Return the argument of :func:`dump`; null stands for a share that could not be measured."""
    # JSON has no NaN: null stands for it.
    methods = [
        method
        | {
            "power": {
                label: {name: math.nan if value is None else value for name, value in power.items()}
                for label, power in method["power"].items()
            }
        }
        for method in data["methods"].values()
    ]
    return restored(Outlook, {**data, "methods": methods}, RESULT_TYPE)


def _report(outlook: Outlook) -> ReportDocument:
    documents = fmt.documents(outlook.methods[0].documents.documents)
    title = f"Costs and expected verdicts of audits of {documents}"
    return ReportDocument(
        RESULT_TYPE.words, title, warnings=outlook.warnings, sections=sections(outlook)
    )


def sections(outlook: Outlook) -> tuple[Section, ...]:
    """Return costs, expected power, and what can be decided at all."""
    groups = _by_counts(outlook.methods)
    found_sections = [Section("costs", "Costs", (_costs(outlook), *_hints(_about_costs(outlook))))]
    if any(method.power for method in outlook.methods):
        hints = _hints(_about_power(outlook))
        found_sections.append(
            Section("power", "Expected share of members found", (_powers(groups), *hints))
        )
    # The numbers of documents alone say what can be decided at all, so methods share a sentence.
    reach = (_reach(group, outlook, named=len(groups) > 1) for group in groups)
    decided = tuple(Paragraph(line, "", brief=True) for line in reach)
    return (*found_sections, Section("decided", "Possible decisions", decided))


def _hints(lines: Iterable[str]) -> list[Paragraph]:
    return [Paragraph(line, brief=True) for line in lines]


def _costs(outlook: Outlook) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for method in outlook.methods:
        workload, seconds, cost = method.documents, outlook.time(method), outlook.cost(method)
        rows.append(
            (
                Name(method.method),
                fmt.count(workload.unscorable),
                f"{workload.per_document.queries:.3g}",
                fmt.count(method.queries),
                fmt.count(round(workload.per_document.sent)),
                fmt.count(round(workload.per_document.answer)),
                *([] if cost is None else [f"{cost:.4g}"]),
                *([" to ".join(map(fmt.duration, seconds))] if seconds else []),
            )
        )
    priced, timed = outlook.price_in is not None, outlook.seconds_per_short_answer is not None
    more = [*(["cost"] * priced), *(["time"] * timed)]
    names = ("method", "lost", "q/doc", "queries", "sent", "answer", *more)
    return plain_table("Cost of each method", names, rows, "time")


def _about_costs(outlook: Outlook) -> Iterable[str]:
    """Yield a remark for each column, and for each method that needs one."""
    # The meaning of the columns, with the sample behind the counts.
    first = outlook.methods[0]
    counted = []
    for workload, kind in ((first.documents, "in question"), (first.known_out, "known outside")):
        sampled = f" (counted on {workload.sampled})" * (workload.sampled < workload.documents)
        counted.append(f"{fmt.count(workload.documents)} {kind}{sampled}")
    yield (
        f"{' and '.join(counted)}. lost: documents in question without a score before the first"
        f" query. sent, answer: tokens per document, as {outlook.tokens_by} counts them; answer is"
        " the most asked for."
    )
    if outlook.price_in is not None:
        yield (
            f"cost: at most, at {outlook.price_in:g} and {outlook.price_out:g} per million tokens"
            " sent and answered; the passages that a RAG system adds left aside."
        )
    if outlook.seconds_per_short_answer is not None:
        yield (
            f"time: from {outlook.in_flight} queries at once to one after the other, at the"
            f" {outlook.seconds_per_short_answer:.2f} s of a short answer; longer answers take"
            " longer."
        )
    # Remarks on single methods.
    repeaters = [
        f"{method.method} {fmt.count(method.dearest.queries)}"
        for method in outlook.methods
        if method.dearest.queries > method.queries
    ]
    if repeaters:
        yield f"Where words come back, more is asked, at most: {', '.join(repeaters)}."
    for method in outlook.methods:
        if method.shadow_of_your_own:
            yield f"{method.method}: its shadow system is your own and costs the target nothing."
        for reason, n in Counter(method.documents.reasons).most_common(_REASONS):
            yield f"{method.method}: {n} of {method.documents.sampled} lost: {reason}."


def _by_counts(methods: Iterable[Expected]) -> list[list[Expected]]:
    """Group methods that can score equally many documents: their expected verdicts are equal."""
    # Equal numbers of scorable documents have equal power.
    groups: dict[tuple[int, int], list[Expected]] = {}
    for method in methods:
        key = (method.documents.scorable, method.known_out.scorable)
        groups.setdefault(key, []).append(method)
    return list(groups.values())


def _powers(groups: Iterable[list[Expected]]) -> Table:
    """Return the share of members found, by method and AUC."""
    labels = list(dict.fromkeys(label for group in groups for label in group[0].power))
    # One row for each group, one column for each AUC.
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        power = group[0].power
        shares = [fmt.percent(power[label].found) if power else None for label in labels]
        false = [level.false for level in power.values() if not math.isnan(level.false)]
        rows.append((_names(group), *shares, f"{max(false):.2g}" if false else None))
    columns = ("members found by", *labels, "falsely in")
    return plain_table("Expected verdicts", columns, rows, columns[0])


def _about_power(outlook: Outlook) -> Iterable[str]:
    rounds = min(power.rounds for method in outlook.methods for power in method.power.values())
    yield (
        f"Expected share of scored members with the verdict in at alpha {outlook.alpha:g}, if each"
        f" document is inside with probability {_INSIDE:g}; {fmt.count(rounds)} simulated audits"
        " with every answer readable. falsely in: expected documents outside among them, at most."
    )


def _reach(group: list[Expected], outlook: Outlook, *, named: bool) -> str:
    """Say whether the known-out documents suffice to decide anything."""
    in_question, calibrating = group[0].documents.scorable, group[0].known_out.scorable
    prefix = f"{_names(group)}: " if named else ""
    if not in_question:
        return f"{prefix}no document in question can be scored."
    alone = (
        f"Each document gets a verdict by itself, from an e-value of {1 / outlook.alpha:g} if all"
        f" are inside, and of {in_question / outlook.alpha:g} if one is."
    )
    ranks = VerdictReach(outlook.alpha, in_question, calibrating, _INSIDE).told
    return prefix + (ranks if group[0].power else alone)


def _names(group: list[Expected]) -> str:
    return ", ".join(method.method for method in group)


RESULT_TYPE: ResultType[Outlook, str] = ResultType(
    name="plan",
    words="forecast of audits",
    verb="plan --json",
    dump=dump,
    load=load,
    report=_report,
    rows=lambda outlook: table_rows(_report(outlook)),
)
