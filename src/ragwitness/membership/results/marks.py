"""The result of an audit of marked documents: JSON, conditions and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ragwitness.core.types import Decision, Shown
from ragwitness.membership.results.audit import LABELS, verdict_mark
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Column,
    Fold,
    Name,
    ReportDocument,
    Section,
    Style,
    Table,
    plain_table,
)
from ragwitness.report.result_type import (
    Condition,
    ResultType,
    Row,
    Ruling,
    parse_conditions,
    restored,
    rule_decided,
)
from ragwitness.report.spending import Spending


@dataclass(frozen=True, slots=True)
class LotRow:
    """One question about a lot.

    Attributes:
        before: The words before it.
        alternatives: What it was drawn from.
        drawn: What stands in the copy.
        named: What the answer names; None for none or several.
        way: ``continue`` names no alternative in the question, ``choose`` names all.
    """

    before: str
    alternatives: tuple[str, ...]
    drawn: str
    named: str | None
    way: str


@dataclass(frozen=True, slots=True)
class MarksVerdict:
    """The verdict on one marked document.

    Attributes:
        document: Its id.
        decision: ``in`` or ``inconclusive``; right lots are no sign of absence.
        lots: Words that were drawn in it.
        answered: Those of which the system named an alternative.
        right: Those that it named rightly.
        queries: Questions, stored answers included.
        p_value: Probability that a system without the document names so many rightly.
        adjusted: The same corrected for the number of documents (Holm).
        e_value: Winnings of a bet on each answer.
        reason: Why nothing is decided, in one line.
        evidence: The questions and what was named.
    """

    document: str
    decision: Decision
    lots: int
    answered: int
    right: int
    queries: int
    p_value: float | None = None
    adjusted: float | None = None
    e_value: float | None = None
    reason: str | None = None
    evidence: tuple[LotRow, ...] = ()


@dataclass(frozen=True, slots=True)
class MarksResult(Shown):
    """The verdicts on all marked documents.

    Attributes:
        target: Name of the system.
        alpha: Probability at most that any document is wrongly called in.
        commitment: To the lots, in hex.
        documents: In the order of the key.
        log10_e: Decimal logarithm of the winnings on all documents together.
        queries: Questions, stored answers included.
        seconds: Wall time.
        spent: Spending of the run folder.
        warnings: Cautions before a verdict is relied on.
        settings: How it was asked, label and value.
    """

    target: str
    alpha: float
    commitment: str
    documents: tuple[MarksVerdict, ...]
    log10_e: float
    queries: int
    seconds: float
    spent: Spending | None = None
    warnings: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def chance(p_value: float | None) -> str:
    """Return a probability as how often something happens."""
    if p_value is None:
        return fmt.MISSING
    if p_value > 0.5:
        return "more often than not"
    times = int(1 / max(p_value, 1e-300) + 1e-9)
    digits = max(0, len(str(times)) - 2)
    return f"once in {times // 10**digits * 10**digits:,} times"


def _counts(result: MarksResult) -> Counter[str]:
    return Counter(str(verdict.decision) for verdict in result.documents)


def _rule(result: MarksResult, conditions: Sequence[Condition]) -> Ruling:
    total = len(result.documents)
    rows = fmt.documents(total)
    return rule_decided(_counts(result), conditions, rows, total, "", "nothing is decided")


def _rows(result: MarksResult) -> list[Row]:
    names = RESULT_TYPE.columns
    return [{name: getattr(v, name) for name in names} for v in result.documents]


def _verdicts(result: MarksResult) -> Table:
    """The verdicts as a table for both media."""
    columns = (
        Column("Document", "name", "document"),
        Column("Verdict", "text", "verdict"),
        Column("Right of named of lots", "text", "right of named of lots"),
        Column("By chance", "text", "by chance"),
        Column("p for all", "value", "p for all"),
        Column("e-value", "value"),
        Column("", "text", ""),
    )

    def cells(verdict: MarksVerdict) -> Iterable[Cell]:
        yield Name(verdict.document)
        yield verdict_mark(verdict.decision)
        yield f"{verdict.right} of {verdict.answered} of {verdict.lots}"
        yield chance(verdict.p_value)
        yield from (verdict.adjusted, verdict.e_value, verdict.reason or "")

    return Table("The verdicts", columns, tuple(tuple(cells(v)) for v in result.documents))


def _words(verdict: MarksVerdict) -> Fold:
    """The questions about a document, for the page alone: they give its lots away."""
    names = ("the words before", "drawn from", "drawn", "named", "asked")
    rows = (
        (
            Name(row.before),
            ", ".join(row.alternatives),
            row.drawn,
            row.named or fmt.MISSING,
            row.way,
        )
        for row in verdict.evidence
    )
    share = f"{verdict.right} of {verdict.answered} right"
    style: Style = "in" if verdict.decision is Decision.IN else "inconclusive"
    return Fold(verdict.document, (plain_table("", names, rows),), share, style)


def _report(result: MarksResult) -> ReportDocument:
    texts, level, counts = prose("marks"), fmt.percent(result.alpha), _counts(result)
    words = "; ".join(f"{fmt.count(counts[d])} {LABELS[d]}" for d in Decision if counts[d])
    answered = sum(verdict.answered for verdict in result.documents)
    right = sum(verdict.right for verdict in result.documents)
    lots = sum(verdict.lots for verdict in result.documents)
    facts = (
        ("System", result.target),
        ("Lots", f"{fmt.count(answered)} of {fmt.count(lots)} named, {fmt.count(right)} rightly"),
        ("All documents together", f"e-value {fmt.e_text(result.log10_e)}"),
        ("Level", level),
        ("Commitment", result.commitment),
        ("Queries", fmt.count(result.queries)),
        ("Time", fmt.duration(result.seconds)),
        ("Spent", fmt.spent_text(result.spent)),
        *result.settings.items(),
    )
    asked = [verdict for verdict in result.documents if verdict.evidence]
    sections: list[Section] = [Section("verdicts", "The verdicts", (_verdicts(result),))]
    if asked:
        folds: tuple[Block, ...] = tuple(map(_words, asked))
        sections.append(Section("words", "The words, which give the lots away", folds, "page"))
    return ReportDocument(
        RESULT_TYPE.words,
        f"{fmt.count(counts['in'])} of {fmt.documents(len(result.documents))}: in the system",
        f"Of {fmt.documents(len(result.documents))}: {words}.",
        method="marks",
        target=result.target,
        queries=result.queries,
        facts=tuple(row for row in facts[:6] if row[1]),
        brief=tuple(row for row in facts if row[1]),
        warnings=result.warnings,
        claimed=tuple(line.format(level=level) for line in texts["claimed"]),
        not_claimed=tuple(texts["not_claimed"]),
        rests_on=(("Lots", texts["rests"]), ("Their secrecy", texts["sealed"])),
        sections=tuple(sections),
        settings=tuple(row for row in facts if row[1]),
        reading=tuple((term, text.format(level=level)) for term, text in texts["reading"].items()),
    )


RESULT_TYPE: ResultType[MarksResult, Condition] = ResultType(
    name="marks",
    words="audit of marked documents",
    verb="audit --marks",
    load=lambda data: restored(MarksResult, data, RESULT_TYPE),
    conditions=lambda texts: parse_conditions(texts, tuple(map(str, Decision))),
    rule=_rule,
    report=_report,
    rows=_rows,
    columns=dict.fromkeys(("document", "decision"), str)
    | dict.fromkeys(("lots", "answered", "right", "queries"), int)
    | dict.fromkeys(("p_value", "adjusted", "e_value"), float)
    | {"reason": str},
)
