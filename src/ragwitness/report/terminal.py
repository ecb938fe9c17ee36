"""The result in a terminal: complete without colour, at 80 columns and through a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragwitness.report import view, wording
from ragwitness.report.claims import claims
from ragwitness.runs.result import AuditResult
from ragwitness.types import Decision, Verdict

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["render_terminal"]

_ALL = 40
"""Documents up to which each has its line."""
_TELLING = 20
"""Lines shown of a longer list."""
_WORDS = 2
_SHORT = {Decision.IN: "IN", Decision.OUT: "out", Decision.INCONCLUSIVE: "inconclusive"}
_STYLES = {Decision.IN: "bold red", Decision.OUT: "cyan", Decision.INCONCLUSIVE: "yellow"}


def render_terminal(result: AuditResult, *, where: str = "the HTML report") -> Group:
    """Return a rich renderable: summary, documents, evaluation, warnings.

    Args:
        result: The audit.
        where: Names the place of the documents not shown, e.g. the path of the report.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_summary(result)]
    shown = _telling(result.verdicts)
    if shown:
        parts.append(_documents(shown))
    if rest := len(result.verdicts) - len(shown):
        text = f"The {len(shown)} most telling are shown; {wording.count(rest)} more in {where}."
        parts.append(Text(wording.visible(text), style="dim"))
    if result.evaluation is not None:
        parts.extend([Text(), _evaluation(result)])
    return Group(*parts)


def _telling(verdicts: Sequence[Verdict]) -> list[Verdict]:
    if len(verdicts) <= _ALL:
        return list(verdicts)
    return sorted(verdicts, key=view.strength)[:_TELLING]


def _summary(result: AuditResult) -> RenderableType:
    from rich import box
    from rich.panel import Panel
    from rich.text import Text

    title, sentence = view.headline(result)
    basis = claims(result)
    body = Text(overflow="fold")
    body.append(f"{title}\n", style="bold")
    body.append(f"{sentence}\n\n")
    facts = (
        ("target", wording.visible(result.target)),
        ("method", wording.visible(result.method)),
        ("level", f"alpha = {wording.percent(result.alpha)}, correction: {basis.correction}"),
        ("calibration", f"{basis.calibration}; smallest possible p {basis.smallest_p}"),
        ("", wording.visible(result.calibration.note, 1000)),
        ("cost", f"{wording.count(result.queries)} queries, {wording.duration(result.seconds)}"),
        ("spent by all starts, trials of the target included", view.spent_text(result.spent)),
    )
    for label, value in facts:
        if value:
            body.append(f"{label + ': ' if label else ''}", style="dim")
            body.append(f"{value}\n")
    for warning in result.warnings:
        body.append("warning: ", style="bold yellow")
        body.append(f"{wording.visible(warning, 1000)}\n")
    body.rstrip()
    return Panel(body, title="Ragwitness", title_align="left", box=box.ROUNDED)


def _documents(verdicts: Sequence[Verdict]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), pad_edge=False)
    table.add_column("document", ratio=2, overflow="fold", min_width=8)
    table.add_column("verdict", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("deciding words: with / without it", ratio=5, overflow="fold")
    table.add_column("queries", justify="right", no_wrap=True)
    for verdict in verdicts:
        row = view.row(verdict)
        table.add_row(
            _plain(wording.visible(verdict.document, 60)),
            _plain(_SHORT[verdict.decision], _STYLES[verdict.decision]),
            _plain(row.p),
            _words(row),
            _plain(row.queries),
        )
    return table


def _words(row: view.Row) -> Text:
    from rich.text import Text

    text = Text()
    if row.reason:
        text.append(row.reason, style="italic")
    for word in row.words[:_WORDS]:
        text.append("\n" if text else "")
        text.append(f"{word.word} ", style="bold")
        text.append(f"{word.target} / {word.baseline}")
    return text


def _plain(text: str, style: str = "") -> Text:
    """Return text that is never read as markup."""
    from rich.text import Text

    return Text(text, style=style)


def _evaluation(result: AuditResult) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("truth known", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for measure in view.measures(result):
        table.add_row(
            _plain(measure.name, "bold"),
            _plain(measure.value),
            _plain(measure.interval),
            _plain(measure.n),
            _plain(wording.visible(measure.note), "dim"),
        )
    return table
