"""A leak measurement as tables for a terminal of 80 columns; nothing of what leaked is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.report import wording as say
from ragwitness.report.battery import short
from ragwitness.report.leak import CLAIMED, NOT_CLAIMED, compact, headline, rows
from ragwitness.report.view import spent_text
from ragwitness.runs.leak_score import LeakResult

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

__all__ = ["leak_terminal"]


def leak_terminal(result: LeakResult, *, where: str) -> Group:
    """Return the tables: all attacks together, then one line per attack.

    Args:
        result: The measurement.
        where: Path of the report with definitions and everything else.
    """
    from rich.console import Group
    from rich.text import Text

    title, sentence = headline(result)
    parts: list[RenderableType] = [Text(title, style="bold"), Text(sentence)]
    said = [f"warning: {say.visible(warning, 1000)}" for warning in result.warnings]
    parts += [*(Text(line, style="yellow") for line in said), _measures(result)]
    if len(result.attacks) > 1:
        parts.append(_attacks(result))
    missing = dict.fromkeys(row.note for row in rows(result.together) if row.note)
    notes = [f"{say.MISSING} {note}." for note in missing]
    if spent := spent_text(result.spent):
        notes.append(f"spent: {spent}, {say.duration(result.seconds)}.")
    notes.append(f"{CLAIMED[0]} Not claimed: {NOT_CLAIMED[0]} Definitions in {where}.")
    parts += [Text(say.visible(note, 2000), style="dim") for note in notes]
    return Group(*parts)


def _measures(result: LeakResult) -> Table:
    """Published counts, corrected ones and chance; what the excess may be is in the page."""
    table = _table("all prompts", "published", "corrected", "95 %", "chance", "excess")
    for row in rows(result.together):
        one = row.measure
        rate, chance, excess = (one.rate, one.background, one.excess) if one else (None, None, None)
        table.add_row(
            _cell(row.label.replace("targeted information", "targeted"), 24),
            row.published,
            row.corrected,
            f"{_short(rate.low)}\N{EN DASH}{_short(rate.high)}" if rate else "",
            "" if chance is None else _short(chance),
            "" if excess is None else _short(excess.value),
        )
    return table


def _short(value: float) -> str:
    return short(value) if value >= 0 else f"\N{MINUS SIGN}{short(-value)}"


def _attacks(result: LeakResult) -> Table:
    table = _table("attack", "prompts", "failed", "rep. prompts", "rep. records", "ROUGE", "cover")
    for one in result.attacks:
        name, *figures = compact(one)
        table.add_row(_cell(name, 24), *figures)
    return table


def _cell(text: str, limit: int) -> str:
    from rich.markup import escape

    return escape(say.visible(text, 400)[:limit])


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table
