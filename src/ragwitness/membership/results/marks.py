"""The result of an audit of marked documents: JSON, conditions and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.types import Decision, Shown
from ragwitness.membership.results.audit import verdict_mark
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Cell,
    Fold,
    Name,
    Paragraph,
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
        alternatives: The words to draw from.
        drawn: The one in the copy.
        named: The one in the answer; None for none or several.
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
        p_value: Probability that a system without the document names this number rightly, or more.
        e_value: Winnings of a bet on each answer.
        adjusted: The same corrected for the number of documents (Holm).
        reason: Why nothing is decided, in one line.
        evidence: The questions and their answers.
    """

    document: str
    decision: Decision
    lots: int
    answered: int
    right: int
    queries: int
    p_value: float
    e_value: float
    adjusted: float = 1.0
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
        beacon: Source and value of the public randomness; empty without one.
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
    beacon: str = ""


def chance(p_value: float) -> str:
    """Return a probability in words, as a frequency."""
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
    rows: list[tuple[Cell, ...]] = [
        (
            Name(verdict.document),
            verdict_mark(verdict.decision),
            f"{verdict.right} of {verdict.answered} of {verdict.lots}",
            chance(verdict.p_value),
            verdict.adjusted,
            verdict.e_value,
        )
        for verdict in result.documents
    ]
    names = ("document", "verdict", "right of named of lots", "by chance", "p for all", "e-value")
    return plain_table("", names, rows)


def _words(verdict: MarksVerdict) -> Fold:
    """Return the questions about a document, for the page alone: they give its lots away."""
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
    style: Style = "in" if verdict.decision is Decision.IN else "inconclusive"
    share = f"{verdict.right} of {verdict.answered} right"
    blocks = Paragraph(verdict.reason or ""), plain_table("", names, rows)
    return Fold(verdict.document, blocks, share, style)


def _report(result: MarksResult) -> ReportDocument:
    texts, level = prose("marks"), fmt.percent(result.alpha)
    lots, named, right = (
        fmt.count(sum(getattr(verdict, name) for verdict in result.documents))
        for name in ("lots", "answered", "right")
    )
    facts: tuple[tuple[str, str], ...] = (
        ("System", result.target),
        ("Lots", f"{named} of {lots} named, {right} rightly"),
        ("All documents together", f"e-value {fmt.e_text(result.log10_e)}"),
        ("Level", level),
        ("Queries", fmt.count(result.queries)),
        ("Commitment", result.commitment),
        ("Beacon", result.beacon),
        ("Time", fmt.duration(result.seconds)),
        ("Spent", fmt.spent_text(result.spent)),
    )
    facts = tuple(row for row in facts if row[1])
    documents = fmt.documents(len(result.documents))
    reasons = sorted({f"{v.document}: {v.reason}" for v in result.documents if v.reason})
    brief = [Paragraph(line, brief=True, page=False) for line in reasons]
    folds = tuple(_words(verdict) for verdict in result.documents)
    return ReportDocument(
        RESULT_TYPE.words,
        f"{fmt.count(_counts(result)['in'])} of {documents}: in the system",
        f"{named} of {lots} words were named, {right} of them rightly.",
        method="marks",
        target=result.target,
        queries=result.queries,
        facts=facts[:5],
        brief=facts,
        warnings=result.warnings,
        claimed=tuple(line.format(level=level) for line in texts["claimed"]),
        not_claimed=tuple(texts["not_claimed"]),
        rests_on=(("Lots", texts["rests"]), ("Their secrecy", texts["sealed"])),
        sections=(
            Section("verdicts", "The verdicts", (_verdicts(result), *brief)),
            Section("words", "The words, which give the lots away", folds, "page"),
        ),
        settings=facts,
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
