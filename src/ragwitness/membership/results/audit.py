"""What an audit of documents leaves behind, and what every report of it says."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ragwitness.core.types import Decision, Evidence, LeftOut, Shown, Verdict
from ragwitness.membership.results.assumptions import SetLikeness, VerdictPower
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
    restored,
    rule_decided,
)
from ragwitness.report.spending import Spending
from ragwitness.stats.evaluation import Evaluation, Rate

LABELS = {
    Decision.IN: "in the database",
    Decision.INCONCLUSIVE: "inconclusive",
    Decision.OUT: "no sign of it",
}
"""What a verdict is called; "out" claims no more than the absence of evidence."""

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
_REASONS = 6  # that a terminal shows
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
        power: What the audit could decide with these scores; None in earlier versions' results.
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
        """Whether their texts were told apart from those in question."""
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
        calibration: What the p-values rest on.
        evaluation: Present where every document's membership is known.
        settings: Everything in use, as label and value, in the order to print.
        warnings: What a reader must know before relying on a verdict.
        ragwitness: Version of this package.
        spent: What it has spent at the target.
        left_out: Files and rows that were given and could not be read.
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

    @property
    def own(self) -> tuple[Verdict, ...]:
        """Verdicts of documents, copies once: a copy was no test of its own."""
        return tuple(
            v for v in self.verdicts if v.queries or not (v.reason or "").startswith(_COPY)
        )

    def count(self, decision: Decision) -> int:
        """Number of documents with this verdict."""
        return sum(verdict.decision is decision for verdict in self.own)

    @property
    def unscorable(self) -> int:
        """Number of documents without a score."""
        return sum(verdict.score is None for verdict in self.own)


# As it is stored: {"documents": [...], "summary": {...}}.

_NAMES = {"verdicts": "documents", "decision": "verdict", "document": "id"}
_PRIVATE = {public: private for private, public in _NAMES.items()}
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
    if result.calibration.likeness is None:  # an earlier version looked at neither
        for name in ("likeness", "largest_tie", "ties"):
            del calibration[name]
    if not result.calibration.groups:
        del calibration["groups"]
    if (power := result.calibration.power) is None:
        del calibration["power"]
    else:
        calibration["power"] |= {"told": power.told, "told_out": power.told_out}
    summary = {
        "counts": {
            **{decision.value: result.count(decision) for decision in Decision},
            "documents": len(result.own),
            "unscorable": result.unscorable,
        },
        "alpha": result.alpha,
        "method": result.method,
        "target": result.target,
        "started": result.started,
        "seconds": finite(result.seconds),
        "queries": result.queries,
        "spent": asdict(result.spent) if result.spent else None,
        "calibration": calibration,
        "evaluation": _evaluation(result.evaluation),
        "settings": dict(result.settings),
        "warnings": list(result.warnings),
        "version": result.ragwitness,
    }
    if result.left_out:
        summary["left_out"] = [asdict(one) for one in result.left_out]
    return {"summary": summary}


def _evaluation(found: Evaluation | None) -> Row | None:
    if found is None:
        return None
    data = asdict(found)
    for name in _RATES:
        data[name] = {key: finite(value) for key, value in data[name].items()}
    return {**data, "roc": [list(corner) for corner in found.roc]}


def _rows(result: AuditResult) -> Sequence[Row]:
    return LazyRows(result.verdicts, document_row)


def document_row(verdict: Verdict) -> Row:
    """Return what is said of one document, with None for a number that there is not."""
    # A score that is not finite is stored as null with its reason; it never becomes 0.
    score = finite(verdict.score)
    lost = verdict.score is not None and score is None
    return {
        "id": verdict.document,
        "verdict": verdict.decision.value,
        "p_value": finite(verdict.p_value),
        "score": score,
        "queries": verdict.queries,
        "q_value": finite(verdict.q_value),
        "p_out": finite(verdict.p_out),
        "classifier": finite(verdict.classifier),
        "reason": verdict.reason or (_NOT_FINITE if lost else None),
        "member": verdict.member,
        "evidence": [_evidence(word) for word in verdict.evidence if _measured(word)],
        **({"windows": verdict.windows, "share": verdict.share} if verdict.windows else {}),
    }


_COLUMNS = {
    "id": str,
    "verdict": str,
    "p_value": float,
    "score": float,
    "queries": int,
    "q_value": float,
    "p_out": float,
    "classifier": float,
    "reason": str,
    "member": bool,
    "evidence": [
        {
            "word": str,
            "before": str,
            "probability": {"low": float, "high": float},
            "baseline": float,
        }
    ],
    "windows": int,
    "share": float,
}


def _evidence(word: Evidence) -> Row:
    return {
        "word": word.word,
        "before": word.before,
        "probability": {"low": word.probability.low, "high": word.probability.high},
        "baseline": finite(word.baseline),
    }


def _measured(word: Evidence) -> bool:
    """Whether a word's numbers are numbers; without them it is not evidence."""
    return math.isfinite(word.probability.low) and math.isfinite(word.probability.high)


def _load(data: Mapping[str, Any]) -> AuditResult:
    json.dumps(data, allow_nan=False)  # what is not strict JSON was not written by us
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
    # "version" is the package's here and not the form's; it is taken out of the way of
    # Kind.version.
    if "version" not in summary:
        raise malformed(RESULT_TYPE, "version", "missing")
    summary["ragwitness"] = summary.pop("version")
    calibration = _object(summary, "calibration")
    if isinstance(power := calibration.get("power"), Mapping):
        # The sentences follow from the numbers.
        numbers = {key: value for key, value in power.items() if not key.startswith("told")}
        calibration["power"] = numbers
        summary["calibration"] = calibration
    documents = data.get("documents")
    if not isinstance(documents, list):
        raise malformed(RESULT_TYPE, "documents", "missing, or not a list")
    summary["verdicts"] = [_verdict(one) if isinstance(one, Mapping) else one for one in documents]
    return restored(AuditResult, summary, RESULT_TYPE, _NAMES)


def _verdict(stored: Mapping[str, Any]) -> Row:
    found = {_PRIVATE.get(key, key): value for key, value in stored.items()}
    if isinstance(words := found.get("evidence"), list):
        # What the proxy was not asked is null in JSON and NaN in memory.
        found["evidence"] = [
            {**word, "baseline": math.nan}
            if isinstance(word, Mapping) and word.get("baseline", 0) is None
            else word
            for word in words
        ]
    return found


def _object(parent: Mapping[str, Any], name: str) -> Row:
    value = parent.get(name)
    if not isinstance(value, Mapping):
        raise malformed(RESULT_TYPE, name, "missing, or not an object")
    return dict(value)


# Whether an audit passes.


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read the conditions of an audit: ``in``, ``out``, ``inconclusive``, ``unscorable``.

    Raises:
        InputError: One is not in the grammar, or could be met by no document at all.
    """
    return parse_conditions(texts, (*(decision.value for decision in Decision), _UNSCORABLE))


def rule(result: AuditResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how an audit ends; one without conditions passes once it is finished.

    That no condition is met says something only of an audit that decided something.
    """
    counts, total = _counts(result)
    lost, undecided = fmt.left_out(result.left_out), "no document is said to be in or out"
    return rule_decided(counts, conditions, fmt.documents(total), total, lost, undecided)


def _counts(result: AuditResult) -> tuple[dict[str, int], int]:
    """Documents by what can be counted, and all."""
    counts = {one.value: result.count(one) for one in Decision}
    return {**counts, _UNSCORABLE: result.unscorable}, len(result.own)


def _concerns(condition: Condition, verdict: Verdict) -> bool:
    if condition.subject == _UNSCORABLE:
        return verdict.score is None  # it is inconclusive too
    return verdict.decision.value == condition.subject


def _cases(result: AuditResult, conditions: Sequence[Condition]) -> list[TestCase]:
    """A document fails where it is among those that met a condition.

    It is skipped where the audit says neither in nor out, and passes otherwise.
    """
    # The gate is met or not for the whole run; the documents that made it so are those that fail.
    counts, total = _counts(result)
    failing = [one for one in conditions if one.met(counts[one.subject], total)]
    return [_case(verdict, failing) for verdict in result.verdicts]


def _case(verdict: Verdict, failing: Sequence[Condition]) -> TestCase:
    label, words = LABELS[verdict.decision], words_of(verdict)
    noun = "query" if verdict.queries == 1 else "queries"
    figures = (
        f"p {fmt.p_text(verdict.p_value)}, q {fmt.p_text(verdict.q_value)},"
        f" score {fmt.score_text(verdict.score)}, {fmt.count(verdict.queries)} {noun}"
    )
    told = (f"{w.before} {w.word}: {w.target} / {w.baseline}" for w in words.items)
    evidence = "\n".join(line for line in (words.reason, *told) if line)
    state: Literal["passed", "failed", "skipped"] = "passed"
    message = f"{label}: {figures}"
    if met := ", ".join(str(one) for one in failing if _concerns(one, verdict)):
        state, message = "failed", f"{message}; --fail-on {met}"
    elif verdict.decision is Decision.INCONCLUSIVE:
        state, message, evidence = "skipped", f"{words.reason or label} ({figures})", ""
    return TestCase(verdict.document, state, message, evidence, verdict.decision.value)


# What a report says.


def headline(result: AuditResult) -> tuple[str, str]:
    """Return the verdict counts as a title and the sentence below it."""
    total, found = len(result.own), result.count(Decision.IN)
    if not total:
        return "No documents were audited", "There is nothing to report."
    title = f"{fmt.count(found)} of {fmt.documents(total)}: in the database"
    # The title counts accusations alone; everything else stands in the sentence below it.
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
    reason = "; ".join(filter(None, (reason, extent_of(verdict))))
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


def extent_of(verdict: Verdict) -> str:
    """Say how much of a document was asked about; empty where it was asked about as a whole."""
    if not verdict.windows:
        return ""
    many = "1 window" if verdict.windows == 1 else f"{verdict.windows} windows"
    asked = f"asked about {many}, {fmt.percent(verdict.share)} of its text"
    return asked + "; a part may be inside" * (verdict.decision is Decision.IN)


def truth_of(verdict: Verdict) -> str:
    """Return the truth about a document, in a word; empty where it is not known."""
    return {True: "member", False: "non-member", None: ""}[verdict.member]


def is_wrong(verdict: Verdict) -> bool:
    """Whether a verdict is known to be wrong."""
    accused = verdict.decision is Decision.IN and verdict.member is False
    return accused or (verdict.decision is Decision.OUT and verdict.member is True)


def measures(result: AuditResult) -> tuple[tuple[str, Rate, str, str], ...]:
    """Return name, rate, meaning and a short remark of each rate; none without the truth."""
    found = result.evaluation
    if found is None:
        return ()
    # Two kinds of rate: those of the method's own threshold, and those of the p-values at alpha.
    # Only the latter were promised, so only they are judged as kept or broken.
    level, by = fmt.percent(result.alpha), found.decided_by.replace("<=", "≤")
    kept = f"promised: at most {level}{_kept(result.alpha, found.false_positives)}"
    below = f"p \N{LESS-THAN OR EQUAL TO} {level}"
    return (
        (
            "AUC",
            found.auc,
            "chance that a member outscores a non-member; 0.5 is guessing",
            "0.5 is guessing",
        ),
        ("Accuracy", found.accuracy, f"right decisions ({by})", by),
        ("F1", found.f1, f"precision and recall in one ({by})", by),
        (
            "TPR at 1 % FPR",
            found.tpr_at_1_fpr,
            "members found when at most 1 % of non-members are accused",
            "",
        ),
        ("False positives", found.false_positives, f"non-members with {below}; {kept}", kept),
        ("True positives", found.true_positives, f"members with {below}", f"members with {below}"),
    )


def _kept(alpha: float, rate: Rate) -> str:
    """Say whether the realised rate is compatible with the level promised."""
    # The promise is compared with the interval, not with the rate: few documents break nothing.
    if math.isnan(rate.low):
        return ""
    if rate.low > alpha:
        return "; broken"
    return "; above, but within chance" if rate.value > alpha else "; kept"


_NOT_CLAIMED = (
    "A verdict is not proof: at this level, some documents outside are called in.",
    "It cannot tell this document from a copy or near-copy of it in the database.",
    "It cannot tell it from one that the model itself knows by heart, or was told by others, where "
    "the known-outside documents, of the same source and kind, are not known to it.",
    "It says nothing about who put it there, by what right, or whether the model was "
    "trained on it.",
    "\N{LEFT DOUBLE QUOTATION MARK}No sign of it\N{RIGHT DOUBLE QUOTATION MARK} does not certify "
    "absence: a system that hides its sources well gives no sign either.",
)
_NO_RATE = (
    "How often that is wrong is not known: nobody knows that the calibration documents are like "
    "the audited ones and were asked as they were."
)
_UNLIKE = (
    "How often that is wrong is not known: the calibration documents are not like the audited ones."
)
_SOURCES = {
    "known-out": "documents named by the user as outside the database",
    "auxiliary": "auxiliary documents taken to be outside the database",
    "generated": "the generated corpus that ships with Ragwitness",
}


def how_often_wrong(result: AuditResult) -> str:
    """Say how often the verdict "in the database" is wrong."""
    if result.calibration.unlike:
        return _UNLIKE
    return _error_rate(result) if result.calibration.exact else _NO_RATE


def _claimed(result: AuditResult) -> tuple[str, ...]:
    return (
        "In the database: the system answers as if it could read this very document."
        f" {how_often_wrong(result)}",
        "No sign of it: were the document inside, answers this weak would be rare, by the "
        "same measure.",
        "Inconclusive: the answers fit both, or the document could not be scored. It is "
        "not a weaker yes and not a no.",
        *_in_part(result),
    )


_WITH = ("difficulty", "audit classifier", "shadow retrieval", "shadow generator")
_PARTS = (0.5, 0.2, 0.1, 0.05)  # of a document, that may alone be inside


def _in_part(result: AuditResult) -> Iterator[str]:
    """Say what it means that a document was asked about in windows."""
    windows = max((verdict.windows for verdict in result.own), default=0)
    if not windows:
        return
    # As if each were drawn from all of the text; they stand apart, so they meet a part more often.
    met = ", ".join(
        f"{fmt.percent(1 - (1 - part) ** windows)} for {fmt.percent(part)} of it" for part in _PARTS
    )
    many = "1 window" if windows == 1 else f"{windows} windows"
    yield (
        f"A part of a document may be inside alone. In {many} at random places at least one stands"
        f" in that part with a chance of about {met}. Where none does, nothing is noticed."
    )


def _ties(calibration: Calibration) -> str:
    """Say how many calibration scores are equal, and what that does to p-values."""
    many = f"{fmt.count(calibration.largest_tie)} of {fmt.count(calibration.n)} calibration"
    how = (
        "count against an accusation (conservative ranks)"
        if calibration.ties == "conservative"
        else "were ranked by lot (randomised p-values)"
    )
    return f"{many} documents have the same score; equal scores {how}."


def _correction(result: AuditResult) -> str:
    return result.settings.get("correction", "none")


def _error_rate(result: AuditResult) -> str:
    """Say what alpha bounds: the share of false accusations, or each test by itself."""
    level = fmt.percent(result.alpha)
    if _correction(result) != "none":  # Benjamini-Hochberg (docs/design/verdicts.md)
        return f"Of the documents called so, at most {level} are expected to be outside."
    return f"A document outside would be called so with probability at most {level}."


def _report(result: AuditResult) -> ReportDocument:
    title, sentence = headline(result)
    calibration, total = result.calibration, len(result.own)
    source = _SOURCES.get(calibration.source, calibration.source)
    basis = f"{source} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{fmt.count(calibration.n)})"
    # A conformal p-value is never below 1 / (n + 1): with few calibration documents nothing can be
    # called in.
    drawn = calibration.ties == "random"
    smallest = "by lot" if drawn else fmt.p_text(1 / (max(0, calibration.votes) + 1))
    cost = f"{fmt.count(result.queries)} queries, {fmt.duration(result.seconds)}"
    spent = fmt.spent_text(result.spent)
    all_starts = ("Spent by all starts, trials of the target included", spent)
    per_document = f"{result.queries / max(1, total):.3g}"
    # "Exact" rests on what the user said of the calibration documents, and the report repeats it.
    exact = "Exact under this assumption." if calibration.exact else "Not exact."
    told_out = calibration.power.told_out if calibration.power else ""
    counted = [(decision, result.count(decision)) for decision in _ORDER]
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
        brief=(
            ("target", result.target),
            ("method", result.method),
            *((label, result.settings.get(label, "")) for label in _WITH),
            ("level", f"alpha = {fmt.percent(result.alpha)}, correction: {_correction(result)}"),
            ("calibration", f"{basis}; smallest possible p {smallest}"),
            ("", f"{exact} {calibration.note}"),
            *([("", _ties(calibration))] if calibration.largest_tie > 1 else ()),
            *([("power", calibration.power.told)] if calibration.power else ()),
            *([("", told_out)] if told_out and not result.count(Decision.OUT) else ()),
            ("cost", cost),
            (all_starts[0][0].lower() + all_starts[0][1:], spent),
        ),
        warnings=tuple(result.warnings),
        left_out=result.left_out,
        claimed=_claimed(result),
        not_claimed=_NOT_CLAIMED,
        rests_on=(
            ("Level \N{GREEK SMALL LETTER ALPHA}", fmt.percent(result.alpha)),
            (f"Correction for {fmt.documents(total)}", _correction(result)),
            ("Calibrated on", basis),
            ("Smallest p-value possible", smallest),
            ("Guarantee", f"{exact} {calibration.note}"),
            *([("Equal scores", _ties(calibration))] if calibration.largest_tie > 1 else ()),
            *([("What it could decide", calibration.power.told)] if calibration.power else ()),
            *([("When there is “no sign of it”", told_out)] if told_out else ()),
        ),
        shares=tuple(
            Share(LABELS[decision], _STYLES[decision], n, n / total) for decision, n in counted if n
        ),
        sections=tuple(_sections(result)),
        settings=(
            *result.settings.items(),
            (
                "Queries",
                f"{fmt.count(result.queries)}, calibration included ({per_document} per audited"
                " document)",
            ),
            *([all_starts] if spent else []),
            ("Time", f"{fmt.duration(result.seconds)}, started {fmt.moment(result.started)}"),
            ("Ragwitness", result.ragwitness or fmt.MISSING),
        ),
        reading=_reading(result),
        version=result.ragwitness,
    )


def _sections(result: AuditResult) -> list[Section]:
    found = [Section("telling", "", (_telling(result), *_rest(result)), "terminal")]
    if result.evaluation is not None:
        found.append(_known_truth(result, result.evaluation))
    # Figures: the distribution of scores, then the ROC where the truth is known, then p-values
    # against the uniform, which is the check of the calibration.
    figures = (_scores(result), _roc(result), _p_values(result))
    if blocks := [figure for figure in figures if figure is not None]:
        found.append(Section("figures", "The evidence at a glance", tuple(blocks), "page"))
    hint = Paragraph(
        "Strongest evidence first. Beside each word: the probability the system gave it, and that"
        " of a model without access to the database. “≤” means the system listed only its"
        " likeliest words and this one was not among them."
    )
    # The documents by verdict, accusations first.
    groups = tuple(_group(result, decision) for decision in _ORDER if result.count(decision))
    blocks_: tuple[Block, ...] = (hint, *groups) if groups else (Paragraph("None.", ""),)
    return [*found, Section("documents", "The documents", blocks_, "page")]


def _telling(result: AuditResult) -> Table:
    """The documents for a terminal: all of a short list, else those with the most evidence."""
    shown: Sequence[Verdict] = result.verdicts
    if len(shown) > _ALL:
        shown = sorted(shown, key=strength)[:_TELLING]
    return Table(
        "",
        (
            Column("Document", "name", "document"),
            Column("Verdict", "text", "verdict"),
            Column("p", "value", "p"),
            Column("Words", "words", "with / without the database"),
            Column("Queries", "value", "queries"),
        ),
        tuple(
            (
                Name(one.document, document=one.document),
                verdict_mark(one.decision),
                fmt.p_text(one.p_value),
                Words(words_of(one).items),
                one.queries,
            )
            for one in shown
        ),
        "documents",
    )


def verdict_mark(decision: Decision) -> Mark:
    """Return a verdict as a terminal has room for it."""
    return Mark(_SHORT[decision], _STYLES[decision])


def _rest(result: AuditResult) -> Iterator[Paragraph]:
    """Say why documents are inconclusive, each reason once, and what is not shown."""
    reasons = Counter(v.reason for v in result.verdicts if v.reason)
    for reason, n in reasons.most_common(_REASONS):
        alone = next(v.document for v in result.verdicts if v.reason == reason)
        yield Paragraph(f"{fmt.documents(n) if n > 1 else alone}: {reason}.", "", brief=True)
    if (more := len(reasons) - _REASONS) > 0:
        yield Paragraph(f"{fmt.count(more)} other reasons are in {{where}}.", brief=True)
    if parts := [v.share for v in result.verdicts if v.windows]:
        least, most = fmt.percent(min(parts)), fmt.percent(max(parts))
        yield Paragraph(
            f"Of {fmt.documents(len(parts))} only excerpts were asked about, {least} to {most} of"
            " the text: a part of a document may be inside alone.",
            brief=True,
        )
    if (total := len(result.verdicts)) > _ALL:
        text = f"The {_TELLING} most telling are shown; {fmt.count(total - _TELLING)} more in "
        yield Paragraph(f"{text}{{where}}.", brief=True)


def _known_truth(result: AuditResult, found: Evaluation) -> Section:
    lost = ""
    if found.unscorable:
        lost = (
            f"; {fmt.count(found.unscorable)} documents could not be scored and are in none of"
            " these rates"
        )
    scored = f"{fmt.count(found.members)} members and {fmt.count(found.non_members)} non-members"
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
        (Name(name), rate, rate, rate.n, rate, meaning, note)
        for name, rate, meaning, note in measures(result)
    )
    caption = "Each rate with its 95 % interval and the number of documents behind it"
    return Section(
        "evaluation",
        "How well it did where the truth is known",
        (Paragraph(f"{scored} were scored{lost}.", ""), Table(caption, columns, rows)),
    )


def _group(result: AuditResult, decision: Decision) -> Fold:
    """The documents of one verdict, strongest evidence first."""
    verdicts = sorted((v for v in result.verdicts if v.decision is decision), key=strength)
    label = LABELS[decision]
    return Fold(
        label.capitalize(),
        (documents_table(result, verdicts, f"Documents with the verdict “{label}”"),),
        fmt.count(len(verdicts)),
        _STYLES[decision],
        len(verdicts) <= _OPEN,
    )


def documents_table(
    result: AuditResult, verdicts: Sequence[Verdict], caption: str, *, decided: bool = False
) -> Table:
    """Return the table of some documents of an audit.

    Args:
        result: The audit, whose documents decide which columns there are.
        verdicts: What the rows are about, in their order.
        caption: What the table shows.
        decided: Whether the verdict is a column.
    """
    everywhere = result.verdicts
    # A column that nobody fills is left out.
    has = {
        "Verdict": decided,
        "Truth": any(v.member is not None for v in everywhere),
        "p if inside": any(v.p_out is not None for v in everywhere),
        "Classifier": any(v.classifier is not None for v in everywhere),
    }
    columns = (
        Column("Document", "name"),
        Column("Verdict", "text"),
        Column("Truth", "text"),
        Column("p", "value"),
        Column("q", "value"),
        Column("p if inside", "value"),
        Column("Score", "value"),
        Column("Classifier", "value"),
        Column("Queries", "value"),
        Column("Words that decided", "words"),
    )
    kept = [at for at, column in enumerate(columns) if has.get(column.name, True)]

    def cells(one: Verdict) -> tuple[Cell, ...]:
        # A verdict that is known to be wrong is marked: a report with the truth at hand hides no
        # mistake.
        truth = truth_of(one) or fmt.MISSING
        every: tuple[Cell, ...] = (
            Name(one.document, document=one.document),
            LABELS[one.decision],
            Mark(truth, "in") if is_wrong(one) else truth,
            fmt.p_text(one.p_value),
            fmt.p_text(one.q_value),
            fmt.p_text(one.p_out),
            fmt.score_text(one.score),
            fmt.MISSING if one.classifier is None else fmt.probability(one.classifier),
            one.queries,
            words_of(one),
        )
        return tuple(every[at] for at in kept)

    shown = tuple(columns[at] for at in kept)
    return Table(caption, shown, LazyRows(verdicts, cells), "documents")


def _roc(result: AuditResult) -> Curves | None:
    if result.evaluation is None or len(result.evaluation.roc) < 2:
        return None
    return roc_curve(result.evaluation.roc, result.evaluation.auc.value, "audit")


def _p_values(result: AuditResult) -> Curves | None:
    """The distribution of p-values against the uniform; None without any."""
    # The check is only for documents outside; members should leave the diagonal, and are drawn to
    # show it.
    known = any(verdict.member is not None for verdict in result.verdicts)
    groups: list[tuple[str, int, bool | None]] = (
        [("known non-members", 0, False), ("known members", 1, True)]
        if known
        else [("audited documents", 1, None)]
    )
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
    def values(member: bool | None) -> np.ndarray[Any, np.dtype[np.float64]]:
        found = [v.score for v in result.verdicts if v.score is not None and v.member is member]
        return np.array([score for score in found if math.isfinite(score)])

    calibration = np.array([score for score in result.calibration.scores if math.isfinite(score)])
    # The calibration first: it should look like the non-members, or the p-values promise too much.
    groups = [
        ("calibration: known to be outside", "calibration", calibration),
        ("audited: known non-members", "out", values(False)),
        ("audited: known members", "in", values(True)),
        ("audited: truth not known", "unknown", values(None)),
    ]
    about = "Scores; higher means more evidence of membership."
    return histogram("Distribution of the scores", about, "score", groups)


def _reading(result: AuditResult) -> tuple[tuple[str, str], ...]:
    inside = (
        "p if inside",
        "The mirror image: the share of documents known to be inside a system like this one that"
        " look as little like members as this one does. Small values are what “no sign of it”"
        " rests on.",
    )
    return (
        (
            "p-value",
            "The share of documents known to be outside that look at least as much like members as"
            " this one does. Small is strong evidence. It is not the probability that the document"
            " is outside.",
        ),
        (
            "q-value",
            "The p-value after correction for the number of documents asked about: ask about enough"
            " documents and some p-values are small by chance. The verdict “in the database”"
            f" requires q ≤ {fmt.percent(result.alpha)}.",
        ),
        *([inside] if any(v.p_out is not None for v in result.verdicts) else []),
        (
            "Score",
            "Evidence of membership; higher means more. Its unit belongs to the method: compare"
            " scores within this report only.",
        ),
        (
            "95 % interval",
            "The values of a rate that are compatible with what was observed on n documents. With"
            " few documents it is wide, whatever the value says.",
        ),
        (
            "p-values against uniform",
            "For documents outside, the curve should run on or below the diagonal. Above it, the"
            " calibration documents are unlike the audited ones, and the p-values promise too"
            " much.",
        ),
        (
            "Reproduce",
            "All of this is made from the stored `result.json`. The same audit with the same run"
            " folder reuses the answers already received.",
        ),
    )


def _properties(result: AuditResult) -> dict[str, str]:
    return {
        "alpha": f"{result.alpha:g}",
        "queries": str(result.queries),
        "calibration": result.calibration.note,
        "exact": "yes" if result.calibration.exact else "no",
        "ragwitness": result.ragwitness,
    }


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
    properties=_properties,
)
