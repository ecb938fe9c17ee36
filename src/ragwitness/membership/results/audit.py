"""The result of an audit of documents: verdicts, JSON, conditions and report."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from ragwitness.core.types import Decision, LeftOut, Shown, Verdict
from ragwitness.membership.results.assumptions import SetLikeness, VerdictPower
from ragwitness.membership.results.odds import OddsScale
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Column,
    Curves,
    EvidenceWord,
    Fold,
    LazyRows,
    Line,
    Mark,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Share,
    Style,
    Table,
    Words,
    roc_curve,
    step_line,
    unit_panel,
)
from ragwitness.report.geometry import Histogram, histogram
from ragwitness.report.result_type import (
    Condition,
    ResultType,
    Row,
    Ruling,
    TestCase,
    finite,
    malformed,
    parse_conditions,
    plain,
    restored,
    rule_decided,
)
from ragwitness.report.spending import Spending
from ragwitness.stats.evaluation import Evaluation
from ragwitness.stats.rates import Rate

LABELS = {
    Decision.IN: "in the database",
    Decision.INCONCLUSIVE: "inconclusive",
    Decision.OUT: "no sign of it",
}
"""Names of the verdicts; "out" claims no more than the absence of evidence."""

_ORDER = (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)
_STYLES: dict[Decision, Style] = {
    Decision.IN: "in",
    Decision.INCONCLUSIVE: "inconclusive",
    Decision.OUT: "out",
}
_SHORT = {Decision.IN: "IN", Decision.INCONCLUSIVE: "inconclusive", Decision.OUT: "out"}
_WORDS = 5  # of evidence shown per document
_OPEN = 200  # documents up to which the longest list is unfolded at first
_ALL, _TELLING = 40, 20  # lines in a terminal: of a short list, and of a longer one
_UNSCORABLE = "unscorable"
_COPY = "a copy of "  # begins the reason of a verdict that is another document's


@dataclass(frozen=True, slots=True)
class Calibration:
    """Documents outside the target that the p-values are ranked against.

    Attributes:
        source: ``"known-out"`` (given by the user as outside), ``"auxiliary"`` or
            ``"generated"`` (the corpus that ships with the package).
        n: How many of them could be scored.
        exact: Whether the guarantee rests only on the calibration documents being
            exchangeable with the audited non-members by the user's own statement.
        note: The assumption in one sentence, printed with the verdicts.
        scores: Their scores, for the distribution plot, shape (n,).
        likeness: Of their texts to those in question; None where an earlier version audited.
        largest_tie: Documents with the same score as each other, at most.
        ties: How equal scores were ranked: ``"conservative"`` or ``"random"``.
        power: Possible decisions with these scores; None in earlier versions' results.
        groups: Groups that they count by, one vote each; 0 where each counts by itself.
    """

    source: str
    n: int
    exact: bool
    note: str
    scores: tuple[float, ...] = ()
    likeness: SetLikeness | None = None
    largest_tie: int = 0
    ties: Literal["conservative", "random"] = "conservative"
    power: VerdictPower | None = None
    groups: int = 0

    @property
    def votes(self) -> int:
        """How many of them count: documents, or groups of them."""
        return self.groups or self.n

    @property
    def unlike(self) -> bool:
        """Whether their texts differ from those in question."""
        return self.likeness is not None and self.likeness.unlike


@dataclass(frozen=True, slots=True)
class AuditResult(Shown):
    """A finished audit.

    Attributes:
        method: Registered name of the audit with its mode, e.g. ``"s-rag (single)"``.
        target: Name of the system under audit.
        alpha: Level of the verdicts.
        started: When it began, ISO 8601 in UTC.
        seconds: Wall time.
        queries: Queries sent to the target by this audit, calibration included.
        verdicts: One per document, in the order given.
        calibration: Basis of the p-values.
        evaluation: Present where every document's membership is known.
        settings: Everything in use, as label and value, in the order to print.
        warnings: Cautions before a verdict is relied on.
        ragwitness: Version of this package.
        spent: Spending at the target.
        left_out: Files and rows that were given and could not be read.
        odds: The absolute scale; None where no reference model was asked.
    """

    method: str
    target: str
    alpha: float
    started: str
    seconds: float
    queries: int
    verdicts: tuple[Verdict, ...]
    calibration: Calibration
    evaluation: Evaluation | None
    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    ragwitness: str = ""
    spent: Spending | None = None
    left_out: tuple[LeftOut, ...] = ()
    odds: OddsScale | None = None

    @property
    def own(self) -> tuple[Verdict, ...]:
        """Verdicts of documents, copies once: a copy was no separate test."""
        return tuple(
            v for v in self.verdicts if v.queries or not (v.reason or "").startswith(_COPY)
        )

    def count(self, decision: Decision) -> int:
        """Number of documents with this verdict."""
        return sum(verdict.decision is decision for verdict in self.own)

    @property
    def ranked(self) -> bool:
        """Whether verdicts may rest on ranks; else the whole level belongs to e-values."""
        return self.odds is None or self.odds.alpha < self.alpha

    @property
    def unscorable(self) -> int:
        """Number of documents without a score."""
        return sum(verdict.score is None for verdict in self.own)


# The stored form: {"documents": [...], "summary": {...}}.

_NAMES = {"verdicts": "documents", "decision": "verdict", "document": "id"}
_PRIVATE = {public: private for private, public in _NAMES.items()}
_SUMMARY = (
    *("alpha", "method", "target", "started", "seconds", "queries", "spent"),
    *("calibration", "evaluation", "settings", "warnings", "odds", "left_out"),
)
_RATES = ("auc", "accuracy", "f1", "tpr_at_1_fpr", "false_positives", "true_positives")
_NOT_FINITE = "the score is not a finite number"


def from_json(data: Mapping[str, Any]) -> AuditResult:
    """Return an audit from its JSON.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    return RESULT_TYPE.opened(data)


def _head(result: AuditResult) -> Row:
    # JSON has no NaN: a calibration score that is not finite is left out, an undefined rate becomes
    # null.
    calibration = asdict(result.calibration)
    calibration["scores"] = [x for x in result.calibration.scores if math.isfinite(x)]
    if power := result.calibration.power:
        calibration["power"].update(told=power.told, told_out=power.told_out)
    row = plain(asdict(replace(result, verdicts=()))) | {"calibration": plain(calibration)}
    counts, documents = _counts(result)
    unscorable = counts.pop(_UNSCORABLE)
    summary = {
        "counts": {**counts, "documents": documents, "unscorable": unscorable},
        **{name: row[name] for name in _SUMMARY},
        "version": result.ragwitness,
    }
    return {"summary": summary}


def _rows(result: AuditResult) -> Sequence[Row]:
    return LazyRows(result.verdicts, _document_row)


def _document_row(verdict: Verdict) -> Row:
    """Return the row of one document, with None for a missing number."""
    # A score that is not finite is stored as null with its reason; it never becomes 0.
    score = finite(verdict.score)
    undefined = verdict.score is not None and score is None
    return {
        "id": verdict.document,
        "verdict": verdict.decision.value,
        "p_value": finite(verdict.p_value),
        "score": score,
        "queries": verdict.queries,
        "q_value": finite(verdict.q_value),
        "p_out": finite(verdict.p_out),
        "classifier": finite(verdict.classifier),
        "reason": verdict.reason or (_NOT_FINITE if undefined else None),
        "member": verdict.member,
        # Without numbers a word is no evidence.
        "evidence": [
            plain(asdict(word))
            for word in verdict.evidence
            if math.isfinite(word.probability.low) and math.isfinite(word.probability.high)
        ],
        **({"windows": verdict.windows, "share": verdict.share} if verdict.windows else {}),
        **(
            {
                "e_value": finite(verdict.e_value),
                "e_level": finite(verdict.e_level),
                "by": verdict.by,
            }
            if verdict.e_value is not None
            else {}
        ),
    }


_COLUMNS = (
    {"id": str, "verdict": str, "p_value": float, "score": float, "queries": int}
    | dict.fromkeys(("q_value", "p_out", "classifier"), float)
    | {"reason": str, "member": bool}
    | {
        "evidence": [
            {
                "word": str,
                "before": str,
                "probability": {"low": float, "high": float},
                "baseline": float,
            }
        ]
    }
    | {"windows": int, "share": float, "e_value": float, "e_level": float, "by": str}
)


def _load(data: Mapping[str, Any]) -> AuditResult:
    json.dumps(data, allow_nan=False)  # another program wrote what is not strict JSON
    # The stored form is older than the class: verdicts are "documents" there, a decision is
    # "verdict".
    summary = _object(data, "summary")
    if summary.get("evaluation") is not None:
        evaluation = _object(summary, "evaluation")
        # An undefined rate is null in JSON and NaN in memory.
        rates = {
            name: {k: math.nan if v is None else v for k, v in _object(evaluation, name).items()}
            for name in _RATES
        }
        summary["evaluation"] = {**evaluation, **rates}
    # "version" is the package's here and not the form's: it makes room for ResultType.version.
    if "version" not in summary:
        raise malformed(RESULT_TYPE, "version", "missing")
    summary["ragwitness"] = summary.pop("version")
    calibration = _object(summary, "calibration")
    if isinstance(power := calibration.get("power"), Mapping):
        # The sentences follow from the numbers.
        numbers = {key: value for key, value in power.items() if not key.startswith("told")}
        summary["calibration"] = calibration | {"power": numbers}
    documents = data.get("documents")
    if not isinstance(documents, list):
        raise malformed(RESULT_TYPE, "documents", "missing, or not a list")
    summary["verdicts"] = [_verdict(row) if isinstance(row, Mapping) else row for row in documents]
    return restored(AuditResult, summary, RESULT_TYPE, _NAMES)


def _verdict(stored: Mapping[str, Any]) -> Row:
    # Stored names differ from those of the class.
    row = {_PRIVATE.get(key, key): value for key, value in stored.items()}
    if isinstance(words := row.get("evidence"), list):
        # A baseline that the proxy was not asked for is null in JSON and NaN in memory.
        row["evidence"] = [
            {**word, "baseline": math.nan}
            if isinstance(word, Mapping) and word.get("baseline", 0) is None
            else word
            for word in words
        ]
    return row


def _object(parent: Mapping[str, Any], name: str) -> Row:
    value = parent.get(name)
    if not isinstance(value, Mapping):
        raise malformed(RESULT_TYPE, name, "missing, or not an object")
    return dict(value)


# Conditions: whether an audit passes.


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read the conditions of an audit: ``in``, ``out``, ``inconclusive``, ``unscorable``.

    Raises:
        InputError: One is not in the grammar, or no document at all could meet it.
    """
    return parse_conditions(texts, (*(decision.value for decision in Decision), _UNSCORABLE))


def rule(result: AuditResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how an audit ends; without conditions it passes once it is finished.

    An audit passes its conditions only if it decided something.
    """
    counts, total = _counts(result)
    unread, undecided = fmt.left_out(result.left_out), "no document is said to be in or out"
    return rule_decided(counts, conditions, fmt.documents(total), total, unread, undecided)


def _counts(result: AuditResult) -> tuple[dict[str, int], int]:
    """Documents by verdict, unscorable ones, and all."""
    counts = {decision.value: result.count(decision) for decision in Decision}
    return {**counts, _UNSCORABLE: result.unscorable}, len(result.own)


def _concerns(condition: Condition, verdict: Verdict) -> bool:
    if condition.subject == _UNSCORABLE:
        return verdict.score is None  # it is inconclusive too
    return verdict.decision.value == condition.subject


def _cases(result: AuditResult, conditions: Sequence[Condition]) -> list[TestCase]:
    """A document fails where it is among those that met a condition.

    It is skipped where the audit says neither in nor out, and passes otherwise.
    """
    # The condition is met for the whole run; the documents behind it are those that fail.
    counts, total = _counts(result)
    failing = [
        condition for condition in conditions if condition.met(counts[condition.subject], total)
    ]
    return [_case(verdict, failing) for verdict in result.verdicts]


def _case(verdict: Verdict, failing: Sequence[Condition]) -> TestCase:
    # Every message has the figures; the words of evidence follow below it.
    label, words = LABELS[verdict.decision], words_of(verdict)
    noun = "query" if verdict.queries == 1 else "queries"
    figures = (
        f"p {fmt.p_text(verdict.p_value)}, q {fmt.p_text(verdict.q_value)},"
        f" score {fmt.score_text(verdict.score)}, {fmt.count(verdict.queries)} {noun}"
    )
    lines = (f"{w.before} {w.word}: {w.target} / {w.baseline}" for w in words.items)
    evidence = "\n".join(line for line in (words.reason, *lines) if line)
    state: Literal["passed", "failed", "skipped"] = "passed"
    message = f"{label}: {figures}"
    if met := ", ".join(str(condition) for condition in failing if _concerns(condition, verdict)):
        state, message = "failed", f"{message}; --fail-on {met}"
    elif verdict.decision is Decision.INCONCLUSIVE:
        state, message, evidence = "skipped", f"{words.reason or label} ({figures})", ""
    return TestCase(verdict.document, state, message, evidence, verdict.decision.value)


# The report; ``prose.toml`` has its fixed sentences.


def headline(result: AuditResult) -> tuple[str, str]:
    """Return the verdict counts as a title and the sentence below it."""
    total, accused = len(result.own), result.count(Decision.IN)
    if not total:
        return "No documents were audited", "There is nothing to report."
    title = f"{fmt.count(accused)} of {fmt.documents(total)}: in the database"
    # The title counts accusations alone; everything else is in the sentence below it.
    rest = []
    if absent := result.count(Decision.OUT):
        verb = "shows" if absent == 1 else "show"
        rest.append(f"{fmt.count(absent)} {verb} no sign of being in it")
    if unsure := result.count(Decision.INCONCLUSIVE):
        rest.append(f"{fmt.count(unsure)} {'is' if unsure == 1 else 'are'} inconclusive")
    sentence = "; ".join(rest) or "All have this verdict"
    if result.unscorable:
        sentence += f"; {fmt.count(result.unscorable)} could not be scored at all"
    return title, sentence + "."


def strength(verdict: Verdict) -> tuple[int, float]:
    """Sort key: verdicts in the order of a report, strongest evidence for each first."""
    # Each verdict is ranked by the test that made it; documents without a p-value come last.
    p = verdict.p_out if verdict.decision is Decision.OUT else verdict.p_value
    return _ORDER.index(verdict.decision), 2.0 if p is None or math.isnan(p) else p


def words_of(verdict: Verdict) -> Words:
    """Return the words that decided about a document, formatted."""
    reason = verdict.reason or ("" if verdict.score is not None else "could not be scored")
    # The extent is said of documents that were asked about in part.
    if verdict.windows:
        many = "1 window" if verdict.windows == 1 else f"{verdict.windows} windows"
        extent = f"asked about {many}, {fmt.percent(verdict.share)} of its text"
        extent += "; a part may be inside" * (verdict.decision is Decision.IN)
        reason = "; ".join(filter(None, (reason, extent)))
    # Text of an untrusted system is made visible and cut.
    items = tuple(
        EvidenceWord(
            fmt.visible(word.before, 80),
            fmt.visible(word.word, 80),
            fmt.probability(word.probability),
            fmt.probability(word.baseline),
        )
        for word in verdict.evidence[:_WORDS]
    )
    return Words(items, max(0, len(verdict.evidence) - _WORDS), reason)


def _measures(result: AuditResult) -> tuple[tuple[str, Rate, str, str], ...]:
    """Return name, rate, meaning and a short remark of each rate; none without the truth."""
    evaluation = result.evaluation
    if evaluation is None:
        return ()
    # Two kinds of rate: those of the method's own threshold, and those of the p-values at alpha.
    # Only the latter were promised, so only they are judged as kept or broken.
    level, by = fmt.percent(result.alpha), evaluation.decided_by.replace("<=", "≤")
    promise = f"promised: at most {level}{_kept(result.alpha, evaluation.false_positives)}"
    below = f"p \N{LESS-THAN OR EQUAL TO} {level}"
    meanings = prose("audit")["measures"]
    rows = (
        ("AUC", evaluation.auc, "auc", "0.5 is guessing"),
        ("Accuracy", evaluation.accuracy, "accuracy", by),
        ("F1", evaluation.f1, "f1", by),
        ("TPR at 1 % FPR", evaluation.tpr_at_1_fpr, "tpr", ""),
        ("False positives", evaluation.false_positives, "false_positives", promise),
        ("True positives", evaluation.true_positives, "true_positives", f"members with {below}"),
    )
    return tuple(
        (name, rate, meanings[key].format(by=by, below=below, promise=promise), remark)
        for name, rate, key, remark in rows
    )


def _kept(alpha: float, rate: Rate) -> str:
    """Say whether the realised rate is compatible with the level promised."""
    # The promise is compared with the interval, not with the rate: few documents break nothing.
    if math.isnan(rate.low):
        return ""
    if rate.low > alpha:
        return "; broken"
    return "; above, but within chance" if rate.value > alpha else "; kept"


def how_often_wrong(result: AuditResult) -> str:
    """Say how often the verdict "in the database" is wrong."""
    # Benjamini-Hochberg bounds the share of false accusations; without it alpha bounds each test by
    # itself (docs/design/verdicts.md).
    key = "corrected" if _correction(result) != "none" else "single"
    by_odds = result.odds is not None and result.calibration.source == "generated"
    if by_odds or any("odds" in (verdict.by or "") for verdict in result.verdicts):
        key = "odds"
    elif result.calibration.unlike or not result.calibration.exact:
        key = "unlike" if result.calibration.unlike else "not_exact"
    sentence: str = prose("audit")["wrong"][key]
    return sentence.format(level=fmt.percent(result.alpha))


_PARTS = (0.5, 0.2, 0.1, 0.05)  # of a document, that may alone be inside


def _claimed(result: AuditResult) -> Iterator[str]:
    for sentence in prose("audit")["claimed"]:
        yield sentence.format(wrong=how_often_wrong(result))
    if windows := max((verdict.windows for verdict in result.own), default=0):
        # As if each were drawn from all of the text; they stand apart, so they meet a part more
        # often.
        chances = ", ".join(
            f"{fmt.percent(1 - (1 - share) ** windows)} for {fmt.percent(share)} of it"
            for share in _PARTS
        )
        many = "1 window" if windows == 1 else f"{windows} windows"
        yield prose("audit")["in_part"].format(many=many, chances=chances)


def _ties(calibration: Calibration) -> str:
    """Say how many calibration scores are equal, and what that does to p-values."""
    many = f"{fmt.count(calibration.largest_tie)} of {fmt.count(calibration.n)} calibration"
    how = prose("audit")["ties"][calibration.ties]
    return f"{many} documents have the same score; equal scores {how}."


def _correction(result: AuditResult) -> str:
    return result.settings.get("correction", "none") if result.ranked else "closed e-BH"


def _report(result: AuditResult) -> ReportDocument:
    # Sentences that depend on the result come first.
    title, sentence = headline(result)
    calibration, total, texts = result.calibration, len(result.own), prose("audit")
    source = texts["sources"].get(calibration.source, calibration.source)
    ranked = result.ranked
    basis = f"{source} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{fmt.count(calibration.n)})"
    # A conformal p-value is never below 1 / (n + 1): with few calibration documents nothing can be
    # called in.
    drawn = calibration.ties == "random"
    smallest = "by lot" if drawn else fmt.p_text(1 / (max(0, calibration.votes) + 1))
    cost = f"{fmt.count(result.queries)} queries, {fmt.duration(result.seconds)}"
    spent, level = fmt.spent_text(result.spent), fmt.percent(result.alpha)
    # "Exact" rests on what the user said of the calibration documents, and the report repeats it.
    exact = "Exact under this assumption." if calibration.exact else "Not exact."
    guarantee = f"{exact} {calibration.note}" * ranked
    power, power_out = "", ""
    if calibration.power:
        power, power_out = calibration.power.told, calibration.power.told_out
    ties = _ties(calibration) if calibration.largest_tie > 1 else ""
    counted = [(decision, result.count(decision)) for decision in _ORDER]
    odds = "" if result.odds is None else result.odds.summary
    by_odds = result.odds.basis if result.odds else ""
    by_ranks = f"ranks among {fmt.documents(calibration.n)} known to be outside" * ranked
    brief = (
        ("evidence", "; ".join(filter(None, (by_odds, by_ranks)))),
        ("", re.sub(r" \(p = [^()]*\)", "", guarantee)),
        ("cost", f"{cost}; by all starts: {spent}" if spent else cost),
    )
    rests_on = (
        ("Level \N{GREEK SMALL LETTER ALPHA}", level),
        (f"Correction for {fmt.documents(total)}", _correction(result)),
        ("E-values", odds),
        ("Calibrated on", basis * ranked),
        ("Smallest p-value possible", smallest * ranked),
        ("Guarantee", guarantee),
        ("Equal scores", ties * ranked),
        ("Possible decisions", power * ranked),
        ("When there is “no sign of it”", power_out),
    )
    per_document = f"({result.queries / max(1, total):.3g} per audited document)"
    settings = (
        *result.settings.items(),
        ("Queries", f"{fmt.count(result.queries)}, calibration included {per_document}"),
        ("Spent by all starts, trials of the target included", spent),
        ("Time", f"{fmt.duration(result.seconds)}, started {fmt.moment(result.started)}"),
        ("Ragwitness", result.ragwitness or fmt.MISSING),
    )
    terms = texts["reading"]
    if result.odds is None:
        terms = {term: text for term, text in terms.items() if term != "e-value"}
    if all(v.p_out is None for v in result.verdicts):
        terms = {term: text for term, text in terms.items() if term != "p if inside"}
    # Everything else is the same for every result.
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=title,
        sentence=sentence,
        method=result.method,
        target=result.target,
        queries=result.queries,
        facts=(
            ("System audited", result.target),
            ("Method", result.method),
            ("Started", fmt.moment(result.started)),
            ("Cost", cost),
        ),
        brief=tuple(row for row in brief if row[1]),
        warnings=tuple(result.warnings),
        left_out=result.left_out,
        claimed=tuple(_claimed(result)),
        not_claimed=tuple(texts["not_claimed"] + texts["not_claimed_odds"] * bool(odds)),
        rests_on=tuple(row for row in rests_on if row[1]),
        shares=tuple(
            Share(LABELS[decision], _STYLES[decision], n, n / total) for decision, n in counted if n
        ),
        sections=tuple(_sections(result)),
        settings=tuple(row for row in settings if row[1]),
        reading=tuple((term, text.format(level=level)) for term, text in terms.items()),
        version=result.ragwitness,
    )


def _sections(result: AuditResult) -> Iterator[Section]:
    yield Section("telling", "", (_telling(result), *_remarks(result)), "terminal")
    if result.evaluation is not None:
        yield _known_truth(result, result.evaluation)
    # Figures: the distribution of scores, then the ROC where the truth is known, then p-values
    # against the uniform, which is the check of the calibration.
    figures = (_scores(result), _roc(result), _p_values(result))
    if blocks := tuple(figure for figure in figures if figure is not None):
        yield Section("figures", "The evidence at a glance", blocks, "page")
    # The documents by verdict, accusations first.
    groups = tuple(_group(result, decision) for decision in _ORDER if result.count(decision))
    hint = Paragraph(prose("audit")["hint"])
    listed: tuple[Block, ...] = (hint, *groups) if groups else (Paragraph("None.", ""),)
    yield Section("documents", "The documents", listed, "page")


def _telling(result: AuditResult) -> Table:
    """The documents for a terminal: all of a short list, else those with the most evidence."""
    listed: Sequence[Verdict] = result.verdicts
    if len(listed) > _ALL:
        listed = sorted(listed, key=strength)[:_TELLING]
    # A terminal has room for five columns.
    unranked = not result.ranked
    columns = (
        Column("Document", "name", "document"),
        Column("Verdict", "text", "verdict"),
        Column("e", "value", "e") if unranked else Column("p", "value", "p"),
        Column("Words", "words", "with / without the database"),
        Column("Queries", "value", "queries"),
    )
    rows = tuple(
        (
            Name(verdict.document, document=verdict.document),
            verdict_mark(verdict.decision),
            fmt.score_text(verdict.e_value) if unranked else fmt.p_text(verdict.p_value),
            Words(words_of(verdict).items),
            verdict.queries,
        )
        for verdict in listed
    )
    return Table("", columns, rows, "documents")


def verdict_mark(decision: Decision) -> Mark:
    """Return a verdict as a terminal has room for it."""
    return Mark(_SHORT[decision], _STYLES[decision])


def _remarks(result: AuditResult) -> Iterator[Paragraph]:
    """Say why documents are inconclusive, each reason once, and what is not shown."""
    # The most frequent reasons, each with its document or their number.
    reasons = Counter(v.reason for v in result.verdicts if v.reason)
    for reason, n in reasons.most_common(1):
        first = next(v.document for v in result.verdicts if v.reason == reason)
        line = f"{fmt.documents(n) if n > 1 else first}: {reason}."
        if more := len(reasons) - 1:
            line += f" Other reasons ({fmt.count(more)}) are in {{where}}."
        yield Paragraph(line, "", brief=True)
    if (total := len(result.verdicts)) > _ALL:
        text = f"The {_TELLING} most telling are shown; {fmt.count(total - _TELLING)} more in "
        yield Paragraph(f"{text}{{where}}.", brief=True)


def _known_truth(result: AuditResult, evaluation: Evaluation) -> Section:
    # Documents without a score are in none of the rates.
    unscorable = ""
    if evaluation.unscorable:
        unscorable = (
            f"; {fmt.count(evaluation.unscorable)} documents could not be scored and are in none of"
            " these rates"
        )
    members, others = fmt.count(evaluation.members), fmt.count(evaluation.non_members)
    columns = (
        Column("Measure", "name", "truth known"),
        Column("Value", "value", "value"),
        Column("95 % interval", "interval", "95 % interval"),
        Column("n", "value", "n"),
        Column("0 to 1", "strip"),
        Column("Meaning", "meaning"),
        Column("", "text", "", page=False),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (Name(name), rate, rate, rate.n, rate, meaning, remark)
        for name, rate, meaning, remark in _measures(result)
    )
    caption = "Each rate with its 95 % interval and the number of documents behind it"
    sentence = f"{members} members and {others} non-members were scored{unscorable}."
    blocks = (Paragraph(sentence, ""), Table(caption, columns, rows))
    return Section("evaluation", "How well it did where the truth is known", blocks)


def _group(result: AuditResult, decision: Decision) -> Fold:
    """The documents of one verdict, strongest evidence first."""
    verdicts = sorted((v for v in result.verdicts if v.decision is decision), key=strength)
    label = LABELS[decision]
    table = documents_table(result, verdicts, f"Documents with the verdict “{label}”")
    unfolded = len(verdicts) <= _OPEN
    return Fold(label.capitalize(), (table,), fmt.count(len(verdicts)), _STYLES[decision], unfolded)


def documents_table(
    result: AuditResult, verdicts: Sequence[Verdict], caption: str, *, decided: bool = False
) -> Table:
    """Return the table of some documents of an audit.

    Args:
        result: The audit, whose documents decide which columns there are.
        verdicts: Those of the rows, in their order.
        caption: The table's caption.
        decided: Whether the verdict is a column.
    """
    # An empty column is left out.
    filled = {
        "Verdict": decided,
        "Truth": any(v.member is not None for v in result.verdicts),
        "e": result.odds is not None,
        "p if inside": any(v.p_out is not None for v in result.verdicts),
        "Classifier": any(v.classifier is not None for v in result.verdicts),
    }
    columns = (
        Column("Document", "name"),
        Column("Verdict", "text"),
        Column("Truth", "text"),
        Column("p", "value"),
        Column("q", "value"),
        Column("p if inside", "value"),
        Column("e", "value"),
        Column("Score", "value"),
        Column("Classifier", "value"),
        Column("Queries", "value"),
        Column("Words that decided", "words"),
    )
    indices = [at for at, column in enumerate(columns) if filled.get(column.name, True)]
    truths = {True: "member", False: "non-member", None: fmt.MISSING}

    def cells(verdict: Verdict) -> tuple[Cell, ...]:
        # A wrong verdict is marked: a report with the truth at hand hides no mistake.
        truth = truths[verdict.member]
        wrong = (verdict.decision, verdict.member) in {(Decision.IN, False), (Decision.OUT, True)}
        row: tuple[Cell, ...] = (
            Name(verdict.document, document=verdict.document),
            LABELS[verdict.decision],
            Mark(truth, "in") if wrong else truth,
            fmt.p_text(verdict.p_value),
            fmt.p_text(verdict.q_value),
            fmt.p_text(verdict.p_out),
            fmt.MISSING if verdict.e_value is None else fmt.score_text(verdict.e_value),
            fmt.score_text(verdict.score),
            fmt.MISSING if verdict.classifier is None else fmt.probability(verdict.classifier),
            verdict.queries,
            words_of(verdict),
        )
        return tuple(row[at] for at in indices)

    headings = tuple(columns[at] for at in indices)
    return Table(caption, headings, LazyRows(verdicts, cells), "documents")


def _roc(result: AuditResult) -> Curves | None:
    if result.evaluation is None or len(result.evaluation.roc) < 2:
        return None
    return roc_curve(result.evaluation.roc, result.evaluation.auc.value, "audit")


def _p_values(result: AuditResult) -> Curves | None:
    """The distribution of p-values against the uniform; None without any."""
    # The check is only for documents outside; members should leave the diagonal, and are drawn to
    # show it.
    groups: list[tuple[str, int, bool | None]] = [("audited documents", 1, None)]
    if any(verdict.member is not None for verdict in result.verdicts):
        groups = [("known non-members", 0, False), ("known members", 1, True)]
    lines = []
    for name, colour, member in groups:
        values = sorted(
            v.p_value for v in result.verdicts if v.p_value is not None and v.member is member
        )
        if values:
            # The empirical distribution function, from 0 to 1.
            corners = [(p, (i + 1) / len(values)) for i, p in enumerate(values)]
            corners = [(0.0, 0.0), *corners, (1.0, 1.0)]
            lines.append(step_line(f"{name} (n = {fmt.count(len(values))})", corners, colour))
    if not lines:
        return None
    alpha = Line("\N{GREEK SMALL LETTER ALPHA}", ((result.alpha, 0.0), (result.alpha, 1.0)), 4)
    panel = unit_panel("", "p-value", "share of documents", [*lines, alpha])
    note = "Share of documents with a p-value at most x; uniform values follow the diagonal."
    return Curves("p-values against uniform", lambda: [panel], note)


def _scores(result: AuditResult) -> Histogram | None:
    def finite_of(scores: Iterable[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([score for score in scores if score is not None and math.isfinite(score)])

    # The calibration first: it should look like the non-members, or the p-values promise too much.
    groups = [
        (
            "calibration: known to be outside",
            "calibration",
            finite_of(result.calibration.scores),
        )
    ]
    for name, style, member in (
        ("known non-members", "out", False),
        ("known members", "in", True),
        ("truth not known", "unknown", None),
    ):
        scores = finite_of(v.score for v in result.verdicts if v.member is member)
        groups.append((f"audited: {name}", style, scores))
    about = "Scores; higher means more evidence of membership."
    return histogram("Distribution of the scores", about, "score", groups)


RESULT_TYPE: ResultType[AuditResult, Condition] = ResultType(
    name="audit",
    words="membership audit",
    verb="audit",
    dump=lambda result: {"documents": list(_rows(result)), **_head(result)},
    load=_load,
    recognises=lambda data: "summary" in data and "documents" in data,
    conditions=read_conditions,
    rule=rule,
    report=_report,
    rows=_rows,
    columns=_COLUMNS,
    cases=_cases,
    head=lambda result: dict(_head(result)["summary"]),
    stored_rows="documents",
    properties=lambda result: {
        "alpha": f"{result.alpha:g}",
        "queries": str(result.queries),
        "calibration": result.calibration.note,
        "exact": "yes" if result.calibration.exact else "no",
        "ragwitness": result.ragwitness,
    },
)
