"""The result of ``ragwitness evaluate``: many audits side by side on one corpus."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.core.types import Shown
from ragwitness.membership.results.prose import prose
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
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
    finite,
    plain,
    restored,
)
from ragwitness.stats.rates import Rate


@dataclass(frozen=True, slots=True)
class Cost:
    """Average cost of one document.

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
        sizes: Documents by part of the split.
        likeness: Median likeness of the near-duplicate non-members to the index.
        settings: Everything in use, as label and value.
        seconds: Wall time.
    """

    audits: tuple[Measured, ...]
    controls: dict[str, Rate]
    skipped: dict[str, str]
    sizes: dict[str, int]
    likeness: float
    settings: dict[str, str]
    seconds: float


# Controls: guessers and systems that must not tell members apart.

_CHANCE = 0.5
_WIDE = 0.3  # an interval wider than this excludes next to nothing


@dataclass(frozen=True, slots=True)
class Control:
    """A control in words.

    Attributes:
        name: As in the JSON.
        rate: Its AUC.
        expected: The value that it should have.
        verdict: Whether it has it.
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
    if name.startswith("near-duplicates"):
        return Control(name, rate, "none promised", "")
    # A trained guesser below .5 has nothing; a length or an audit below .5 can be turned round.
    one_sided = name == "blind words"
    expected = "low end at most .5" if one_sided else "interval holds .5"
    if rate.low > _CHANCE or (rate.high < _CHANCE and not one_sided):
        return Control(name, rate, expected, "FAILS", True)
    # An interval that excludes next to nothing holds .5 without saying anything.
    wide = rate.high - rate.low > _WIDE
    return Control(name, rate, expected, "too few to tell" if wide else "holds")


# The report.


def short_rate(rate: Rate) -> str:
    """Return an estimate with its interval, short enough for a narrow table."""
    if math.isnan(rate.value):
        return fmt.MISSING
    return f"{fmt.short(rate.value)} [{fmt.short(rate.low)}, {fmt.short(rate.high)}]"


def _rate_columns(name: str, short: str) -> tuple[Column, ...]:
    """Return the columns of a rate: one in a terminal, estimate and interval in a page."""
    return (
        Column(name, "text", short, page=False),
        Column(name, "value"),
        Column("95 % interval", "interval"),
    )


def _rate_cells(rate: Rate) -> tuple[Cell, ...]:
    return (short_rate(rate), rate, rate)


def _ranked(audits: Sequence[Measured]) -> list[Measured]:
    """Audits by AUC, highest first, each with the variants of its score below it."""
    by_auc = sorted(audits, key=lambda measured: -measured.auc.value)
    ranked = []
    for measured in by_auc:
        if "/" not in measured.audit:
            variants = (v for v in by_auc if v.audit.startswith(f"{measured.audit}/"))
            ranked += [measured, *variants]
    return ranked


def _report(battery: Battery) -> ReportDocument:
    # The variants of a score are no audits of their own.
    audits, settings = _ranked(battery.audits), battery.settings
    names = [measured.audit for measured in audits if "/" not in measured.audit]
    sizes = tuple((name.capitalize(), fmt.count(n)) for name, n in battery.sizes.items())
    # A failed control comes before every figure that it makes worthless.
    failed = [_warning(control) for control in controls_of(battery) if control.fails]
    skipped = [f"{name} has no figure: {reason}." for name, reason in battery.skipped.items()]
    by_reader = settings.get("generator", "").startswith("reader")
    texts = prose("evaluation")
    hints = (Paragraph(texts["flattered"], brief=True),) if by_reader else ()
    sections = (
        Section("audits", "The audits", (_audits(audits), *hints)),
        Section("controls", "Controls", (_controls(battery),)),
        Section("each", "Each audit", tuple(_each(n, a) for n, a in enumerate(audits, 1)), "page"),
    )
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=f"{len(names)} audit{'' if len(names) == 1 else 's'}, one split, with controls",
        sentence=texts["sentence"],
        method=", ".join(names),
        target=settings.get("generator", ""),
        facts=(*sizes, ("Time", fmt.duration(battery.seconds))),
        brief=(("split", ", ".join(f"{n} {name.lower()}" for name, n in sizes)),),
        warnings=(*failed, *skipped),
        claimed=(texts["claimed"],),
        not_claimed=tuple(texts["not_claimed"]),
        sections=sections,
        settings=tuple(settings.items()),
        closing=(texts["closing"],),
    )


def _warning(control: Control) -> str:
    # A control that was not measured fails like one that is off, for another reason.
    name = f"The control “{control.name}”"
    if control.verdict == "not measured":
        return f"{name} could not be measured: too few documents of one kind were scored."
    reason = prose("evaluation")["blind" if control.name.startswith("blind") else "retrieval"]
    return (
        f"{name} FAILS: it has AUC {short_rate(control.rate)}, and its interval does not hold .5."
        f" {reason}"
    )


def _audits(audits: Sequence[Measured]) -> Table:
    columns = (
        Column("Audit", "name", "audit"),
        *_rate_columns("AUC", "AUC [95 %]"),
        Column("0 to 1", "strip"),
        Column("TPR at 1 % FPR", "value", "TPR1%"),
        Column("F1", "value", "F1"),
        Column("FPR at p ≤ .05", "value", "FPR"),
        Column("Unscorable", "value", "lost"),
        Column("Queries", "value", "q/doc"),
        Column("Seconds", "value", "s/doc"),
    )
    rows: list[tuple[Cell, ...]] = []
    for rank, measured in enumerate(audits, 1):
        _, slash, variant = measured.audit.partition("/")
        seconds = measured.cost.seconds
        rows.append(
            (
                Name(f" /{variant}" if slash else measured.audit, anchor=f"a{rank}"),
                *_rate_cells(measured.auc),
                measured.auc,
                measured.tpr_at_1_fpr,
                measured.f1,
                # The realised rate at the level that the p-values promise, not at the method's own
                # threshold.
                measured.false_positives["0.05"],
                measured.unscorable,
                f"{measured.cost.queries:.3g}",
                None if seconds is None else f"{seconds:.2g}".removeprefix("0"),
            )
        )
    caption = "AUC with its 95 % interval; TPR, F1 and cost per document"
    return Table(caption, columns, tuple(rows), "measures battery")


def _controls(battery: Battery) -> Table:
    columns = (
        Column("Control", "name", "control"),
        *_rate_columns("AUC", "AUC [95 %]"),
        Column("n", "value"),
        Column("0 to 1", "strip"),
        Column("Expected", "text"),
        Column("Found", "text", "found"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            Name(control.name),
            *_rate_cells(control.rate),
            control.rate.n,
            control.rate,
            control.expected,
            Mark(control.verdict, "in") if control.fails else control.verdict,
        )
        for control in controls_of(battery)
    )
    caption = (
        "Guessers that must not beat chance, and the hardest quarter of the non-members (median"
        f" likeness to the index {fmt.rate_text(battery.likeness)})"
    )
    return Table(caption, columns, rows)


def _each(place: int, measured: Measured) -> Fold:
    # Every rate of one audit. A rate that was not measured has no row.
    rates: list[tuple[str, Rate | None]] = [
        ("AUC", measured.auc),
        ("AUC, retrieved only", measured.auc_retrieved),
        ("Accuracy", measured.accuracy),
        ("Precision", measured.precision),
        ("Recall", measured.recall),
        ("F1", measured.f1),
        ("TPR at 1 % FPR", measured.tpr_at_1_fpr),
        ("FPR at p ≤ .05", measured.false_positives["0.05"]),
        ("FPR at p ≤ .01", measured.false_positives.get("0.01")),
        ("TPR at p ≤ .05", measured.true_positives.get("0.05")),
        ("Recall@k", measured.recall_at_k),
        ("Unscorable", measured.unscorable),
    ]
    # Rates first, then figures without an interval.
    rows: list[tuple[Cell, ...]] = [
        (Name(name), rate, rate, rate.n) for name, rate in rates if rate is not None
    ]
    rows.append((Name("TPR at 0.1 % FPR"), measured.tpr_at_01_fpr, None, measured.auc.n))
    rows += [
        (Name(f"{name}, mean per document"), f"{value:.3g}", "", "")
        for name, value in measured.outcomes.items()
    ]
    if measured.cost.tokens is not None:
        rows.append((Name("Tokens per document"), f"{measured.cost.tokens:.0f}", "", ""))
    columns = (
        Column("Measure", "name"),
        Column("Value", "value"),
        Column("95 % interval", "interval"),
        Column("n", "value"),
    )
    caption = f"Every rate with its 95 % interval and n; decisions by {measured.decided_by}"
    roc = roc_curve(measured.roc, measured.auc.value, measured.audit)
    blocks = (Table(caption, columns, tuple(rows)), roc)
    area = f"AUC {fmt.rate_text(measured.auc.value)}"
    return Fold(measured.audit, blocks, area, "in", place == 1, f"a{place}")


def _rows(battery: Battery) -> list[Row]:
    """One row per audit and variant of its score."""
    return [
        {
            "audit": measured.audit,
            "auc": finite(measured.auc.value),
            "low": finite(measured.auc.low),
            "high": finite(measured.auc.high),
            "n": measured.auc.n,
            **{
                name: finite(getattr(measured, name).value)
                for name in ("accuracy", "f1", "tpr_at_1_fpr", "unscorable")
            },
            "queries": measured.cost.queries,
            "seconds": measured.cost.seconds,
        }
        for measured in battery.audits
    ]


_COLUMNS = {"audit": str, "auc": float, "low": float, "high": float, "n": int} | dict.fromkeys(
    ("accuracy", "f1", "tpr_at_1_fpr", "unscorable", "queries", "seconds"), float
)


# The stored form.


def _dump(battery: Battery) -> Row:
    """Return ``{"audits": {name: {...}}, "controls": {name: {...}}, ...}``, strict JSON."""
    # Undefined numbers become null.
    row = plain(asdict(battery))
    return dict(row) | {
        # Names as keys: people read this JSON.
        "audits": {stored["audit"]: stored | _flat(stored["auc"]) for stored in row["audits"]},
        "controls": {name: _flat(rate) for name, rate in row["controls"].items()},
        "near_duplicate_likeness": row.pop("likeness"),
    }


def _flat(rate: Mapping[str, Any]) -> Row:
    """The AUC stands flat beside its interval, as in the first files that were written."""
    return {"auc": rate["value"], "auc_interval": [rate["low"], rate["high"]], "n": rate["n"]}


def _load(data: Mapping[str, Any]) -> Battery:
    audits = [_numbers(stored) | {"auc": _area(stored)} for stored in data["audits"].values()]
    fields = {
        **data,
        "audits": audits,
        "controls": {name: _area(stored) for name, stored in data["controls"].items()},
        "likeness": _number(data["near_duplicate_likeness"]),
    }
    return restored(Battery, fields, RESULT_TYPE)


def _area(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = map(_number, one["auc_interval"])
    return {"value": _number(one["auc"]), "low": low, "high": high, "n": one["n"]}


_NULLABLE = {"precision", "recall_at_k", "auc_retrieved", "tokens", "seconds"}


def _numbers(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Turn null into NaN, all the way down; of some measures null says that there is none."""
    return {
        key: _numbers(value)
        if isinstance(value, Mapping)
        else math.nan
        if value is None and key not in _NULLABLE
        else value
        for key, value in stored.items()
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


RESULT_TYPE: ResultType[Battery, object] = ResultType(
    name="evaluation",
    words="evaluation",
    verb="evaluate",
    dump=_dump,
    load=_load,
    recognises=lambda data: "audits" in data,
    report=_report,
    rows=_rows,
    columns=_COLUMNS,
)
