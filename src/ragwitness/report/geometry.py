"""Geometry of the figures: every coordinate is computed here, renderers only draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.report.formatting import interval, rate_text, visible
from ragwitness.stats.evaluation import Rate

SIDE = 240.0
"""Side of a square plot in SVG units."""
_WIDTH, _HEIGHT = 560.0, 64.0
"""Size of one histogram row."""
_POINTS = 400
"""Corners beyond which a curve is thinned: no eye sees more."""


# The unit square: ROC curves, and p-values against the uniform.


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function inside a square plot."""

    name: str
    path: str
    style: str


@dataclass(frozen=True, slots=True)
class Square:
    """A plot of the unit square.

    Attributes:
        key: Names it within its page.
        title: What it shows.
        description: The same in words and numbers.
        curves: One or more.
        x: Name of the horizontal axis.
        y: Of the vertical one.
        label: Written inside; empty for a legend below.
        mark: Where a vertical rule stands, in SVG units; None for no rule.
    """

    key: str
    title: str
    description: str
    curves: tuple[Curve, ...]
    x: str = "false-positive rate"
    y: str = "true-positive rate"
    label: str = ""
    mark: float | None = None


def roc_square(corners: Sequence[tuple[float, float]], area: float, name: str, key: str) -> Square:
    """Return an ROC as a step function.

    Args:
        corners: (false-positive rate, true-positive rate).
        area: Under it.
        name: Of the curve.
        key: Names it within its page.
    """
    return Square(
        key=key,
        title="ROC curve",
        description="True-positive rate against false-positive rate; area under it "
        f"{rate_text(area)}.",
        curves=(Curve(name, steps(corners), "in"),),
        label=f"AUC {rate_text(area)}",
    )


def steps(corners: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path that goes right first, then up, through ``corners``."""
    # Thinned to what can be seen; the last corner stays, or the curve would not end at (1, 1).
    stride = max(1, math.ceil(len(corners) / _POINTS))
    kept = [*corners[:-1:stride], corners[-1]]
    # SVG counts y downwards: 1 is at the top.
    path = [f"M{SIDE * kept[0][0]:.1f} {SIDE * (1 - kept[0][1]):.1f}"]
    # Right first, then up: between two corners nothing is claimed that was not observed.
    for x, y in kept[1:]:
        path.append(f"H{SIDE * x:.1f}V{SIDE * (1 - y):.1f}")
    return "".join(path)


# Histograms over the same bins.


@dataclass(frozen=True, slots=True)
class Panel:
    """One group of documents in a histogram."""

    name: str
    n: int
    style: str
    path: str
    median: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Groups over the same bins, one below the other."""

    title: str
    description: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...]
    x: str


def histogram(
    title: str, description: str, x: str, groups: Sequence[tuple[str, str, NDArray[np.float64]]]
) -> Histogram | None:
    """Return the distributions of groups over shared bins; None without any value.

    Args:
        title: What it shows.
        description: In words.
        x: Name of the axis.
        groups: Name, style and values, each of shape (n,).
    """
    groups = [(name, style, values) for name, style, values in groups if len(values)]
    if not groups:
        return None
    # Shared bins: groups can only be compared over the same edges.
    pooled = np.concatenate([values for _, _, values in groups])
    low, high = float(pooled.min()), float(pooled.max())
    # All scores alike: a range of width 1 around them.
    if low == high:
        low, high = low - 0.5, high + 0.5
    # Twice the root of n, between 8 and 40: fewer would hide a second mode, more would show noise.
    edges = np.linspace(low, high, int(np.clip(2 * math.sqrt(pooled.size), 8, 40)) + 1)
    shares = [np.histogram(values, edges)[0] / len(values) for _, _, values in groups]
    # One scale for all panels: heights are shares of each group and compare with each other.
    top = max(float(share.max()) for share in shares)
    panels = tuple(
        Panel(
            name=name,
            n=len(values),
            style=style,
            path=_bars(share / top),
            median=_WIDTH * (float(np.median(values)) - low) / (high - low),
        )
        for (name, style, values), share in zip(groups, shares, strict=True)
    )
    ticks = tuple(
        (_WIDTH * (value - low) / (high - low), f"{value:.6g}".replace("-", "\N{MINUS SIGN}"))
        for value in round_numbers(low, high)
    )
    return Histogram(title, description, panels, ticks, x)


def _bars(shares: NDArray[np.float64]) -> str:
    """Return one path of adjoining bars, a hairline of paper between them."""
    step = _WIDTH / len(shares)
    return "".join(
        f"M{i * step + 0.5:.1f} {_HEIGHT:g}v{-_HEIGHT * share:.1f}h{step - 1:.1f}"
        f"v{_HEIGHT * share:.1f}z"
        for i, share in enumerate(shares.tolist())
        if share > 0
    )


def round_numbers(low: float, high: float) -> list[float]:
    """Return round numbers (steps of 1, 2 or 5 times a power of ten) within the range."""
    # About six ticks, at the next round step above.
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= raw)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


# A course: values one after the other, such as what was spent so far.

_LONG, _HIGH = 480.0, 180.0
_NEAR = 1.5  # a rule is drawn where the curve came to two thirds of it


@dataclass(frozen=True, slots=True)
class Course:
    """Values one after the other, over round axes.

    Attributes:
        key: Names it within its page.
        title: What it shows.
        description: The same in numbers, for who does not see it.
        path: SVG path.
        x: Name of the horizontal axis.
        x_ticks: Place and label of each tick.
        y: Name of the vertical axis.
        y_ticks: Likewise.
        rule: Place and label of a horizontal rule; None for none.
    """

    key: str
    title: str
    description: str
    path: str
    x: str
    x_ticks: tuple[tuple[float, str], ...]
    y: str
    y_ticks: tuple[tuple[float, str], ...]
    rule: tuple[float, str] | None = None


def course(
    key: str,
    title: str,
    description: str,
    values: Sequence[float],
    axes: tuple[str, str],
    rule: tuple[float | None, str],
    near: float = _NEAR,
) -> Course:
    """Scale values at 0, 1, 2, … to the plot.

    Args:
        key: Names it within its page.
        title: What it shows.
        description: The same in numbers.
        values: Shape (n,), n at least 2.
        axes: Names of both.
        rule: Value and label of a horizontal rule; left out where it is far above all values.
        near: How far above them it is still drawn, as a multiple of the largest; 0 draws it always.
    """
    limit, name = rule
    # A cap far above the curve would press it flat; it stands in the description in any case.
    shown = limit if limit is not None and (not near or limit <= near * max(values)) else None
    # Zero is always in view, so that growth is not exaggerated.
    low = min(0.0, *values)
    high = max([*values, *([] if shown is None else [shown])])
    high = high if high > low else low + 1.0
    last = len(values) - 1

    def y(value: float) -> float:
        return _HIGH * (high - value) / (high - low)

    stride = max(1, math.ceil(len(values) / _POINTS))
    kept = sorted({*range(0, last + 1, stride), last})
    points = [f"{_LONG * i / last:.1f} {y(values[i]):.1f}" for i in kept]
    return Course(
        key=key,
        title=title,
        description=description,
        path="M" + "L".join(points),
        x=axes[0],
        x_ticks=tuple(
            (_LONG * x / last, f"{x:,.0f}") for x in round_numbers(0, last) if x == round(x)
        ),
        y=axes[1],
        y_ticks=tuple((y(v), _axis_text(v)) for v in round_numbers(low, high)),
        rule=None if shown is None else (y(shown), name),
    )


def _axis_text(value: float) -> str:
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g} {name}"
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


# A plane: one rate against another, each point with whiskers and its name beside.

WIDTH, LEFT, RIGHT, TOP, LEAST = 640.0, 64.0, 428.0, 16.0, 290.0
_LABELS = 452.0  # where the names begin
_LINE = 22.0  # between two names: they are larger on narrow screens
_LONGEST = 20  # characters of a name


@dataclass(frozen=True, slots=True)
class PlaneMark:
    """One point: its place, the ends of its whiskers, its name.

    ``label`` is the height at which the name stands, right of the plot; a line leads to it.
    """

    name: str
    style: str
    told: str
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float
    label: float


@dataclass(frozen=True, slots=True)
class Plane:
    """Points with whiskers over two axes."""

    title: str
    description: str
    x_name: str
    y_name: str
    height: float
    marks: tuple[PlaneMark, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    left: float = LEFT
    right: float = RIGHT
    top: float = TOP
    width: float = WIDTH
    labels: float = _LABELS

    @property
    def bottom(self) -> float:
        """Of the plot."""
        return TOP + self.height


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a plane: its name, its two rates, whether it stands out."""

    name: str
    x: Rate
    y: Rate
    marked: bool = False


def plane(
    title: str, description: str, names: tuple[str, str], axes: tuple[str, str], points: list[Point]
) -> Plane | None:
    """Return one rate against another; None without a point.

    Args:
        title: What it shows.
        description: In words.
        names: Of the two rates, in a sentence about one point.
        axes: Of the two axes.
        points: One or more.
    """
    if not points:
        return None
    # Tall enough for all names beside the plot.
    height = max(LEAST, _LINE * len(points))
    # Scales cover whiskers, not only points.
    across = _PlaneScale([one.x for one in points], LEFT, RIGHT)
    up = _PlaneScale([one.y for one in points], TOP + height, TOP, floor=0.0)
    points = sorted(points, key=lambda one: across(one.x.value))  # lines to names seldom cross
    heights = spread([up(one.y.value) for one in points], _LINE, TOP, TOP + height)
    marks = tuple(
        PlaneMark(
            name=_cut(one.name),
            style="in" if one.marked else "out",
            told=f"{visible(one.name)}: {names[0]} {rate_text(one.x.value)} ({interval(one.x)}),"
            f" {names[1]} {rate_text(one.y.value)} ({interval(one.y)})",
            x=across(one.x.value),
            y=up(one.y.value),
            left=across(one.x.low),
            right=across(one.x.high),
            top=up(one.y.high),
            bottom=up(one.y.low),
            label=label,
        )
        for one, label in zip(points, heights, strict=True)
    )
    return Plane(
        title=title,
        description=description,
        x_name=axes[0],
        y_name=axes[1],
        height=height,
        marks=tuple(sorted(marks, key=lambda mark: mark.style)),  # what stands out is drawn last
        x_ticks=across.ticks(),
        y_ticks=up.ticks(),
    )


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the wanted ones, in their order, at least ``gap`` apart.

    Args:
        wanted: Places, in any order.
        gap: Least distance.
        low: Least place.
        high: Highest place; there must be room for all.
    """
    # Pass 1, from the top: push each name down until it is clear of the one before.
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    at = low - gap
    for i in order:
        at = places[i] = max(wanted[i], at + gap)
    # Pass 2, from the bottom: push up what has left the plot; both passes keep the order.
    at = high + gap
    for i in reversed(order):
        at = places[i] = min(places[i], at - gap)
    return places


class _PlaneScale:
    """From values to places, over all intervals with a little room."""

    def __init__(
        self, rates: Sequence[Rate], start: float, end: float, floor: float | None = None
    ) -> None:
        low, high = min(one.low for one in rates), max(one.high for one in rates)
        # A little air, but never beyond the range of a rate.
        room = 0.05 * (high - low) or 0.05
        self.low = floor if floor is not None else max(0.0, low - room)
        self.high = min(1.0, high + room)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + (self._end - self._start) * share

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Round values with their places."""
        return tuple((self(value), f"{value:g}") for value in round_numbers(self.low, self.high))


def _cut(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
