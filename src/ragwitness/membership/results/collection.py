"""What was found about a whole collection, and what every report of it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import Decision, LeftOut, Shown
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
    """What was found about a whole collection.

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
        permutation_p_value: Of a permutation test over all documents; None after an early stop,
            which chooses high scores and would make it too small.
        spent: What the run folder has spent at the target; with a cap's name where that ended
            the search.
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
    permutation_p_value: float | None = None
    spent: Spending | None = None
    caution: str | None = None
    left_out: tuple[LeftOut, ...] = ()


def _dump(result: CollectionResult) -> Row:
    value = finite(result.e_value)
    told = {**asdict(result), "path": list(result.path), "e_value": value}
    if result.caution is None:
        del told["caution"]
    return told


def _rule(result: CollectionResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how an audit of a whole collection ends."""
    # A bet that has not paid is not evidence of absence: the only verdicts are in and inconclusive.
    found = Decision.IN.value if result.decided else Decision.INCONCLUSIVE.value
    if any(one.subject == found for one in conditions):
        return Ruling(ExitCode.FAILED, f"fails --fail-on {found}")
    if conditions and not result.decided:
        return Ruling(ExitCode.INCONCLUSIVE, "inconclusive: the evidence does not decide")
    return passed(conditions)


def _rows(result: CollectionResult) -> list[Row]:
    """One row per scored document, in the order of asking; which it is was never stored."""
    return [{"place": at, "log10_e": finite(e)} for at, e in enumerate(result.path, 1)]


def _report(result: CollectionResult) -> ReportDocument:
    spent = fmt.spent_text(result.spent)
    stopped = result.spent.stopped_by if result.spent else None
    # The permutation test is valid only if every document was asked about: stopping early chooses
    # high scores.
    permutation = (
        "only where all are asked about"
        if result.permutation_p_value is None
        else f"{result.permutation_p_value:.2g} (for information; only the e-value decides)"
    )
    facts = (
        ("System audited", result.target),
        ("Method", result.method),
        ("Level", fmt.percent(result.alpha)),
        ("e-value", f"{fmt.e_text(result.log10_e)} (decides at {1 / result.alpha:g})"),
        ("Anytime-valid p", f"{result.p_value:.2g}"),
        ("Permutation p", permutation),
        ("Asked about", f"{result.documents_asked} of {result.documents} documents"),
        ("Unscorable", fmt.count(result.unscorable)),
        ("Known outside", fmt.count(result.known_out)),
        ("Queries", fmt.count(result.queries)),
        ("Time", fmt.duration(result.seconds)),
        *([("Spent", spent)] if spent else []),
        *([("Stopped by", f"the {stopped} cap")] if stopped else []),
    )
    # The null is "like the documents outside": rejecting it says that the collection differs, and
    # membership is the reason only where source, date and kind are the same.
    said = "The collection is not like documents outside"
    if not result.decided:
        said = "Not decided about the collection"
    evidence = evidence_course(result.path, result.alpha)
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=f"{said} (e-value {fmt.e_text(result.log10_e)})",
        sentence=f"At the level {fmt.percent(result.alpha)}; it does not say which of its documents"
        " is inside."
        if result.decided
        else "It may be outside, or more documents are needed.",
        method=result.method,
        target=result.target,
        queries=result.queries,
        facts=facts[:4],
        brief=facts,
        warnings=(result.caution,) if result.caution else (),
        left_out=result.left_out,
        claimed=(
            "If the collection were outside, and like the documents known to be outside, the audit"
            f" would decide against that with probability at most {fmt.percent(result.alpha)},"
            " however often one looks.",
        ),
        not_claimed=(
            "It does not say which of its documents is inside.",
            "Where nothing is decided, it does not say that the collection is outside.",
        ),
        rests_on=(
            (
                "Assumption",
                "The known-outside documents are of the same source, date and kind. The system may"
                " have changed while it was asked: both kinds were, in one random order.",
            ),
        ),
        closing=(
            "It rests on the known-outside documents being of the same source, date and kind.",
            *(
                [
                    f"{stopped} cap reached; the same command with a higher {OPTIONS[stopped]}"
                    " resumes"
                ]
                if stopped
                else []
            ),
        ),
        sections=(Section("evidence", "The evidence", (evidence,), "page"),) if evidence else (),
        settings=facts,
        reading=(
            (
                "Level",
                "If the collection were outside, and like the documents known to be outside, the"
                " audit would decide against that with at most this probability, however often one"
                " looks.",
            ),
            (
                "e-value",
                "What a bet against “it is outside” has made of a stake of 1. It decides at 1"
                " divided by the level.",
            ),
            (
                "Anytime-valid p",
                "1 divided by the largest e-value so far: the evidence as a p-value that holds"
                " although one may stop at any time.",
            ),
        ),
    )


def evidence_course(path: Sequence[float], alpha: float) -> Curves | None:
    """Return the bet's winnings, document by document; None without any."""
    if not path:
        return None
    # Ville's inequality: under the null an e-value reaches 1 / alpha with probability at most
    # alpha, at any time.
    needed = -math.log10(alpha)
    said = (
        f"The e-value is {fmt.e_text(path[-1])} after {fmt.count(len(path))} scored documents;"
        f" it decides at {1 / alpha:g}."
    )
    lines = (
        Line("evidence", tuple(thinned([*enumerate([0.0, *path])]))),
        Line(f"decides at {1 / alpha:g}", ((0.0, needed), (len(path), needed)), 1, dashed=True),
    )
    panel = LinesPanel("", Axis("scored documents"), Axis("log10 of the e-value"), lines)
    return Curves("Evidence", lambda: [panel], said)


RESULT_TYPE: ResultType[CollectionResult, Condition] = ResultType(
    name="collection",
    words="audit of a collection",
    verb="audit --collection",
    dump=_dump,
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
