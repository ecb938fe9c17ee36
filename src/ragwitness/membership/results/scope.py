"""Access by accounts: a verdict for each pair of a document and an account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ragwitness.core.types import Decision, LeftOut, Shown
from ragwitness.membership.results.audit import LABELS, AuditResult, how_often_wrong, verdict_mark
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Column,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Table,
)
from ragwitness.report.result_type import (
    Condition,
    ResultType,
    Ruling,
    parse_conditions,
    restored,
    rule_decided,
)

_ALL = 40  # documents in a terminal


@dataclass(frozen=True, slots=True)
class ScopeCell:
    """One document, asked about with the credentials of one account.

    Attributes:
        document: Its id.
        account: Name of the account.
        verdict: Whether the system answers this account as if it could read the document.
        p_value: Rank among the documents known to be outside, asked about by the same account.
        q_value: The same, corrected for the documents of this account.
        reason: Why nothing is decided.
    """

    document: str
    account: str
    verdict: Decision
    p_value: float | None = None
    q_value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeResult(Shown):
    """The verdicts of all accounts.

    Attributes:
        target: Name of the system.
        alpha: Level of all verdicts together; each account's audit has an equal part of it.
        methods: How each account was audited, by its name.
        cells: All pairs, account by account.
        wrong: How often the verdict "in" is wrong, over all pairs.
        queries: Sent by all accounts.
        warnings: Cautions before a verdict is relied on.
        left_out: Files and rows that could not be read.
    """

    target: str
    alpha: float
    methods: Mapping[str, str]
    cells: tuple[ScopeCell, ...]
    wrong: str
    queries: int
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def scope_of(audits: Mapping[str, AuditResult], alpha: float) -> ScopeResult:
    """Put the audits of several accounts together.

    Each was judged at an equal part of ``alpha``. The share of wrong verdicts "in" is at most the
    sum of the accounts' shares. So ``alpha`` bounds its expectation, however the accounts' answers
    depend on each other.

    Args:
        audits: One for each account, of the same documents.
        alpha: Level of all of them together.
    """
    first = next(iter(audits.values()))
    loose = [how_often_wrong(a) for a in audits.values() if not a.calibration.exact]
    exact = prose("scope")["exact"].format(level=fmt.percent(alpha))
    # A warning appears once, with the accounts that it concerns.
    warned: dict[str, list[str]] = {}
    for name, audit in audits.items():
        for line in audit.warnings:
            warned.setdefault(line, []).append(name)
    # Copies of a document are no pairs of their own.
    cells = (
        ScopeCell(v.document, name, v.decision, v.p_value, v.q_value, v.reason)
        for name, audit in audits.items()
        for v in audit.own
    )
    return ScopeResult(
        target=first.target,
        alpha=alpha,
        methods={name: audit.method for name, audit in audits.items()},
        cells=tuple(cells),
        wrong=loose[0] if loose else exact,
        queries=sum(audit.queries for audit in audits.values()),
        warnings=tuple(
            f"{', '.join(names)}: {line}" if len(names) < len(audits) else line
            for line, names in warned.items()
        ),
        left_out=first.left_out,
    )


def _rule(result: ScopeResult, conditions: Sequence[Condition]) -> Ruling:
    counts, total = Counter(str(cell.verdict) for cell in result.cells), len(result.cells)
    pairs, unread = f"{fmt.count(total)} pairs", fmt.left_out(result.left_out)
    return rule_decided(counts, conditions, pairs, total, unread, "nothing is decided")


def _report(result: ScopeResult) -> ReportDocument:
    # 1. The cells by document and account.
    counts = Counter(cell.verdict for cell in result.cells)
    rows: dict[str, dict[str, ScopeCell]] = {}
    for cell in result.cells:
        rows.setdefault(cell.document, {})[cell.account] = cell
    reached = {cell.document for cell in result.cells if cell.verdict is Decision.IN}
    verdicts = "; ".join(f"{fmt.count(counts[d])} {LABELS[d]}" for d in Decision if counts[d])
    # Reached documents come first; a terminal shows the first rows alone.
    order = sorted(rows, key=lambda document: document not in reached)
    # 2. One column for each account.
    columns = (
        Column("Document", "name", "document"),
        *(Column(f"As {name}", "text", name) for name in result.methods),
    )
    lines: tuple[tuple[Cell, ...], ...] = tuple(
        (Name(document), *(verdict_mark(rows[document][name].verdict) for name in result.methods))
        for document in order
    )
    caption = "The verdict on each document, asked about by each account"
    # 3. A terminal shows the first rows, a page all of them.
    brief: list[Block] = [Table("", columns, lines[:_ALL])]
    if more := len(lines) - len(lines[:_ALL]):
        brief.append(Paragraph(f"{fmt.count(more)} more documents are in {{where}}.", brief=True))
    texts = prose("scope")
    return ReportDocument(
        RESULT_TYPE.words,
        f"{fmt.count(len(reached))} of {fmt.documents(len(rows))}: reached by another account",
        f"Of {fmt.count(len(result.cells))} pairs of a document and an account: {verdicts}.",
        method=", ".join(dict.fromkeys(result.methods.values())),
        target=result.target,
        queries=result.queries,
        facts=(
            ("System", result.target),
            *((f"Method as {name}", method) for name, method in result.methods.items()),
            ("Level of all pairs together", fmt.percent(result.alpha)),
            ("Queries", fmt.count(result.queries)),
        ),
        warnings=result.warnings,
        left_out=result.left_out,
        claimed=(texts["claimed"].format(wrong=result.wrong),),
        not_claimed=(texts["not_claimed"],),
        sections=(
            Section("short", "", tuple(brief), "terminal"),
            Section("matrix", "Access by account", (Table(caption, columns, lines),), "page"),
        ),
    )


RESULT_TYPE: ResultType[ScopeResult, Condition] = ResultType(
    name="scope",
    words="audit of access by account",
    verb="audit --as",
    load=lambda data: restored(ScopeResult, data, RESULT_TYPE),
    conditions=lambda texts: parse_conditions(texts, tuple(map(str, Decision))),
    rule=_rule,
    report=_report,
    rows=lambda result: [asdict(cell) for cell in result.cells],
    columns=dict.fromkeys(("document", "account", "verdict"), str)
    | dict.fromkeys(("p_value", "q_value"), float)
    | {"reason": str},
)
