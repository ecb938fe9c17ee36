"""The report as one self-contained HTML file: no script, no network, nothing loaded."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ragwitness.report import figures, view, wording
from ragwitness.report.claims import claims
from ragwitness.report.writing import write_text
from ragwitness.runs.result import AuditResult

__all__ = ["page", "render_html", "write_html", "write_page"]


def _resource(name: str) -> str:
    folder = resources.files("ragwitness.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        visible=wording.visible,
        count=wording.count,
        percent=wording.percent,
        rate=wording.rate_text,
        interval=wording.interval,
    )
    return environment


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet and the policy that allows it and nothing else."""
    css = _resource("style.css")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return css, policy


def page(template: str, **values: object) -> str:
    """Return a page of ours as HTML; every text among ``values`` is escaped."""
    css, policy = _style()
    # the style is ours and read from the package, hence not escaped
    own = Markup(css)  # noqa: S704
    return _environment().get_template(template).render(css=own, policy=policy, **values)


def render_html(result: AuditResult) -> str:
    """Return the whole report as HTML; every text of the result is escaped."""
    title, sentence = view.headline(result)
    return page(
        "report.html.j2",
        result=result,
        title=title,
        sentence=sentence,
        groups=view.groups(result),
        measures=view.measures(result),
        truths=view.truths(result),
        claims=claims(result),
        roc=figures.roc_figure(result),
        p_values=figures.p_value_figure(result),
        scores=figures.score_figure(result),
        has_classifier=any(v.classifier is not None for v in result.verdicts),
        has_inside=any(v.p_out is not None for v in result.verdicts),
        has_truth=any(v.member is not None for v in result.verdicts),
        seconds=wording.duration(result.seconds),
        spent=view.spent_text(result.spent),
        per_document=f"{result.queries / max(1, len(result.verdicts)):.3g}",
        alpha=wording.percent(result.alpha),
    )


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
