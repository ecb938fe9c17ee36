"""Panels of curves with whiskers as one self-contained SVG, for light and dark paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import escape

from ragwitness.report.curves import Axis, Line, LinesPanel
from ragwitness.report.geometry import round_numbers

_WIDTH_LINES, _HEIGHT_LINES = 300.0, 220.0  # of the plotted area
_LEFT, _TOP, _GAP, _BELOW = 56.0, 44.0, 76.0, 44.0
_ROW, _COLUMN, _LETTER = 18, 180, 6
STYLE = (
    "<style>svg{color-scheme:light dark;background:#fcfbf8;color:#1d1f21}.m{fill:#5c5f62}"
    ".g{stroke:#c9c5ba}.c0{color:#17637f}.c1{color:#a83a12}.c2{color:#4d6b1f}.c3{color:#6b3f86}"
    ".c4{color:#8a6a00}.c5{color:#3c4654}"
    "@media(prefers-color-scheme:dark){svg{background:#17191b;color:#e8e6e1}.m{fill:#a5a8ab}"
    ".g{stroke:#43474b}.c0{color:#6db8d6}.c1{color:#f09a75}.c2{color:#aecb7c}"
    ".c3{color:#c9a2e0}.c4{color:#dcbc55}.c5{color:#b5bfcc}}</style>"
)


def lines_svg(title: str, panels: Sequence[LinesPanel], style: str = STYLE) -> str:
    """Return the panels side by side over one legend.

    Args:
        title: Said to readers of the figure who do not see it, and above it.
        panels: One or more, each with at least one point.
        style: Style element; empty within a page, whose own style has these classes.
    """
    # Pass 1: one legend for all panels; a line that several panels share has one entry.
    names = list(
        dict.fromkeys(
            (line.name, line.colour, line.marks, line.dashed)
            for panel in panels
            for line in panel.lines
        )
    )
    # Pass 2: the size follows from panels and legend, so that nothing has to be scaled.
    width = _LEFT + len(panels) * (_WIDTH_LINES + _GAP) - _GAP + 24
    bottom = _TOP + _HEIGHT_LINES + _BELOW
    column = max([_COLUMN, *(34 + _LETTER * len(name) for name, *_ in names)])
    columns = max(1, int(width // column))
    height = bottom + _ROW * math.ceil(len(names) / columns) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="11" fill="currentColor">',
        f"<title>{escape(title)}</title>{style}",
        f'<text x="12" y="18" font-size="13" font-weight="600">{escape(title)}</text>',
    ]
    # Pass 3: the panels, then the legend below them.
    parts += [_panel(panel, _LEFT + at * (_WIDTH_LINES + _GAP)) for at, panel in enumerate(panels)]
    for at, name in enumerate(names):
        x, y = 16 + column * (at % columns), bottom + 12 + _ROW * (at // columns)
        parts.append(_key(x, y, *name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: LinesPanel, left: float) -> str:
    points = [point for line in panel.lines for point in line.points]
    x = _Scale(panel.x, [p[0] for p in points], left, left + _WIDTH_LINES, None)
    # Whiskers count for the scale: an interval is never cut off.
    tall = [value for p in points for value in p[1:]]
    y = _Scale(panel.y, tall, _TOP + _HEIGHT_LINES, _TOP, panel.floor)
    parts = [f'<text x="{left:g}" y="{_TOP - 8:g}">{escape(panel.title)}</text>']
    parts += [
        f'<path class="g" d="M{x(value):.1f} {_TOP:g}v{_HEIGHT_LINES:g}"/>'
        f'<text class="m" x="{x(value):.1f}" y="{_TOP + _HEIGHT_LINES + 14:g}"'
        f' text-anchor="middle">{_number(value)}</text>'
        for value in x.ticks
    ]
    parts += [
        f'<path class="g" d="M{left:g} {y(value):.1f}h{_WIDTH_LINES:g}"/>'
        f'<text class="m" x="{left - 5:g}" y="{y(value) + 4:.1f}"'
        f' text-anchor="end">{_number(value)}</text>'
        for value in y.ticks
    ]
    parts.append(
        f'<text class="m" x="{left + _WIDTH_LINES / 2:g}" y="{_TOP + _HEIGHT_LINES + 30:g}"'
        f' text-anchor="middle">{escape(panel.x.label)}</text>'
        f'<text class="m" x="{left + _WIDTH_LINES:g}" y="{_TOP - 8:g}"'
        f' text-anchor="end">{escape(panel.y.label)}</text>'
    )
    parts += [_line(line, x, y) for line in panel.lines if line.points]
    return "\n".join(parts)


class _Scale:
    """Values to coordinates."""

    def __init__(
        self, axis: Axis, values: Sequence[float], start: float, end: float, floor: float | None
    ) -> None:
        self._log = axis.log
        # Wide enough for ticks that were asked for; a single value gets room on both sides.
        low, high = min([*values, *axis.ticks]), max([*values, *axis.ticks])
        if floor is not None:
            low = min(low, floor)
        if low == high:
            low, high = (low / 2, high * 2) if axis.log else (low - 0.5, high + 0.5)
        self._low, self._span = self._at(low), self._at(high) - self._at(low)
        self._start, self._length = start, end - start
        self.ticks = axis.ticks or (
            tuple(_powers(low, high)) if axis.log else tuple(round_numbers(low, high))
        )

    def _at(self, value: float) -> float:
        return math.log10(value) if self._log else value

    def __call__(self, value: float) -> float:
        return self._start + self._length * (self._at(value) - self._low) / self._span


def _powers(low: float, high: float) -> list[float]:
    # Whole decades within the axis; the tolerance keeps an end that floats have moved by one bit.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)] or [low, high]


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def _line(line: Line, x: _Scale, y: _Scale) -> str:
    parts = [f'<g class="c{line.colour % 6}" stroke="currentColor" fill="none">']
    # Curve first, whiskers above it, marks on top.
    if not line.marks:
        corners = "L".join(f"{x(p[0]):.1f} {y(p[1]):.1f}" for p in line.points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(f'<path d="M{corners}" stroke-width="1.6"{dash}/>')
    for point in line.points:
        if len(point) == 4:
            parts.append(
                f'<path d="M{x(point[0]):.1f} {y(point[2]):.1f}V{y(point[3]):.1f}"'
                ' stroke-width="2" opacity=".6"/>'
            )
        if line.marks:
            parts.append(
                f'<circle cx="{x(point[0]):.1f}" cy="{y(point[1]):.1f}" r="3"'
                ' fill="currentColor" stroke="none"/>'
            )
    return "".join([*parts, "</g>"])


def _key(x: float, y: float, name: str, colour: int, marks: bool, dashed: bool) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    sign = (
        f'<circle cx="{x + 10:g}" cy="{y - 4:g}" r="3" fill="currentColor"/>'
        if marks
        else f'<path d="M{x:g} {y - 4:g}h20" stroke="currentColor" stroke-width="1.6"{dash}/>'
    )
    return (
        f'<g class="c{colour % 6}">{sign}</g><text x="{x + 26:g}" y="{y:g}">{escape(name)}</text>'
    )
