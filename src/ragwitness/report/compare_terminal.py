"""A comparison as tables for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.report import wording as say
from ragwitness.report.battery import short
from ragwitness.report.compare import (
    CLAIMED,
    NOT_CLAIMED,
    headline,
    leak_rows,
    main_measure,
)
from ragwitness.report.view import spent_text
from ragwitness.runs.comparison import Comparison
from ragwitness.stats.evaluation import Rate

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

__all__ = ["comparison_terminal"]

_NAME = 18


def comparison_terminal(result: Comparison, *, where: str) -> Group:
    """Return the tables: what leaks, then what is useful.

    Args:
        result: The comparison.
        where: Path of the report with everything else.
    """
    from rich.console import Group
    from rich.text import Text

    title, sentence = headline(result)
    parts: list[RenderableType] = [Text(title, style="bold"), Text(sentence)]
    said = [f"warning: {say.visible(warning, 1000)}" for warning in result.warnings]
    parts += [*(Text(line, style="yellow") for line in said), _leaks(result)]
    parts.append(
        Text("Worst, ROUGE: longest shared run and closest match of a text itself.", style="dim")
    )
    if measure := main_measure(result):
        parts.append(_use(result, measure))
        parts.append(
            Text("Gain: less origin, paired; equal length: what is left of it.", style="dim")
        )
    notes = []
    if result.spent is not None and (spent := spent_text(result.spent)):
        notes.append(f"spent: {spent}, {say.duration(result.seconds)}.")
    notes.append(f"{CLAIMED[1]} Not claimed: {NOT_CLAIMED[0]} Everything else in {where}.")
    parts += [Text(say.visible(note, 2000), style="dim") for note in notes]
    return Group(*parts)


def _leaks(result: Comparison) -> Table:
    table = _table(
        "original records", "texts", "prompts", "95 %", "records", "cover", "worst", "ROUGE"
    )
    for row in leak_rows(result):
        between = _between(row.rate) if row.rate else say.MISSING
        counts = (row.prompts.partition(" of ")[0], row.records.partition(" of ")[0])
        table.add_row(
            _cell(row.name),
            row.texts,
            counts[0],
            between,
            counts[1],
            row.coverage.removeprefix("0"),
            row.longest,
            row.closest.removeprefix("0"),
        )
    return table


def _use(result: Comparison, measure: str) -> Table:
    table = _table(measure[:_NAME], "words", "mean", "95 %", "gain", "95 %", "equal length")
    for one in result.variants:
        found = one.usefulness.get(measure)
        if found is None:
            continue
        table.add_row(
            _cell(one.name),
            f"{one.answer_words:.0f}" if one.answer_words is not None else "",
            short(found.mean.value),
            _between(found.mean),
            _signed(found.gain),
            _ends(found.gain),
            _signed(found.held),
        )
    return table


def _between(rate: Rate) -> str:
    return f"{short(rate.low)}\N{EN DASH}{short(rate.high)}"


def _signed(rate: Rate | None) -> str:
    return "" if rate is None else _plus(rate.value)


def _ends(rate: Rate | None) -> str:
    return "" if rate is None else f"{_plus(rate.low)}, {_plus(rate.high)}"


def _plus(value: float) -> str:
    sign = "+" if value >= 0 else "\N{MINUS SIGN}"
    return sign + short(abs(value))


def _cell(text: str) -> str:
    from rich.markup import escape

    return escape(say.visible(text)[:_NAME])


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table
