"""A result as a part of a notebook: the page of a result, small, under a style of its own.

There is no script in it, and every text is escaped: an audited system cannot write into the
notebook of whoever audits it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from ragwitness.report.html import Cut, environment, resource

if TYPE_CHECKING:
    from ragwitness.report.document import Sheet

_OPEN = 1  # sections that are unfolded at first
_CUT = Cut(whole=20, most=10)
_SMALL = """& { padding: 1rem 1.5rem; max-width: 60rem; font-size: .95rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; } .lead { font-size: 1.05rem; }
summary h2 { display: inline; } details { margin-top: 1rem; }
"""
_NAMES = re.compile(r'\b(id|aria-labelledby|href)="([^"]*)"')


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
