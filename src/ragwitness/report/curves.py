"""Curves with whiskers, in one or more panels; :mod:`ragwitness.report.figures` draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        label: What it shows.
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
        points: (x, y), or (x, y, low, high) with a whisker.
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
        title: What they show.
        make: Returns the panels; called where they are drawn, since a terminal draws none.
    """

    title: str
    make: Callable[[], Sequence[LinesPanel]]
