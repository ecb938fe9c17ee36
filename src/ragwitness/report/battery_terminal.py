"""The evaluation of many audits as tables for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.report import wording
from ragwitness.report.battery import Control, between, controls_of, flattery, ranked, short
from ragwitness.report.benign import benign_rows, unanswered
from ragwitness.runs.battery import Battery, Measured

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

__all__ = ["battery_terminal"]

_OFF, _NEAR = "retrieval off", "near-duplicates"


def battery_terminal(battery: Battery, *, where: str) -> Group:
    """Return the tables: audits by AUC with the variants of their scores, then the controls.

    Args:
        battery: The evaluation.
        where: Path of the report with everything else.
    """
    from rich.console import Group
    from rich.text import Text

    lost = [
        Text(wording.visible(f"skipped {name}: {why}"), style="yellow")
        for name, why in battery.skipped.items()
    ]
    sizes = ", ".join(f"{wording.count(n)} {name}" for name, n in battery.sizes.items())
    terms = "TPR1%: at 1 % FPR. FPR: non-members with p <= .05. lost: unscorable."
    note = " ".join(filter(None, (f"{sizes}.", terms, flattery(battery))))
    return Group(
        _audits(battery),
        _controls(battery),
        *_benign(battery),
        *lost,
        Text(f"{wording.visible(note, 1000)} More in {wording.visible(where)}.", style="dim"),
    )


def _audits(battery: Battery) -> Table:
    table = _table("audit", "AUC [95 %]", "TPR1%", "F1", "FPR", "lost", "q/doc", "s/doc")
    for one in _grouped(battery):
        table.add_row(
            _label(one.audit),
            between(one.auc),
            short(one.tpr_at_1_fpr.value),
            short(one.f1.value),
            short(one.false_positives["0.05"].value),
            short(one.unscorable.value),
            f"{one.cost.queries:.3g}",
            wording.MISSING if one.cost.seconds is None else _seconds(one.cost.seconds),
        )
    return table


def _controls(battery: Battery) -> Table:
    """One line per audit: without retrieval, and against its near-duplicates."""
    controls = {control.name: control for control in controls_of(battery)}
    table = _table("control", _OFF, _NEAR, "found")
    for name, control in controls.items():
        if not name.startswith((_OFF, _NEAR)):
            table.add_row(name, between(control.rate), "", _found(control))
    for one in _grouped(battery):
        off, near = (controls.get(f"{kind}: {one.audit}") for kind in (_OFF, _NEAR))
        if off or near:
            table.add_row(
                _label(one.audit),
                between(off.rate) if off else "",
                between(near.rate) if near else "",
                _found(off) if off else "",
            )
    return table


def _benign(battery: Battery) -> list[Table | Text]:
    """What the defense costs benign questions; nothing without a defense."""
    from rich.text import Text

    cost = battery.benign
    if cost is None:
        return []
    table = _table("benign questions", "undefended", "defended", "n")
    rows = benign_rows(cost)
    for row in rows:
        before = "" if row.before is None else between(row.before)
        table.add_row(row.name, before, between(row.after), wording.count(row.after.n))
    lost = [f"{row.name} {row.difference}" for row in rows if row.lost is not None]
    said = [
        f"Lost, same questions: {', '.join(lost)}",
        unanswered(cost),
        f"Defense: {cost.defense}",
    ]
    note = ". ".join(part for part in said if part)
    return [table, Text(wording.visible(f"{note}."), style="dim")]


def _found(control: Control) -> Text:
    from rich.text import Text

    return Text(control.verdict, "bold red" if control.style == "in" else "")


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table


def _grouped(battery: Battery) -> list[Measured]:
    """Audits by AUC, each with the variants of its score below it."""
    every = ranked(battery.audits)
    found = []
    for one in every:
        if "/" not in one.audit:
            found += [one, *(v for v in every if v.audit.startswith(f"{one.audit}/"))]
    return found


def _seconds(value: float) -> str:
    return f"{value:.2g}".removeprefix("0")


def _label(name: str) -> str:
    """Return an audit's name; of a variant its own part, set in."""
    _, slash, variant = name.partition("/")
    return f" /{variant}" if slash else name
