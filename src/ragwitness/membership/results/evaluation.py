"""Many audits side by side on one corpus: what was found, and what every report of it says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.files import read_object
from ragwitness.core.types import Shown
from ragwitness.rag.defenses.cost import DefenseCost
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Column,
    Fold,
    Mark,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Table,
    roc_curve,
)
from ragwitness.report.result_type import (
    ResultType,
    Row,
    Ruling,
    finite,
    passed,
    plain,
    restored,
    unknown_condition,
)
from ragwitness.stats.evaluation import Rate
from ragwitness.stats.power import MeasuredRoc


@dataclass(frozen=True, slots=True)
class Cost:
    """What one document cost, on average.

    Attributes:
        queries: Queries put to the target.
        tokens: Tokens read and written, as the target counts them; None where it does not.
        seconds: Wall time of the whole stage by the number of its documents; None where answers
            were kept from an earlier start.
    """

    queries: float
    tokens: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit on the audited documents.

    Attributes:
        audit: Registered name, with the variant of the score after a slash.
        auc: Step-function area, DeLong interval.
        accuracy: At ``threshold``.
        precision: Of the documents called in at ``threshold``; None where there are none.
        recall: Of the members at ``threshold``.
        f1: At ``threshold``.
        threshold: Best balanced accuracy on the calibration documents, frozen there; for an
            audit with a classifier, even odds of that classifier.
        decided_by: The same in words.
        tpr_at_1_fpr: Largest TPR at an FPR of at most 1 %, never interpolated.
        tpr_at_01_fpr: The same at 0.1 %.
        false_positives: By level: share of non-members with p <= level.
        true_positives: By level: share of members with p <= level.
        unscorable: Share of audited documents without a score.
        recall_at_k: Share of members that their queries retrieved; None for a target that
            does not show it.
        auc_retrieved: AUC over retrieved members only.
        outcomes: Named outcomes of answers (refused, unreadable, ...), mean per document.
        cost: Per document.
        scores: By document id.
        roc: Corners of the step function.
    """

    audit: str
    auc: Rate
    accuracy: Rate
    precision: Rate | None
    recall: Rate
    f1: Rate
    threshold: float
    decided_by: str
    tpr_at_1_fpr: Rate
    tpr_at_01_fpr: float
    false_positives: dict[str, Rate]
    true_positives: dict[str, Rate]
    unscorable: Rate
    recall_at_k: Rate | None
    auc_retrieved: Rate | None
    outcomes: dict[str, float]
    cost: Cost
    scores: dict[str, float]
    roc: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Battery(Shown):
    """A finished evaluation.

    Attributes:
        audits: One entry per audit and variant of its score.
        controls: AUC of every control by name.
        skipped: Audits without a figure, with the reason.
        paired: AUC differences of audits by pair of names.
        sizes: Documents by part of the split.
        likeness: Median likeness of the near-duplicate non-members to the index.
        settings: Everything in use, as label and value.
        seconds: Wall time.
        benign: What the defense costs benign questions; None without a defense.
    """

    audits: tuple[Measured, ...]
    controls: dict[str, Rate]
    skipped: dict[str, str]
    paired: dict[tuple[str, str], Rate]
    sizes: dict[str, int]
    likeness: float
    settings: dict[str, str]
    seconds: float
    benign: DefenseCost | None = None


# What controls say, and what a defense costs.

_CHANCE = 0.5
_WIDE = 0.3  # an interval wider than this excludes next to nothing
_OFF, _NEAR = "retrieval off", "near-duplicates"


@dataclass(frozen=True, slots=True)
class Control:
    """A control in words.

    Attributes:
        name: As in the JSON.
        rate: Its AUC.
        expected: What it should be.
        verdict: Whether it is.
        fails: Whether it fails.
    """

    name: str
    rate: Rate
    expected: str
    verdict: str
    fails: bool = False


def controls_of(battery: Battery) -> list[Control]:
    """Judge every control; near-duplicates have no promised value."""
    return [_judged(name, rate) for name, rate in battery.controls.items()]


def _judged(name: str, rate: Rate) -> Control:
    # A control that could not be measured has not held.
    if math.isnan(rate.value):
        return Control(name, rate, "", "not measured", True)
    # The hardest non-members: nothing is promised of them, they show how much a near-copy costs.
    if name.startswith(_NEAR):
        return Control(name, rate, "none promised", "")
    # A trained guesser below .5 has nothing; a length or an audit below .5 can be turned round.
    one_sided = name == "blind words"
    expected = "low end at most .5" if one_sided else "interval holds .5"
    if rate.low > _CHANCE or (rate.high < _CHANCE and not one_sided):
        return Control(name, rate, expected, "FAILS", True)
    # An interval that excludes next to nothing holds .5 without saying anything.
    wide = rate.high - rate.low > _WIDE
    return Control(name, rate, expected, "too few to tell" if wide else "holds")


@dataclass(frozen=True, slots=True)
class BenignRow:
    """What a defense costs benign questions, by one measure.

    Attributes:
        name: What is measured.
        before: Undefended; None for what compares the two systems.
        after: Defended.
        lost: Undefended minus defended over the same questions; None where it is not a loss.
    """

    name: str
    before: Rate | None
    after: Rate
    lost: Rate | None = None


def benign_rows(cost: DefenseCost) -> list[BenignRow]:
    """Return every measure there is: retrieval first, then answers."""
    # What a defense costs: first what is found, which needs no generator, then what is answered.
    found, answers = cost.retrieval, cost.answers
    rows = [
        BenignRow(f"recall@{cost.k}", found.recall_before, found.recall, found.recall_lost),
        BenignRow("other passages", None, found.changed),
    ]
    if answers is None:
        return rows
    if answers.quality_before is not None and answers.quality is not None:
        before, after = answers.quality_before, answers.quality
        rows.append(BenignRow("answer quality", before, after, answers.quality_lost))
    return [
        *rows,
        BenignRow("same answer", None, answers.agreement),
        BenignRow("refused", answers.refused_before, answers.refused),
    ]


def unanswered(cost: DefenseCost) -> str:
    """Return how many questions got no answer, or nothing where all did."""
    if not cost.failed_before + cost.failed:
        return ""
    return f"Questions without an answer: {cost.failed_before} undefended, {cost.failed} defended"


def flattery(battery: Battery) -> str:
    """Say which audit the embedded reader flatters; empty for another generator."""
    if not battery.settings.get("generator", "").startswith("reader"):
        return ""
    return (
        "The embedded reader was trained on the question that rag-mia asks, so rag-mia looks better"
        " on it than elsewhere. The ranking of audits on a small model does not carry over to large"
        " ones."
    )


# Whether an evaluation passes: a control fails, or an audit tells members apart too well.
#
#     CONDITION = "control" | "auc" (">" | ">=") NUMBER

_CONDITION = re.compile(r"auc\s*(>=|>)\s*([01]?\.?[0-9]+)")


@dataclass(frozen=True, slots=True)
class BatteryCondition:
    """One condition: on the controls without a bound, else on the low end of every AUC."""

    bound: float | None = None
    equal: bool = False

    def __str__(self) -> str:
        if self.bound is None:
            return "control"
        return f"auc {'>=' if self.equal else '>'} {self.bound:g}"

    def met(self, battery: Battery) -> str:
        """Return the name of what meets it; empty where nothing does."""
        if self.bound is None:
            return next((one.name for one in controls_of(battery) if one.fails), "")
        # The low end of the interval: an AUC that is high by chance fails no pipeline.
        for one in battery.audits:
            if one.auc.low > self.bound or (self.equal and one.auc.low == self.bound):
                return one.audit
        return ""


def _conditions(texts: Sequence[str]) -> tuple[BatteryCondition, ...]:
    found = []
    for text in texts:
        form = _CONDITION.fullmatch(text.strip())
        if form is None and text.strip() != "control":
            known = "control, a control fails; auc > 0.6, the low end of an audit's AUC is above"
            raise unknown_condition(text, known)
        found.append(
            BatteryCondition(float(form[2]), form[1] == ">=") if form else BatteryCondition()
        )
    return tuple(found)


def _rule(battery: Battery, conditions: Sequence[BatteryCondition]) -> Ruling:
    for condition in conditions:
        if name := condition.met(battery):
            return Ruling(ExitCode.FAILED, f"fails --fail-on {condition} ({name})")
    if conditions and not battery.audits:
        return Ruling(ExitCode.INCONCLUSIVE, "inconclusive: no audit could be evaluated")
    return passed(conditions)


# What a report says.


def short_rate(rate: Rate) -> str:
    """Return an estimate with its interval, short enough for a narrow table."""
    if math.isnan(rate.value):
        return fmt.MISSING
    return f"{fmt.short(rate.value)} [{fmt.short(rate.low)}, {fmt.short(rate.high)}]"


def _ranked(audits: Sequence[Measured]) -> list[Measured]:
    """Audits by AUC, highest first, each with the variants of its score below it."""
    # Variants of one score stay below their audit: they are one method, not more competitors.
    every = sorted(audits, key=lambda one: -one.auc.value)
    found = []
    for one in every:
        if "/" not in one.audit:
            found += [one, *(v for v in every if v.audit.startswith(f"{one.audit}/"))]
    return found


def _report(battery: Battery) -> ReportDocument:
    audits = _ranked(battery.audits)
    count = sum("/" not in one.audit for one in audits)
    sizes = tuple((name.capitalize(), fmt.count(n)) for name, n in battery.sizes.items())
    # A failed control stands above every figure that it makes worthless.
    failed = [_warning(one) for one in controls_of(battery) if one.fails]
    lost = [f"{name} has no figure: {why}." for name, why in battery.skipped.items()]
    flattered = flattery(battery)
    benign, pairs = battery.benign, battery.paired
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=f"{count} audit{'' if count == 1 else 's'}, one split, with controls",
        sentence="One random split of one corpus. Thresholds and p-values rest on calibration"
        " documents that are in none of these rates.",
        method=", ".join(one.audit for one in audits if "/" not in one.audit),
        target=battery.settings.get("generator", ""),
        facts=(*sizes, ("Time", fmt.duration(battery.seconds))),
        brief=(("split", ", ".join(f"{n} {name.lower()}" for name, n in sizes)),),
        warnings=(*failed, *lost),
        claimed=(
            "So well each audit told the audited documents apart, with thresholds that were chosen"
            " on other documents.",
        ),
        not_claimed=(
            "That the ranking holds on another corpus or generator.",
            "That differences are corrected for the number of comparisons: they are not.",
        ),
        sections=(
            Section(
                "audits",
                "The audits",
                (_audits(audits), *([Paragraph(flattered, brief=True)] if flattered else [])),
            ),
            Section("controls", "Controls", (_controls(battery),)),
            *([Section("benign", "What the defense costs", _benign(benign))] if benign else []),
            *(
                [Section("pairs", "Audits against each other", (_pairs(battery),), "page")]
                if pairs
                else []
            ),
            Section(
                "each", "Each audit", tuple(_each(n, a) for n, a in enumerate(audits, 1)), "page"
            ),
        ),
        settings=tuple(battery.settings.items()),
        closing=("TPR1%: at 1 % FPR. FPR: non-members with p <= .05. lost: unscorable.",),
    )


def _warning(one: Control) -> str:
    if one.verdict == "not measured":
        return (
            f"The control “{one.name}” could not be measured: too few documents of one kind were"
            " scored."
        )
    why = (
        "The split can be told apart without any target; no figure below means what it seems to."
        if one.name.startswith("blind")
        else "The audit tells members apart without retrieval, or this is the one in twenty that"
        " chance brings."
    )
    return (
        f"The control “{one.name}” FAILS: it has AUC {short_rate(one.rate)}, and its interval does"
        f" not hold .5. {why}"
    )


def _audits(audits: Sequence[Measured]) -> Table:
    columns = (
        Column("Audit", "name", "audit"),
        Column("AUC [95 %]", "text", "AUC [95 %]", page=False),
        Column("AUC", "value"),
        Column("95 % interval", "interval"),
        Column("0 to 1", "strip"),
        Column("TPR at 1 % FPR", "value", "TPR1%"),
        Column("F1", "value", "F1"),
        Column("FPR at p ≤ .05", "value", "FPR"),
        Column("Unscorable", "value", "lost"),
        Column("Queries", "value", "q/doc"),
        Column("Seconds", "value", "s/doc"),
    )
    rows: list[tuple[Cell, ...]] = []
    for at, one in enumerate(audits, 1):
        _, slash, variant = one.audit.partition("/")
        seconds = one.cost.seconds
        rows.append(
            (
                Name(f" /{variant}" if slash else one.audit, anchor=f"a{at}"),
                short_rate(one.auc),
                one.auc,
                one.auc,
                one.auc,
                one.tpr_at_1_fpr,
                one.f1,
                # The realised rate at the level that the p-values promise, not at the method's own
                # threshold.
                one.false_positives["0.05"],
                one.unscorable,
                f"{one.cost.queries:.3g}",
                None if seconds is None else f"{seconds:.2g}".removeprefix("0"),
            )
        )
    caption = "AUC with its 95 % interval; TPR, F1 and cost per document"
    return Table(caption, columns, tuple(rows), "measures battery")


def _controls(battery: Battery) -> Table:
    columns = (
        Column("Control", "name", "control"),
        Column("AUC [95 %]", "text", "AUC [95 %]", page=False),
        Column("AUC", "value"),
        Column("95 % interval", "interval"),
        Column("n", "value"),
        Column("0 to 1", "strip"),
        Column("Expected", "text"),
        Column("Found", "text", "found"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            Name(one.name),
            short_rate(one.rate),
            one.rate,
            one.rate,
            one.rate.n,
            one.rate,
            one.expected,
            Mark(one.verdict, "in") if one.fails else one.verdict,
        )
        for one in controls_of(battery)
    )
    caption = (
        "What must not be told from chance, and the hardest quarter of the non-members (median"
        f" likeness to the index {fmt.rate_text(battery.likeness)})"
    )
    return Table(caption, columns, rows)


def _benign(cost: DefenseCost) -> tuple[Block, ...]:
    columns = (
        Column("Measure", "name", "benign questions"),
        Column("Undefended", "value"),
        Column("95 % interval", "interval"),
        Column("Undefended", "text", "undefended", page=False),
        Column("Defended", "value"),
        Column("95 % interval", "interval"),
        Column("Defended", "text", "defended", page=False),
        Column("Lost", "signed"),
        Column("n", "value", "n"),
    )
    # Loss is paired over the same questions, so that its interval is narrower than the difference
    # of two.
    found = benign_rows(cost)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            Name(one.name),
            one.before,
            one.before,
            "" if one.before is None else short_rate(one.before),
            one.after,
            one.after,
            short_rate(one.after),
            one.lost,
            one.after.n,
        )
        for one in found
    )
    lost = [f"{one.name} {fmt.signed(one.lost)}" for one in found if one.lost is not None]
    missing = unanswered(cost)
    told = [f"Lost, same questions: {', '.join(lost)}", missing, f"Defense: {cost.defense}"]
    caption = (
        "Benign questions about indexed documents that are not audited, asked with and without"
        f" {cost.defense}; lost: undefended minus defended, over the same questions"
    )
    hint = (
        "Recall: the document asked about is among the passages. Other passages: the defense"
        " changed them or their order. Answer quality: word F1 against the reply in the document,"
        " where it is a dialogue; same answer: against the undefended answer."
    )
    return (
        Table(caption, columns, rows),
        Paragraph(f"{'. '.join(filter(None, told))}.", brief=True),
        Paragraph(hint),
    )


def _pairs(battery: Battery) -> Fold:
    columns = (
        Column("First", "name"),
        Column("Second", "text"),
        Column("Difference", "signed"),
        Column("n", "value"),
    )
    # Largest differences first; many comparisons are made, and the caption says that none is
    # corrected.
    pairs = sorted(battery.paired.items(), key=lambda item: -abs(item[1].value))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (Name(first), second, rate, rate.n) for (first, second), rate in pairs
    )
    caption = (
        "First minus second; 95 % bootstrap interval over the n documents that both scored, not"
        f" corrected for the {fmt.count(len(pairs))} comparisons"
    )
    table = Table(caption, columns, rows)
    title = "Differences of AUC on the same documents"
    return Fold(title, (table,), fmt.count(len(pairs)))


def _each(at: int, one: Measured) -> Fold:
    # Every rate of one audit. What was not measured has no row, rather than a row without a number.
    rates: list[tuple[str, Rate | None]] = [
        ("AUC", one.auc),
        ("AUC, retrieved only", one.auc_retrieved),
        ("Accuracy", one.accuracy),
        ("Precision", one.precision),
        ("Recall", one.recall),
        ("F1", one.f1),
        ("TPR at 1 % FPR", one.tpr_at_1_fpr),
        ("FPR at p ≤ .05", one.false_positives["0.05"]),
        ("FPR at p ≤ .01", one.false_positives.get("0.01")),
        ("TPR at p ≤ .05", one.true_positives.get("0.05")),
        ("Recall@k", one.recall_at_k),
        ("Unscorable", one.unscorable),
    ]
    rows: list[tuple[Cell, ...]] = [
        (Name(name), rate, rate, rate.n) for name, rate in rates if rate is not None
    ]
    rows.append((Name("TPR at 0.1 % FPR"), one.tpr_at_01_fpr, None, one.auc.n))
    rows += [
        (Name(f"{name}, mean per document"), f"{value:.3g}", "", "")
        for name, value in one.outcomes.items()
    ]
    if one.cost.tokens is not None:
        rows.append((Name("Tokens per document"), f"{one.cost.tokens:.0f}", "", ""))
    columns = (
        Column("Measure", "name"),
        Column("Value", "value"),
        Column("95 % interval", "interval"),
        Column("n", "value"),
    )
    caption = f"Every rate with its 95 % interval and n; decisions by {one.decided_by}"
    roc = roc_curve(one.roc, one.auc.value, one.audit)
    blocks = (Table(caption, columns, tuple(rows)), roc)
    area = f"AUC {fmt.rate_text(one.auc.value)}"
    return Fold(one.audit, blocks, area, "in", at == 1, f"a{at}")


def _rows(battery: Battery) -> list[Row]:
    """One row per audit and variant of its score."""
    return [
        {
            "audit": one.audit,
            "auc": finite(one.auc.value),
            "low": finite(one.auc.low),
            "high": finite(one.auc.high),
            "n": one.auc.n,
            "accuracy": finite(one.accuracy.value),
            "f1": finite(one.f1.value),
            "tpr_at_1_fpr": finite(one.tpr_at_1_fpr.value),
            "unscorable": finite(one.unscorable.value),
            "queries": one.cost.queries,
            "seconds": one.cost.seconds,
        }
        for one in battery.audits
    ]


_COLUMNS = {
    "audit": str,
    "auc": float,
    "low": float,
    "high": float,
    "n": int,
    "accuracy": float,
    "f1": float,
    "tpr_at_1_fpr": float,
    "unscorable": float,
    "queries": float,
    "seconds": float,
}


# As it is stored.


def _dump(battery: Battery) -> Row:
    """Return ``{"audits": {name: {...}}, "controls": {name: {...}}, ...}``, strict JSON."""
    return {
        # Names as keys: the JSON is read by people and by `ragwitness plan --evaluation`.
        "audits": {one.audit: _dump_audit(one) for one in battery.audits},
        "controls": {
            name: {
                "auc": finite(r.value),
                "auc_interval": [finite(r.low), finite(r.high)],
                "n": r.n,
            }
            for name, r in battery.controls.items()
        },
        "paired": [
            {
                "first": a,
                "second": b,
                "auc_difference": r.value,
                "interval": [r.low, r.high],
                "n": r.n,
            }
            for (a, b), r in battery.paired.items()
        ],
        "benign": benign_json(battery.benign),
        "skipped": battery.skipped,
        "sizes": battery.sizes,
        "near_duplicate_likeness": finite(battery.likeness),
        "settings": dict(battery.settings),
        "seconds": battery.seconds,
    }


def _dump_audit(one: Measured) -> dict[str, Any]:
    # The AUC stands flat beside its interval, as in the first files that were written.
    data: dict[str, Any] = plain(asdict(one))
    rate = data["auc"]
    return data | {
        "auc": rate["value"],
        "auc_interval": [rate["low"], rate["high"]],
        "n": rate["n"],
        "roc": [list(corner) for corner in one.roc],
    }


def benign_json(cost: DefenseCost | None) -> dict[str, Any] | None:
    """Return ``{"recall": {"undefended": {...}, "defended": {...}, ...}, ...}``, or None."""
    if cost is None:
        return None
    found, answers = cost.retrieval, cost.answers
    data: dict[str, Any] = {
        "defense": cost.defense,
        "k": cost.k,
        "questions": found.recall.n,
        "recall": _beside(found.recall_before, found.recall, found.recall_lost),
        "other_passages": asdict(found.changed),
        "answer_quality": None,
        "agreement": None,
        "refused": None,
        "unanswered": {"undefended": cost.failed_before, "defended": cost.failed},
    }
    if answers is not None:
        data["agreement"] = asdict(answers.agreement)
        data["refused"] = _beside(answers.refused_before, answers.refused)
        if answers.quality_before is not None and answers.quality is not None:
            data["answer_quality"] = _beside(
                answers.quality_before, answers.quality, answers.quality_lost
            )
    return data


def _beside(before: Rate, after: Rate, lost: Rate | None = None) -> dict[str, Any]:
    both = {"undefended": asdict(before), "defended": asdict(after)}
    return both if lost is None else both | {"lost": asdict(lost)}


def _load(data: Mapping[str, Any]) -> Battery:
    found = {
        **data,
        "audits": [_audit_of_stored(one) for one in data["audits"].values()],
        "controls": {name: _area(one) for name, one in data["controls"].items()},
        "paired": {},
        "likeness": _number(data["near_duplicate_likeness"]),
        "benign": _benign_of_stored(data.get("benign")),
    }
    # The dataclass is restored first, then the pairs: pydantic has no key of two names.
    battery = restored(Battery, found, RESULT_TYPE)
    # Pairs of names are no keys in JSON.
    pairs = {
        (one["first"], one["second"]): restored(Rate, _paired(one), RESULT_TYPE)
        for one in data["paired"]
    }
    return replace(battery, paired=pairs)


def _audit_of_stored(one: Mapping[str, Any]) -> dict[str, Any]:
    """An undefined number is null in JSON and NaN in memory, save where None has a meaning."""
    # Null has two meanings: no such measure (a rate that is None) or an undefined number (NaN
    # within one).
    rates = {key: _rate(value) for key, value in one.items() if _is_rate(value)}
    by_level = {
        kind: {level: _rate(rate) for level, rate in one[kind].items()}
        for kind in ("false_positives", "true_positives")
    }
    numbers = {key: _number(one[key]) for key in ("threshold", "tpr_at_01_fpr")}
    tables = {
        kind: {name: _number(value) for name, value in one[kind].items()}
        for kind in ("outcomes", "scores")
    }
    return {**one, **rates, **by_level, **numbers, **tables, "auc": _area(one)}


def _area(one: Mapping[str, Any]) -> dict[str, Any]:
    # Flat again into a rate.
    low, high = one["auc_interval"]
    return _rate({"value": one["auc"], "low": low, "high": high, "n": one["n"]})


def _paired(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one["interval"]
    return _rate({"value": one["auc_difference"], "low": low, "high": high, "n": one["n"]})


def _benign_of_stored(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    # The stored form groups by measure, the dataclass by system; answers are missing where nothing
    # generated.
    recall, quality, refused = (stored[key] for key in ("recall", "answer_quality", "refused"))
    answers = refused and {
        "agreement": stored["agreement"],
        "quality_before": quality and quality["undefended"],
        "quality": quality and quality["defended"],
        "quality_lost": quality and quality["lost"],
        "refused_before": refused["undefended"],
        "refused": refused["defended"],
    }
    return {
        "defense": stored["defense"],
        "k": stored["k"],
        "retrieval": {
            "recall_before": recall["undefended"],
            "recall": recall["defended"],
            "recall_lost": recall["lost"],
            "changed": stored["other_passages"],
        },
        "answers": answers,
        "failed_before": stored["unanswered"]["undefended"],
        "failed": stored["unanswered"]["defended"],
    }


def _is_rate(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"value", "low", "high", "n"}


def _rate(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _number(value[key]) for key in ("value", "low", "high")} | {"n": value["n"]}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


# How well audits told members apart in an evaluation, read from its JSON.

_HINT = "Give what 'ragwitness evaluate' wrote with --json, or the result.json of its run."


def measured_rocs(path: Path) -> dict[str, MeasuredRoc]:
    """Return the ROC of every audit in the JSON of an evaluation, by the audit's name.

    Raises:
        InputError: There is no such file, or it is no evaluation.
    """
    data = read_object(path, _HINT)
    audits = data.get("audits")
    if not isinstance(audits, dict):
        raise InputError(f"{path} is not an evaluation: it has no 'audits'.", _HINT)
    return {name: _roc(name, entry, path) for name, entry in audits.items()}


def _roc(name: str, entry: Mapping[str, Any], path: Path) -> MeasuredRoc:
    try:
        # The ROC with the number of documents outside that it rests on: its steps are no finer than
        # 1 / n.
        corners = tuple((float(false), float(true)) for false, true in entry["roc"])
        # Every level's rate is a share of the same scored documents outside.
        outside = next(iter(entry["false_positives"].values()))["n"]
        return MeasuredRoc(corners, int(outside))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration, InputError) as error:
        raise InputError(f"{path}: the ROC of {name!r} is malformed ({error}).", _HINT) from error


RESULT_TYPE: ResultType[Battery, BatteryCondition] = ResultType(
    name="evaluation",
    words="evaluation",
    verb="evaluate",
    dump=_dump,
    load=_load,
    recognises=lambda data: "audits" in data,
    conditions=_conditions,
    rule=_rule,
    report=_report,
    rows=_rows,
    columns=_COLUMNS,
)
