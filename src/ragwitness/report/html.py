"""A report as one self-contained HTML page: no script, no network, nothing loaded."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from ragwitness.core.files import replace_file
from ragwitness.report import formatting as fmt
from ragwitness.report.document import Axis, Cell, Column, Line, LinesPanel, ReportDocument
from ragwitness.report.geometry import round_numbers
from ragwitness.report.result_registry import result_type_for
from ragwitness.stats.rates import Rate

if TYPE_CHECKING:
    from ragwitness.report.document import ReportDocument

_PACKAGES = ("ragwitness.report",)
_CODE = re.compile(r"`([^`]+)`")


def resource(name: str, packages: Sequence[str] = _PACKAGES) -> str | None:
    """Return a file from the folder ``templates`` of the first package that has it, or None."""
    # The first package wins: the web pages lay their own blocks over the report's.
    for package in packages:
        path = resources.files(package).joinpath("templates", name)
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


@cache
def environment(packages: tuple[str, ...] = _PACKAGES) -> Environment:
    """Return the templates of some packages; the first that has a name wins."""
    # Escaping is on for every template, and a name that is missing is an error, not an empty place.
    templates = Environment(
        loader=FunctionLoader(partial(resource, packages=packages)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        visible=fmt.visible,
        left_out=fmt.left_out,
        count=fmt.count,
        percent=fmt.percent,
        probability=fmt.probability,
        rate=fmt.rate_text,
        interval=fmt.interval,
        cell=_figure,
        curves=lambda one: Markup(lines_svg(one.title, one.make(), "")),  # noqa: S704  # escaped
        code=_code,
        first_items=lambda named, most: list(islice(named.items(), most)),
        type=lambda value: type(value).__name__,
    )
    return templates


def _figure(value: Cell, column: Column) -> str:
    """Return a plain cell as a page writes it."""
    if value is None:
        return fmt.MISSING
    # A rate is written by its column: the same value is a number, an interval or a difference.
    if isinstance(value, Rate):
        if column.kind == "interval":
            return fmt.interval(value)
        return fmt.signed(value) if column.kind == "signed" else fmt.rate_text(value.value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return fmt.count(value)
    return fmt.MISSING if math.isnan(value) else fmt.rate_text(value)


def _code(text: str) -> Markup:
    """Escape a text of ours and set commands in backquotes as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  # escaped before


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet and the policy that allows it and nothing else."""
    css = resource("style.css") or ""
    # The policy names the style's own hash: not even an injected style would be applied.
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return css, policy


@dataclass(frozen=True, slots=True)
class Cut:
    """How a page cuts long tables, so that it stays one that a browser opens at once.

    Attributes:
        whole: Rows up to which a table stays whole.
        most: Rows shown of a longer one.
        link: Address of a page with all rows; empty where there is none.
    """

    whole: int = 200
    most: int = 50
    link: str = ""


def render_page(report: ReportDocument) -> str:
    """Return a report as a page; every text in it is escaped."""
    css, policy = _style()
    # The style is ours and read from the package, hence not escaped.
    style = Markup(css)  # noqa: S704
    template = environment().get_template("report.html.j2")
    return template.render(report=report, css=style, policy=policy, page_of=None, cut=Cut())


def write_html(result: object, path: str | Path) -> None:
    """Write the page of a result of any kind.

    Args:
        result: The result of any task.
        path: Where the page goes.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(result_type_for(result).report(result), path)


def write_page(report: ReportDocument, path: str | Path) -> None:
    """Write a report as a page.

    Raises:
        InputError: The file cannot be written.
    """
    replace_file(path, render_page(report))


# A result as a part of a notebook: a small page with a style that touches nothing else.
#
# There is no script in it, and every text is escaped: an audited system cannot write into its
# auditor's notebook.


_OPEN = 1  # sections that are unfolded at first
_CUT = Cut(whole=20, most=10)
_SMALL = """& { padding: 1rem 1.5rem; max-width: 60rem; font-size: .95rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; } .lead { font-size: 1.05rem; }
summary h2 { display: inline; } details { margin-top: 1rem; }
"""
_NAMES = re.compile(r'\b(id|aria-labelledby|href)="([^"]*)"')


def fragment(report: ReportDocument) -> str:
    """Return a report as a part of a page, with names that clash with no other part."""
    template = environment().get_template("notebook.html.j2")
    # The style is ours and read from the package, hence not escaped.
    html = template.render(report=report, css=Markup(_fragment_style()), cut=_CUT, most=_OPEN)  # noqa: S704
    mark = hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:8]

    def own(match: re.Match[str]) -> str:
        names = (f"{'#' * (n[:1] == '#')}r{mark}-{n.lstrip('#')}" for n in match[2].split())
        return f'{match[1]}="{" ".join(names)}"'

    return _NAMES.sub(own, html)


@cache
def _fragment_style() -> str:
    """Return the style of the pages, for the elements of a fragment alone."""
    css = (resource("style.css") or "").partition("@media print")[0]
    # Rules for a whole page become rules for the fragment (CSS nesting).
    for page in (":root", "body", "html"):
        css = re.sub(rf"(?m)^(\s*){page}(?=[ ,{{])", r"\1&", css)
    return f".ragwitness {{\n{css}\n{_SMALL}}}"


# Panels of curves with whiskers as one self-contained SVG, for light and dark paper.


_WIDTH_LINES, _HEIGHT_LINES = 300.0, 220.0  # of the plotted area
_LEFT, _TOP, _GAP, _BELOW = 56.0, 44.0, 76.0, 44.0
_XMLNS = ' xmlns="http://www.w3.org/2000/svg"'  # in a file
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
    elements = [
        f'<svg{_XMLNS if style else ""} viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="11" fill="currentColor">',
        f"<title>{escape(title)}</title>{style}",
        f'<text x="12" y="18" font-size="13" font-weight="600">{escape(title)}</text>',
    ]
    # Pass 3: the panels, then the legend below them.
    elements += [
        _panel(panel, _LEFT + at * (_WIDTH_LINES + _GAP)) for at, panel in enumerate(panels)
    ]
    for at, name in enumerate(names):
        x, y = 16 + column * (at % columns), bottom + 12 + _ROW * (at // columns)
        elements.append(_key(x, y, *name))
    return "\n".join([*elements, "</svg>"]) + "\n"


def _panel(panel: LinesPanel, left: float) -> str:
    points = [point for line in panel.lines for point in line.points]
    # Whiskers count for the scale: an interval is never cut off.
    wide = [value for p in points for value in (p[0], *p[4:])]
    x = _Scale(panel.x, wide, left, left + _WIDTH_LINES, None)
    tall = [value for p in points for value in p[1:4]]
    y = _Scale(panel.y, tall, _TOP + _HEIGHT_LINES, _TOP, panel.floor)
    elements = [f'<text x="{left:g}" y="{_TOP - 8:g}">{escape(panel.title)}</text>']
    elements += [
        f'<path class="g" d="M{x(value):.1f} {_TOP:g}v{_HEIGHT_LINES:g}"/>'
        f'<text class="m" x="{x(value):.1f}" y="{_TOP + _HEIGHT_LINES + 14:g}"'
        f' text-anchor="middle">{_number(value)}</text>'
        for value in x.ticks
    ]
    elements += [
        f'<path class="g" d="M{left:g} {y(value):.1f}h{_WIDTH_LINES:g}"/>'
        f'<text class="m" x="{left - 5:g}" y="{y(value) + 4:.1f}"'
        f' text-anchor="end">{_number(value)}</text>'
        for value in y.ticks
    ]
    elements.append(
        f'<text class="m" x="{left + _WIDTH_LINES / 2:g}" y="{_TOP + _HEIGHT_LINES + 30:g}"'
        f' text-anchor="middle">{escape(panel.x.label)}</text>'
        f'<text class="m" x="{left + _WIDTH_LINES:g}" y="{_TOP - 8:g}"'
        f' text-anchor="end">{escape(panel.y.label)}</text>'
    )
    elements += [_line(line, x, y) for line in panel.lines if line.points]
    return "\n".join(elements)


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
    elements = [f'<g class="c{line.colour % 6}" stroke="currentColor" fill="none">']
    # Curve first, whiskers above it, marks on top.
    if not line.marks:
        corners = "L".join(f"{x(p[0]):.1f} {y(p[1]):.1f}" for p in line.points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        elements.append(f'<path d="M{corners}" stroke-width="1.6"{dash}/>')
    for point in line.points:
        whiskers = f"M{x(point[0]):.1f} {y(point[2]):.1f}V{y(point[3]):.1f}" if point[2:] else ""
        if point[4:]:
            whiskers += f"M{x(point[4]):.1f} {y(point[1]):.1f}H{x(point[5]):.1f}"
        if whiskers:
            elements.append(f'<path d="{whiskers}" stroke-width="2" opacity=".6"/>')
        if line.marks:
            elements.append(
                f'<circle cx="{x(point[0]):.1f}" cy="{y(point[1]):.1f}" r="3"'
                ' fill="currentColor" stroke="none"/>'
            )
    return "".join([*elements, "</g>"])


def _key(x: float, y: float, name: str, colour: int, marks: bool, dashed: bool) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    sign = (
        f'<circle cx="{x + 10:g}" cy="{y - 4:g}" r="3" fill="currentColor"/>'
        if marks
        else f'<path d="M{x:g} {y - 4:g}h20" stroke="currentColor" stroke-width="1.6"{dash}/>'
    )
    label = escape(fmt.visible(name, 60))
    return f'<g class="c{colour % 6}">{sign}</g><text x="{x + 26:g}" y="{y:g}">{label}</text>'
