"""The result of an audit of a whole collection: JSON, conditions and report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import Decision, LeftOut, Shown
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Axis,
    Curves,
    Line,
    LinesPanel,
    ReportDocument,
    Section,
    thinned,
)
from ragwitness.report.result_type import (
    Condition,
    ResultType,
    Row,
    Ruling,
    finite,
    parse_conditions,
    passed,
    restored,
)
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import OPTIONS


@dataclass(frozen=True, slots=True)
class CollectionResult(Shown):
    """The verdict on a whole collection.

    Attributes:
        method: Name of the audit.
        target: Name of the system.
        alpha: Level.
        decided: Whether "the collection is like documents outside" is refused at ``alpha``.
        log10_e: Decimal logarithm of the e-value.
        p_value: Anytime-valid.
        documents_asked: Asked about before it was decided.
        documents: In the collection.
        known_out: Scored documents known to be outside.
        unscorable: Documents left out.
        queries: Queries sent, calibration included.
        seconds: Wall time.
        path: log10 of the e-value after each scored document, known ones included.
        e_value: The e-value; None where it is too large for a number.
        spent: Spending of the run folder at the target, with the name of the cap that ended the
            search.
        caution: Why the level does not hold; None where nothing speaks against it.
        left_out: Files and rows that were given and could not be read.
    """

    method: str
    target: str
    alpha: float
    decided: bool
    log10_e: float
    p_value: float
    documents_asked: int
    documents: int
    known_out: int
    unscorable: int
    queries: int
    seconds: float
    path: tuple[float, ...]
    e_value: float | None = None
    spent: Spending | None = None
    caution: str | None = None
    left_out: tuple[LeftOut, ...] = ()


def _rule(result: CollectionResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how an audit of a whole collection ends."""
    # A bet that has not paid is not evidence of absence: the only verdicts are in and inconclusive.
    verdict = Decision.IN.value if result.decided else Decision.INCONCLUSIVE.value
    if any(condition.subject == verdict for condition in conditions):
        return Ruling(ExitCode.FAILED, f"fails --fail-on {verdict}")
    if conditions and not result.decided:
        return Ruling(ExitCode.INCONCLUSIVE, "inconclusive: the evidence does not decide")
    return passed(conditions)


def _rows(result: CollectionResult) -> list[Row]:
    """One row per scored document, in the order of asking; its id was never stored."""
    return [{"place": at, "log10_e": finite(e)} for at, e in enumerate(result.path, 1)]


def _report(result: CollectionResult) -> ReportDocument:
    texts, level = prose("collection"), fmt.percent(result.alpha)
    stopped = result.spent.stopped_by if result.spent else None
    e_value = fmt.e_text(result.log10_e)
    rows = (
        ("System audited", result.target),
        ("Method", result.method),
        ("Level", level),
        ("e-value", f"{e_value} (decides at {1 / result.alpha:g})"),
        ("Anytime-valid p", f"{result.p_value:.2g}"),
        ("Asked about", f"{result.documents_asked} of {result.documents} documents"),
        ("Unscorable", fmt.count(result.unscorable)),
        ("Known outside", fmt.count(result.known_out)),
        ("Queries", fmt.count(result.queries)),
        ("Time", fmt.duration(result.seconds)),
        ("Spent", fmt.spent_text(result.spent)),
        ("Stopped by", f"the {stopped} cap" if stopped else ""),
    )
    # Rows without a value are left out.
    facts = tuple(row for row in rows if row[1])
    # A search that a cap ended can go on.
    closing = [texts["closing"]]
    if stopped:
        closing.append(
            f"{stopped} cap reached; the same command with a higher {OPTIONS[stopped]} resumes"
        )
    # The null is "like the documents outside": rejecting it says that the collection differs, and
    # membership is the reason only where source, date and kind are the same.
    verdict = "decided" if result.decided else "undecided"
    evidence = evidence_course(result.path, result.alpha)
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=f"{texts[verdict]} (e-value {e_value})",
        sentence=texts[f"sentence_{verdict}"].format(level=level),
        method=result.method,
        target=result.target,
        queries=result.queries,
        facts=facts[:4],
        brief=facts,
        warnings=(result.caution,) if result.caution else (),
        left_out=result.left_out,
        claimed=(texts["claimed"].format(level=level),),
        not_claimed=tuple(texts["not_claimed"]),
        rests_on=(("Assumption", texts["assumption"]),),
        closing=tuple(closing),
        sections=(Section("evidence", "The evidence", (evidence,), "page"),) if evidence else (),
        settings=facts,
        reading=tuple(texts["reading"].items()),
    )


def evidence_course(path: Sequence[float], alpha: float) -> Curves | None:
    """Return the bet's winnings, document by document; None without any."""
    if not path:
        return None
    # Ville's inequality: under the null an e-value reaches 1 / alpha with probability at most
    # alpha, at any time.
    decides = f"decides at {1 / alpha:g}"
    caption = (
        f"The e-value is {fmt.e_text(path[-1])} after {fmt.count(len(path))} scored documents;"
        f" it {decides}."
    )
    bound = -math.log10(alpha)
    lines = (
        Line("evidence", tuple(thinned([*enumerate([0.0, *path])]))),
        Line(decides, ((0.0, bound), (len(path), bound)), 1, dashed=True),
    )
    panel = LinesPanel("", Axis("scored documents"), Axis("log10 of the e-value"), lines)
    return Curves("Evidence", lambda: [panel], caption)


RESULT_TYPE: ResultType[CollectionResult, Condition] = ResultType(
    name="collection",
    words="audit of a collection",
    verb="audit --collection",
    load=lambda data: restored(CollectionResult, data, RESULT_TYPE),
    recognises=lambda data: "summary" not in data and "log10_e" in data,
    conditions=lambda texts: parse_conditions(
        texts, (Decision.IN.value, Decision.INCONCLUSIVE.value), counted=False
    ),
    rule=_rule,
    report=_report,
    rows=_rows,
    columns={"place": int, "log10_e": float},
)
