"""Geometry of the figure of a comparison: usefulness to the right, leaks upwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.extraction.score import Measure
from ragwitness.report.compare import LEAK, main_measure
from ragwitness.report.figures import round_numbers
from ragwitness.report.leak import chosen
from ragwitness.report.wording import interval, rate_text, visible
from ragwitness.runs.comparison import ORIGIN, Compared, Comparison
from ragwitness.stats.evaluation import Rate

__all__ = ["Mark", "Plane", "plane", "spread"]

WIDTH, LEFT, RIGHT, TOP, LEAST = 640.0, 64.0, 428.0, 16.0, 290.0
_LABELS = 452.0  # where the names begin
_LINE = 22.0  # between two names: they are larger on narrow screens
_LONGEST = 20  # characters of a name


@dataclass(frozen=True, slots=True)
class Mark:
    """One variant: its place, the ends of its whiskers, its name."""

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
    """Height at which the name stands, right of the plot; a line leads to it."""


@dataclass(frozen=True, slots=True)
class Plane:
    """Everything that the template draws."""

    title: str
    description: str
    x_name: str
    y_name: str
    height: float
    marks: tuple[Mark, ...]
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


def plane(result: Comparison) -> Plane | None:
    """Return the figure; None where usefulness or leaks were not measured."""
    measure = main_measure(result)
    points = [(one, one.usefulness[measure].mean, leak) for one, leak in _leaks(result)
              if measure in one.usefulness]  # fmt: skip
    if not points:
        return None
    height = max(LEAST, _LINE * len(points))
    across = _Scale([rate for _, rate, _ in points], LEFT, RIGHT)
    up = _Scale([rate for _, _, rate in points], TOP + height, TOP, floor=0.0)
    points.sort(key=lambda one: across(one[1].value))  # lines to the names then seldom cross
    heights = spread([up(leak.value) for _, _, leak in points], _LINE, TOP, TOP + height)
    marks = tuple(
        Mark(
            name=_short(one.name),
            style="in" if one.name == ORIGIN else "out",
            told=f"{one.name}: {measure} {rate_text(use.value)} ({interval(use)}), prompts that"
            f" repeat a record {rate_text(leak.value)} ({interval(leak)})",
            x=across(use.value),
            y=up(leak.value),
            left=across(use.low),
            right=across(use.high),
            top=up(leak.high),
            bottom=up(leak.low),
            label=label,
        )
        for (one, use, leak), label in zip(points, heights, strict=True)
    )
    return Plane(
        title="Privacy against usefulness",
        description=(
            "Share of prompts whose answer repeats an original record in 10 or more tokens, against"
            f" {measure} of the answers to the questions. Lower and further right is better."
            " Whiskers are 95 % intervals."
        ),
        x_name=f"usefulness: {measure}",
        y_name="leak: prompts that repeat a record",
        height=height,
        marks=tuple(sorted(marks, key=lambda mark: mark.style)),  # origin is drawn last, on top
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
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    at = low - gap
    for i in order:
        at = places[i] = max(wanted[i], at + gap)
    at = high + gap
    for i in reversed(order):
        at = places[i] = min(places[i], at - gap)
    return places


class _Scale:
    """From values to places, over all intervals with a little room."""

    def __init__(
        self, rates: Sequence[Rate], start: float, end: float, floor: float | None = None
    ) -> None:
        low, high = min(one.low for one in rates), max(one.high for one in rates)
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


def _leaks(result: Comparison) -> list[tuple[Compared, Rate]]:
    found: list[tuple[Compared, Measure | None]] = [
        (one, chosen(one.together, LEAK)) for one in result.variants
    ]
    return [(one, leak.rate) for one, leak in found if leak is not None and leak.rate is not None]


def _short(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
