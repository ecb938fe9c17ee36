"""Privacy against usefulness, variant by variant: what was found, and what every report says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ragwitness.comparison.frontier import (
    Contender,
    MakingCost,
    floor_warning,
    frontier_table,
    ranking,
)
from ragwitness.core.errors import ExitCode
from ragwitness.core.types import LeftOut, Shown
from ragwitness.leakage.result import (
    MEASURE_COLUMNS,
    AttackLeaks,
    LeakCondition,
    chosen,
    measure_row,
    read_leak_conditions,
    rule_measures,
)
from ragwitness.leakage.score.table import LeakMeasure
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Axis,
    Cell,
    Column,
    Curves,
    Fold,
    Line,
    LinesPanel,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Table,
)
from ragwitness.report.result_type import ResultType, Row, Ruling, passed, plain, restored
from ragwitness.report.spending import Spending
from ragwitness.stats.evaluation import Rate

ORIGIN = "origin"
"""Name of the variant that the records themselves are."""
CORRECTNESS = "correctness (judged)"
"""The measure of usefulness that is shown first, where it was taken."""
LEAKS = ("repeat prompts 10", "in-order prompts", "fact prompts")
"""Prompts that leak, in results of older versions: the measure that counts most of them."""
PUBLISHED = ("repeat prompts", "repeat contexts", "ROUGE prompts", "ROUGE contexts", "targeted")

CLAIMED = (
    "Every variant was indexed in the same system, attacked by the same attacks with the same"
    " seed, and asked the same questions.",
    "Leaks are of the original records, whatever was indexed in their place, each answer held"
    " against every record.",
    "A difference of usefulness is paired over questions, with a bootstrap 95 % interval; beside"
    " it stands what is left of it when both answers are equally long.",
    "The worst case holds the texts themselves against every record: no attack gets more words out"
    " of them than are in them.",
)
NOT_CLAIMED = (
    "That what does not leak here is safe: a fact told in other words is seen by no measure of"
    " words, and other attacks or generators may get more.",
    "That the order of the variants holds for another generator: a small model that copies tells"
    " more, and knows less, than a large one.",
    "Any bound for one person's data, unless a variant was made with differential privacy: then"
    " its own statement says what its ε covers.",
)


@dataclass(frozen=True, slots=True)
class Usefulness:
    """One measure of the answers to the questions.

    Attributes:
        mean: Over the questions that have a score.
        gain: Minus the same measure of ``origin``, paired; None for ``origin`` itself.
        held: The same at equal length of answers.
        near: Pairs of about equal length; with few, ``held`` is an extrapolation.
        above: Minus the same measure against the answers to other questions, paired; None where
            it was not taken.
    """

    mean: Rate
    gain: Rate | None = None
    held: Rate | None = None
    near: int = 0
    above: Rate | None = None


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The texts themselves against every record: what an attacker who gets all of them has.

    SAGE compares each text with its own original only (App. A.5, Table 8).

    Attributes:
        texts: That are indexed.
        longest: Tokens of the longest run shared with any record, without regard to case.
        closest: Highest ROUGE-L F1 of a text with any record.
        measures: As of answers, each text an answer of which the original was retrieved.
    """

    texts: int
    longest: int
    closest: float
    measures: tuple[LeakMeasure, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant.

    Attributes:
        name: Its own.
        target: Name of the system over it.
        indexed: Texts in the index.
        words: Mean words of a text.
        attacks: What each attack got out of the original records.
        together: Over all prompts, each once.
        worst: The texts themselves; None where none are shown to anybody.
        usefulness: By measure; empty without questions.
        answer_words: Mean words of an answer to a question; None where there is none.
        unanswered: Questions that failed.
        unjudged: Answers that could not be judged, by reason.
        settings: How its texts were made.
        cost: Of making its texts; None where they were given.
        doubt: Why what is not found may leak all the same; empty where enough was answered.
    """

    name: str
    target: str
    indexed: int
    words: float
    attacks: tuple[AttackLeaks, ...]
    together: tuple[LeakMeasure, ...]
    worst: WorstCase | None
    usefulness: Mapping[str, Usefulness]
    answer_words: float | None
    unanswered: int
    unjudged: Mapping[str, int]
    settings: Mapping[str, str]
    cost: MakingCost | None = None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """Privacy against usefulness, variant by variant.

    Attributes:
        started: ISO 8601 in UTC.
        seconds: Wall time.
        records: Of the private corpus.
        background: Records in no index.
        questions: Put to every variant.
        variants: ``origin`` first.
        settings: Everything in use, as label and value.
        warnings: What a reader must know first.
        spent: On chat models; None where none was asked.
        ragwitness: Version of this package.
        left_out: Files and rows that were given and could not be read.
    """

    started: str
    seconds: float
    records: int
    background: int
    questions: int
    variants: tuple[Compared, ...]
    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    spent: Spending | None = None
    ragwitness: str = ""
    left_out: tuple[LeftOut, ...] = ()


def main_measure(result: Comparison) -> str:
    """Return the measure of usefulness that is shown first; empty without questions."""
    names = [name for one in result.variants for name in one.usefulness]
    return CORRECTNESS if CORRECTNESS in names else next(iter(names), "")


# Whether a comparison passes: the conditions of a leak measurement, on every variant that is to
# stand in the records' place.


def _rule(result: Comparison, conditions: Sequence[LeakCondition]) -> Ruling:
    # `origin` is the corpus itself and is expected to leak; the gate is on what would replace it.
    endings = [
        (one.name, rule_measures(one.together, conditions, one.doubt))
        for one in result.variants
        if one.name != ORIGIN
    ]
    # A leak in one variant weighs more than a variant that was not measured.
    for code in (ExitCode.FAILED, ExitCode.INCONCLUSIVE):
        for name, ruling in endings:
            if ruling.code is code:
                return Ruling(code, f"{name}: {ruling.why}")
    return passed(conditions)


def _dump(result: Comparison) -> Row:
    stored = dict(plain(asdict(result)))
    for one in stored["variants"]:
        if not one["doubt"]:  # results of before had no such field
            del one["doubt"]
    return stored


def _rows(result: Comparison) -> list[Row]:
    """One row per variant and measure: what leaked over all prompts, then what it is worth."""
    found = []
    for one in result.variants:
        found += [measure_row(one.name, measure) for measure in one.together]
        for name, use in one.usefulness.items():
            row: Row = dict.fromkeys(MEASURE_COLUMNS)
            row |= {"of": one.name, "measure": f"usefulness: {name}", "published": False}
            row |= {"count": use.mean.value, "out_of": use.mean.n, "share": use.mean.value}
            found.append(row | {"low": use.mean.low, "high": use.mean.high})
    return found


# What a report says.


def headline(result: Comparison) -> tuple[str, str]:
    """Return a title and a sentence."""
    base, others = _contenders(result)
    # Without a passage nothing leaks: that is the lower end of usefulness, and no substitute.
    shown = {one.name for one in result.variants if one.indexed}
    title, sentence = ranking(base, [one for one in others if one.name in shown])
    unheld = "" if result.background else " No count was held against chance: no background."
    return title, f"{sentence}{unheld}"


def _contenders(result: Comparison) -> tuple[Contender | None, list[Contender]]:
    """The records as they are, and what would stand in their place."""
    main, found = main_measure(result), []
    for one in result.variants:
        leak, use = _leaking(one), one.usefulness.get(main)
        contender = Contender(
            one.name,
            int(leak.count) if leak else None,
            leak.of if leak else 0,
            (leak.excess or leak.rate) if leak else None,
            use.mean if use else None,
            use.gain if use else None,
            use.above if use else None,
            one.cost,
        )
        found.append(contender)
    return next((one for one in found[:1] if one.name == ORIGIN), None), found[1:]


def _leaking(one: Compared) -> LeakMeasure | None:
    """How many prompts bring a record out, whichever way, that nothing else explains."""
    # Few answers bring few records out, and that is no merit of the texts.
    counted = () if one.doubt else one.together
    if (leaked := chosen(counted, "leaked prompts")) is not None:
        return leaked
    found = [measure for label in LEAKS if (measure := chosen(counted, label))]
    return max(found, key=lambda measure: measure.count, default=None)


def _report(result: Comparison) -> ReportDocument:
    title, sentence = headline(result)
    spent, main = fmt.spent_text(result.spent), main_measure(result)
    figure = drawn(result)
    counts = (
        ("Records", fmt.count(result.records)),
        ("In no index", fmt.count(result.background)),
        ("Questions", fmt.count(result.questions)),
    )
    base, others = _contenders(result)
    floor = floor_warning(base, main)
    sections = [
        Section("frontier", "Leak against usefulness and cost", frontier_table(base, others)),
        Section("leaks", "What leaks of the original records", _leaks(result)),
    ]
    if figure is not None:
        sections.insert(0, Section("figure", figure.title, (figure,), "page"))
    if main:
        sections.append(Section("use", "What it is worth in answers", _use(result, main)))
    published = Fold("Published counts", (_published_table(result),))
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=title,
        sentence=sentence,
        method=", ".join(one.name for one in result.variants),
        facts=(
            *counts,
            ("Started", fmt.moment(result.started)),
            *([("Spent on chat models by all starts", spent)] if spent else []),
        ),
        warnings=(*([floor] if floor else []), *result.warnings),
        left_out=result.left_out,
        claimed=CLAIMED,
        not_claimed=NOT_CLAIMED,
        sections=(
            *sections,
            Section("published", "Counted as the papers do", (published,), "page"),
        ),
        settings=(
            *result.settings.items(),
            *((one.name, _made(one)) for one in result.variants),
            ("Time", fmt.duration(result.seconds)),
            ("Ragwitness", result.ragwitness or fmt.MISSING),
        ),
        closing=(f"spent: {spent}, {fmt.duration(result.seconds)}.",) if spent else (),
        version=result.ragwitness,
    )


def _made(one: Compared) -> str:
    """How a variant was made, and what went wrong with its questions."""
    parts = [f"{label}: {value}" for label, value in one.settings.items()]
    if one.unanswered:
        parts.append(f"{fmt.count(one.unanswered)} questions failed")
    parts += [f"{fmt.count(n)} answers not judged: {why}" for why, n in one.unjudged.items()]
    return "; ".join(parts)


def _leaks(result: Comparison) -> tuple[Table, Paragraph, Paragraph]:
    alike = any(_alike(one) is not None for one in result.variants)
    columns = (
        Column("Variant", "name", "original records"),
        Column("Texts", "value", "texts"),
        Column("Words", "value"),
        Column("Repeat prompts", "value"),
        Column("Repeat prompts", "value", "prompts", page=False),
        Column("95 % interval", "interval", "95 %"),
        Column("Less chance [95 %]", "signed"),
        Column("Records", "value"),
        Column("Records", "value", "records", page=False),
        Column("Coverage", "value", "cover"),
        *([Column("Like prompts", "value")] if alike else []),
        Column("Secrets", "value"),
        Column("Longest run", "value", "worst"),
        Column("Closest", "value", "ROUGE"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in result.variants:
        # Leaks are of the original records in every row, whatever was indexed.
        prompts, records = (
            chosen(one.together, label) for label in (LEAKS[0], "repeat records 10")
        )
        coverage = chosen(one.together, "coverage")
        rows.append(
            (
                Name(one.name),
                one.indexed,
                f"{one.words:.0f}" if one.indexed else None,
                _of(prompts),
                int(prompts.count) if prompts else None,
                prompts.rate if prompts else None,
                prompts.excess if prompts else None,
                _of(records),
                int(records.count) if records else None,
                coverage.count if coverage else None,
                *([_of(_alike(one))] if alike else []),
                _secrets(one.together),
                one.worst.longest if one.worst else None,
                one.worst.closest if one.worst else None,
            )
        )
    caption = (
        "All prompts together, each answer against every record; the last two columns hold the"
        " texts themselves against every record"
    )
    hint = (
        "Repeat prompts and records share a run of 10 or more tokens with a record; coverage is the"
        " mean share of a record's tokens in such runs; longest run in tokens, whatever the case;"
        " closest is the highest ROUGE-L F1 of a text with any record."
    )
    if alike:
        hint += " Like prompts are answers whose cosine with a record is above .85."
    brief = (
        "Worst and ROUGE hold the texts themselves against every record: the longest shared run of"
        " tokens, and the highest ROUGE-L F1."
    )
    return (
        Table(caption, columns, tuple(rows)),
        Paragraph(hint),
        Paragraph(brief, brief=True, page=False),
    )


def _alike(one: Compared) -> LeakMeasure | None:
    return next((m for m in one.together if m.name == "like prompts"), None)


def _of(one: LeakMeasure | None) -> str | None:
    return None if one is None else f"{fmt.count(int(one.count))} of {fmt.count(one.of)}"


def _secrets(measures: Sequence[LeakMeasure]) -> str | None:
    """Secrets of all kinds that came back."""
    found = [one for one in measures if one.name == "secrets" and not one.published]
    if not found:
        return None
    return f"{sum(int(m.count) for m in found):,} of {sum(m.of for m in found):,}"


def _use(result: Comparison, main: str) -> tuple[Table | Fold | Paragraph, ...]:
    names = dict.fromkeys(name for one in result.variants for name in one.usefulness)
    more = [name for name in names if name != main]
    caption = f"{main}, the same questions for every variant"
    shown: list[Table | Fold | Paragraph] = [_use_table(result, [main], caption, brief=True)]
    shown.append(
        Paragraph(
            "The gain is the mean less that of origin, paired over the questions; at equal length"
            " stands what is left of it when both answers are equally long.",
            brief=True,
        )
    )
    if more:
        other = _use_table(result, more, "Every other measure of the same answers", brief=False)
        shown.append(Fold("Other measures", (other,)))
    return tuple(shown)


def _use_table(result: Comparison, measures: Sequence[str], caption: str, *, brief: bool) -> Table:
    columns: tuple[Column, ...] = (
        Column("Variant" if brief else "Measure and variant", "name", measures[0]),
        Column("Words", "value", "words", page=False),
        Column("Mean", "value", "mean"),
        Column("95 % interval", "interval", "95 %"),
        Column("Less origin [95 %]", "signed"),
        Column("Less origin", "change", "gain", page=False),
        Column("95 %", "ends", "95 %", page=False),
        Column("At equal length [95 %]", "signed"),
        Column("At equal length", "change", "equal length", page=False),
        Column("Questions", "value"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name in measures:
        for one in result.variants:
            if (found := one.usefulness.get(name)) is None:
                continue
            words = "" if one.answer_words is None else f"{one.answer_words:.0f}"
            # Longer answers score higher on most measures: "held" is what is left of the gain at
            # equal length.
            gain, held, mean = found.gain, found.held, found.mean
            label = Name(one.name) if brief else Name(name, one.name)
            rows.append((label, words, mean, mean, gain, gain, gain, held, held, mean.n))
    if not brief:
        columns = tuple(Column(column.name, column.kind, None, column.page) for column in columns)
    return Table(caption, columns, tuple(rows))


def _published_table(result: Comparison) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in result.variants:
        # The texts themselves as a last attack: no attack gets out more than is in them.
        parts = [(attack.name, attack.measures) for attack in one.attacks]
        if one.worst is not None:
            parts.append(("the texts themselves", one.worst.measures))
        for name, measures in parts:
            cells = [_published(measures, label) for label in PUBLISHED]
            rows.append((Name(one.name), name, *cells))
    caption = (
        "Against the originals of the passages retrieved for the same prompt; of targeted"
        " information, words of the aim and contact details"
    )
    columns = (Column("Variant", "name"), Column("Attack", "text"))
    return Table(caption, (*columns, *(Column(one, "value") for one in PUBLISHED)), tuple(rows))


def _published(measures: Sequence[LeakMeasure], name: str) -> str:
    """A published count; SAGE counts runs of 10 tokens."""
    found = [
        one
        for one in measures
        if one.published and one.name.startswith(name) and one.key != "20" and one.note is None
    ]
    return " / ".join(fmt.count(int(one.count)) for one in found) or fmt.MISSING


def drawn(result: Comparison) -> Curves | None:
    """Return the figure; None where usefulness or leaks were not measured."""
    points: list[Line] = []
    main = main_measure(result)
    for one in result.variants:
        leak, use = _leaking(one), one.usefulness.get(main)
        # A point needs both coordinates with intervals; a variant that was not asked anything has
        # no place.
        if leak is not None and leak.rate is not None and use is not None:
            x, y = use.mean, leak.rate
            point = (x.value, y.value, y.low, y.high, x.low, x.high)
            colour = 1 if one.name == ORIGIN else (0, 2, 3, 4, 5)[len(points) % 5]
            points.append(Line(one.name, (point,), colour, marks=True))
    if not points:
        return None
    axes = (Axis(f"usefulness: {main}"), Axis("leak: share of prompts"))
    panel = LinesPanel("", *axes, tuple(points), floor=0.0)
    return Curves(
        "Privacy against usefulness",
        lambda: [panel],
        "Share of prompts whose answer brings an original record out, by a run of 10 tokens, in"
        f" order or by its facts, chance not taken off, against {main} of the answers to the"
        " questions. Lower and further right is better. Whiskers are 95 % intervals.",
    )


RESULT_TYPE: ResultType[Comparison, LeakCondition] = ResultType(
    name="comparison",
    words="comparison",
    verb="compare",
    load=lambda data: restored(Comparison, data, RESULT_TYPE),
    dump=_dump,
    recognises=lambda data: "variants" in data,
    conditions=read_leak_conditions,
    rule=_rule,
    report=_report,
    rows=_rows,
    columns=MEASURE_COLUMNS,
)
