"""The report as one self-contained HTML file: no script, no network, nothing loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ragwitness.report import figures, view, wording
from ragwitness.report.claims import claims
from ragwitness.report.writing import write_text
from ragwitness.runs.result import AuditResult

__all__ = [
    "environment",
    "page",
    "render_html",
    "report_values",
    "resource",
    "write_html",
    "write_page",
]

_PACKAGES = ("ragwitness.report",)


def resource(name: str, packages: Sequence[str] = _PACKAGES) -> str | None:
    """Return a file from the folder ``templates`` of the first package that has it, or None."""
    for package in packages:
        path = resources.files(package).joinpath("templates", name)
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


@cache
def environment(packages: tuple[str, ...] = _PACKAGES) -> Environment:
    """Return the templates of some packages; the first that has a name wins."""
    made = Environment(
        loader=FunctionLoader(partial(resource, packages=packages)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        visible=wording.visible,
        count=wording.count,
        percent=wording.percent,
        rate=wording.rate_text,
        interval=wording.interval,
    )
    return made


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet and the policy that allows it and nothing else."""
    css = resource("style.css") or ""
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return css, policy


def page(template: str, **values: object) -> str:
    """Return a page of ours as HTML; every text among ``values`` is escaped."""
    css, policy = _style()
    # the style is ours and read from the package, hence not escaped
    own = Markup(css)  # noqa: S704
    return environment().get_template(template).render(css=own, policy=policy, **values)


def report_values(result: AuditResult) -> dict[str, object]:
    """Return everything that the template of a report lays out."""
    title, sentence = view.headline(result)
    return {
        "result": result,
        "title": title,
        "sentence": sentence,
        "groups": view.groups(result),
        "measures": view.measures(result),
        "truths": view.truths(result),
        "claims": claims(result),
        "roc": figures.roc_figure(result),
        "p_values": figures.p_value_figure(result),
        "scores": figures.score_figure(result),
        "has_classifier": any(v.classifier is not None for v in result.verdicts),
        "has_inside": any(v.p_out is not None for v in result.verdicts),
        "has_truth": any(v.member is not None for v in result.verdicts),
        "seconds": wording.duration(result.seconds),
        "spent": view.spent_text(result.spent),
        "per_document": f"{result.queries / max(1, len(result.verdicts)):.3g}",
        "alpha": wording.percent(result.alpha),
        "page_of": None,
    }


def render_html(result: AuditResult) -> str:
    """Return the whole report as HTML; every text of the result is escaped."""
    return page("report.html.j2", **report_values(result))


def write_html(result: AuditResult, path: str | Path) -> None:
    """Write the report to ``path``.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(render_html(result), path)


def write_page(html: str, path: str | Path) -> None:
    """Write a page.

    Raises:
        InputError: The file cannot be written.
    """
    write_text(path, html)
