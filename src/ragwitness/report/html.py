"""A sheet as one self-contained HTML page: no script, no network, nothing loaded."""

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

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from ragwitness.core.files import replace_file
from ragwitness.report import phrases as say
from ragwitness.report.document import Cell, Column, Sheet
from ragwitness.report.figures import lines_svg
from ragwitness.report.result_registry import result_type_for
from ragwitness.stats.evaluation import Rate

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
    made = Environment(
        loader=FunctionLoader(partial(resource, packages=packages)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        visible=say.visible,
        left_out=say.left_out,
        count=say.count,
        percent=say.percent,
        rate=say.rate_text,
        interval=say.interval,
        cell=_figure,
        curves=lambda one: Markup(lines_svg(one.title, one.make(), "")),  # noqa: S704  # escaped
        code=_code,
        first_items=lambda named, most: list(islice(named.items(), most)),
        type=lambda value: type(value).__name__,
    )
    return made


def _figure(value: Cell, column: Column) -> str:
    """Return a plain cell as a page writes it."""
    if value is None:
        return say.MISSING
    # A rate is written by its column: the same value is a number, an interval or a difference.
    if isinstance(value, Rate):
        if column.kind == "interval":
            return say.interval(value)
        return say.signed(value) if column.kind == "signed" else say.rate_text(value.value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return say.count(value)
    return say.MISSING if math.isnan(value) else say.rate_text(value)


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


def render_page(sheet: Sheet) -> str:
    """Return a sheet as a page; every text in it is escaped."""
    css, policy = _style()
    # The style is ours and read from the package, hence not escaped.
    own = Markup(css)  # noqa: S704
    template = environment().get_template("sheet.html.j2")
    return template.render(sheet=sheet, css=own, policy=policy, page_of=None, cut=Cut())


def write_html(result: object, path: str | Path) -> None:
    """Write the page of a result of any kind.

    Args:
        result: What an audit, a leak measurement or another task returned.
        path: Where the page goes.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(result_type_for(result).sheet(result), path)


def write_page(sheet: Sheet, path: str | Path) -> None:
    """Write a sheet as a page.

    Raises:
        InputError: The file cannot be written.
    """
    replace_file(path, render_page(sheet))
