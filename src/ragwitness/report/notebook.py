"""A result as a part of a notebook: the page of a result, small, under a style of its own.

There is no script in it, and every text is escaped: an audited system cannot write into the
notebook of whoever audits it.
"""

from __future__ import annotations

import hashlib
import io
import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from ragwitness.report.html import Cut, environment, resource
from ragwitness.results.registry import kind_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragwitness.results.sheet import Sheet

_OPEN = 1  # sections that are unfolded at first
_CUT = Cut(whole=20, most=10)
_SMALL = """& { padding: 1rem 1.5rem; max-width: 60rem; font-size: .95rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; } .lead { font-size: 1.05rem; }
summary h2 { display: inline; } details { margin-top: 1rem; }
"""
_NAMES = re.compile(r'\b(id|aria-labelledby|href)="([^"]*)"')


def shown(value: object) -> str:
    """Return a value as HTML for a notebook.

    Args:
        value: A result of any kind, or what ``bounds`` or ``verify`` returned.
    """
    from ragwitness.attest.verdict import BundleVerdict
    from ragwitness.audits.canary import CanaryResult, canary_report
    from ragwitness.privacy.accounting.bounds import Bounds

    # What is no result of a kind has a rendering for a terminal, and perhaps a figure.
    if isinstance(value, Bounds):
        from ragwitness.report.collusion import bounds_svg, bounds_terminal

        return f"<div>{_typed(bounds_terminal(value))}{bounds_svg(value)}</div>"
    if isinstance(value, BundleVerdict):
        from ragwitness.report.verification import verdict_terminal

        return _typed(verdict_terminal(value))
    if isinstance(value, CanaryResult):
        value = canary_report(value, "")
    return fragment(kind_for(value).sheet(value))


def fragment(sheet: Sheet) -> str:
    """Return a sheet as a part of a page; names in it are its own, whatever stands beside."""
    template = environment().get_template("notebook.html.j2")
    # The style is ours and read from the package, hence not escaped.
    html = template.render(sheet=sheet, css=Markup(_style()), cut=_CUT, most=_OPEN)  # noqa: S704
    mark = hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:8]

    def own(found: re.Match[str]) -> str:
        words = (f"{'#' * (one[:1] == '#')}r{mark}-{one.lstrip('#')}" for one in found[2].split())
        return f'{found[1]}="{" ".join(words)}"'

    return _NAMES.sub(own, html)


@cache
def _style() -> str:
    """Return the style of the pages, for the elements of a fragment alone."""
    css = (resource("style.css") or "").partition("@media print")[0]
    # What holds for a whole page holds for the fragment (CSS nesting): a notebook keeps its own.
    for page in (":root", "body", "html"):
        css = re.sub(rf"(?m)^(\s*){page}(?=[ ,{{])", r"\1&", css)
    return f".ragwitness {{\n{css}\n{_SMALL}}}"


def _typed(what: RenderableType) -> str:
    """Return what a terminal would show, as text of fixed width."""
    from rich.console import Console

    console = Console(record=True, file=io.StringIO(), width=100, highlight=False)
    console.print(what)
    form = '<pre style="line-height:1.3">{code}</pre>'
    return console.export_html(inline_styles=True, code_format=form)
