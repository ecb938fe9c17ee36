"""A report as one value: words, tables with typed columns, and figures.

A kind of result makes a report document (:mod:`ragwitness.report.result_type`); the renderers of
:mod:`ragwitness.report` lay it out for a terminal or as a page. No renderer knows a kind, and no
kind knows a renderer. Text in a report may come from an untrusted system: renderers escape it and
name what cannot be seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from ragwitness.core.types import LeftOut
from ragwitness.report.formatting import rate_text

if TYPE_CHECKING:
    from ragwitness.report.geometry import Histogram
    from ragwitness.stats.rates import Rate

Style: TypeAlias = Literal["", "in", "out", "inconclusive"]
"""``in`` accuses or warns, ``out`` does not, ``inconclusive`` says neither."""


@dataclass(frozen=True, slots=True)
class Name:
    """The subject of a row.

    Attributes:
        text: The name.
        below: A definition or a remark in small print; for the page alone.
        document: Id of the document it names, for a link to its evidence; None for no link.
        anchor: Place in the same page that it leads to; empty for none.
    """

    text: str
    below: str = ""
    document: str | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A short text that is set off: a verdict, or something that is wrong."""

    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class EvidenceWord:
    """A word of evidence with the words before it, and two probabilities in words."""

    before: str
    word: str
    target: str
    baseline: str


@dataclass(frozen=True, slots=True)
class Words:
    """The words that decided about a document.

    Attributes:
        items: Those shown.
        more: How many others there are.
        reason: Why there are none, or what else must be known.
    """

    items: tuple[EvidenceWord, ...] = ()
    more: int = 0
    reason: str = ""


# Cells are values, not texts: the renderer decides how many digits its medium has room for.
Cell: TypeAlias = "str | int | float | Rate | Name | Mark | Words | None"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its heading in a page.
        kind: How its cells are written. ``value`` is a rate or number. ``interval`` and ``strip``
            are the interval of a rate in figures and as a drawing. ``signed`` is a difference with
            its interval, ``change`` and ``ends`` the same in two columns.
        short: Its heading in a terminal; None leaves the column out there.
        page: Whether the page shows it.
    """

    name: str
    kind: Literal[
        "name", "text", "meaning", "value", "interval", "strip", "signed", "change", "ends", "words"
    ] = "text"
    short: str | None = None
    page: bool = True


class LazyRows(Sequence[Any]):
    """Rows that are made when they are looked at: a page shows few of many.

    Args:
        items: The subjects of the rows.
        make: From one of them to its row.
    """

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Any]) -> None:
        self._items, self._make = items, make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> LazyRows: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return LazyRows(self._items[at], self._make)
        return self._make(self._items[at])


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        caption: Its content in words.
        columns: In their order.
        rows: One cell per column.
        look: Class of the table in a page.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    look: str = "measures"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph.

    Attributes:
        text: Its text.
        look: ``hint`` in small print.
        brief: Whether a terminal shows it too.
        page: Whether a page shows it.
    """

    text: str
    look: Literal["", "hint"] = "hint"
    brief: bool = False
    page: bool = True


@dataclass(frozen=True, slots=True)
class Glossary:
    """Labels with their meaning, as a list."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Something that a reader of the page unfolds; left out of a terminal.

    Attributes:
        title: Its content in words.
        share: How much, in small print.
        style: Colour of its mark.
        blocks: Its content.
        unfolded: Whether it is open at first.
        anchor: Names its place in the page.
    """

    title: str
    blocks: tuple[Block, ...]
    share: str = ""
    style: Style = "out"
    unfolded: bool = False
    anchor: str = ""


# Everything a section can hold; each renderer has one branch for each of these.
Block: TypeAlias = "Table | Paragraph | Glossary | Fold | Histogram | Curves"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report.

    Attributes:
        key: Names its place in the page.
        title: Its heading.
        blocks: Its content; tables without a short heading are for the page alone.
        only: ``page`` or ``terminal`` where the other leaves it out.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    only: Literal["", "page", "terminal"] = ""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the whole has one verdict."""

    label: str
    style: Style
    n: int
    share: float


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """Everything that a report says.

    Attributes:
        kind: Kind of result, in words.
        title: The finding, in one line.
        sentence: Its meaning, in one or two.
        method: How it was asked, for a list of runs.
        target: Whom.
        queries: How many were sent; None where that is not known.
        facts: The first things to know, label and value.
        brief: The same for a terminal.
        warnings: Reasons to doubt it.
        left_out: Files and rows that were given and could not be read.
        claimed: The claims of the figures.
        not_claimed: Conclusions that would be wrong.
        rests_on: The grounds of the claims, label and value.
        shares: Verdicts as shares of the whole; empty where there are none.
        sections: The parts.
        settings: Everything in use, label and value.
        reading: How to read it, term and explanation.
        closing: Last lines in a terminal.
        version: Of the package that wrote the result.
    """

    kind: str
    title: str
    sentence: str = ""
    method: str = ""
    target: str = ""
    queries: int | None = None
    facts: tuple[tuple[str, str], ...] = ()
    brief: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    claimed: tuple[str, ...] = ()
    not_claimed: tuple[str, ...] = ()
    rests_on: tuple[tuple[str, str], ...] = ()
    shares: tuple[Share, ...] = ()
    sections: tuple[Section, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    reading: tuple[tuple[str, str], ...] = ()
    closing: tuple[str, ...] = ()
    version: str = ""


def plain_table(
    caption: str, names: Sequence[str], rows: Iterable[tuple[Cell, ...]], text: str = ""
) -> Table:
    """Return a table whose first column names its rows, and whose others hold figures.

    The column ``text`` holds words, and folds where a terminal is too narrow.
    """
    columns = (
        Column(name, "text" if name == text else "value" if at else "name", name)
        for at, name in enumerate(names)
    )
    return Table(caption, tuple(columns), tuple(rows))


def simple_report(
    kind: str,
    title: str,
    table: Table,
    notes: Iterable[str],
    curves: Curves | None = None,
    said: Iterable[Paragraph] = (),
    warnings: Iterable[str] = (),
) -> ReportDocument:
    """Return a title, a table, what it says, its notes in small print, and curves."""
    blocks: list[Block] = [table, *said, *(Paragraph(line, brief=True) for line in notes)]
    if curves is not None:
        blocks.append(curves)
    sections = (Section("figures", "Figures", tuple(blocks)),)
    return ReportDocument(kind, title, warnings=tuple(warnings), sections=sections)


def table_rows(report: ReportDocument) -> list[dict[str, Any]]:
    """Return every cell of a report's tables: its row, its column and its text."""
    tables = [
        block for section in report.sections for block in section.blocks if isinstance(block, Table)
    ]
    return [
        {"row": _said(row[0]), "column": column.name, "value": _said(cell)}
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
    ]


def _said(cell: Cell) -> str:
    return "" if cell is None else str(getattr(cell, "text", cell))


# Curves with whiskers, in one or more panels; :mod:`ragwitness.report.html` draws them.


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        label: Its quantity.
        ticks: Values to mark; none for round numbers.
        log: Whether the scale is logarithmic.
    """

    label: str
    ticks: tuple[float, ...] = ()
    log: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One curve.

    Attributes:
        name: In the legend.
        points: (x, y), or with whiskers (x, y, low, high) or (x, y, low, high, left, right).
        colour: Number of the colour, 0 to 5; lines of one colour belong together.
        marks: Whether points are marked instead of joined.
        dashed: Whether the curve is dashed.
    """

    name: str
    points: tuple[tuple[float, ...], ...]
    colour: int = 0
    marks: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class LinesPanel:
    """One plot.

    Attributes:
        title: Above it.
        x: Axis.
        y: Axis.
        lines: In order of drawing.
        floor: Least value of y shown, if the lines stay above it.
    """

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = field(default=())
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    """Panels of curves over one legend.

    Attributes:
        title: Their content in words.
        make: Returns the panels; called where they are drawn, since a terminal draws none.
        note: How to read them, in words and numbers.
    """

    title: str
    make: Callable[[], Sequence[LinesPanel]]
    note: str = ""


_CORNERS = 400  # beyond which a curve is thinned: no eye sees more
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def thinned(points: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return no more points than can be seen; the last one stays."""
    stride = max(1, math.ceil(len(points) / _CORNERS))
    return [*points[:-1:stride], points[-1]]


def step_line(name: str, corners: Sequence[tuple[float, float]], colour: int = 0) -> Line:
    """Return a step function through ``corners``: right first, then up.

    Between two corners nothing is claimed that was not observed.
    """
    few = thinned(corners)
    points = [few[0]]
    for (_, before), (x, y) in itertools.pairwise(few):
        points += [(x, before), (x, y)]
    return Line(name, tuple(points), colour)


def unit_panel(title: str, x: str, y: str, lines: Sequence[Line]) -> LinesPanel:
    """Return a plot of the unit square with its diagonal."""
    diagonal = Line("diagonal", ((0.0, 0.0), (1.0, 1.0)), 5, dashed=True)
    return LinesPanel(title, Axis(x, _QUARTERS), Axis(y, _QUARTERS), (*lines, diagonal))


def roc_curve(corners: Sequence[tuple[float, float]], area: float, name: str) -> Curves:
    """Return an ROC as a step function.

    Args:
        corners: (false-positive rate, true-positive rate).
        area: Under it.
        name: Of the curve.
    """
    note = f"True-positive rate against false-positive rate; area under it {rate_text(area)}."
    axes = ("false-positive rate", "true-positive rate")
    panel = unit_panel(f"AUC {rate_text(area)}", *axes, [step_line(name, corners, 1)])
    return Curves("ROC curve", lambda: [panel], note)
