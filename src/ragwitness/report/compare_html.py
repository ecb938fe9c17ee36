"""A comparison as one self-contained page."""

from __future__ import annotations

from pathlib import Path

from ragwitness.report import wording
from ragwitness.report.compare import (
    CLAIMED,
    NOT_CLAIMED,
    PUBLISHED,
    headline,
    leak_rows,
    main_measure,
    published_rows,
    use_rows,
)
from ragwitness.report.compare_figure import plane
from ragwitness.report.html import page, write_page
from ragwitness.report.view import spent_text
from ragwitness.runs.comparison import Comparison

__all__ = ["comparison_values", "render_comparison", "write_comparison"]


def comparison_values(result: Comparison) -> dict[str, object]:
    """Return everything that the template of the page lays out."""
    title, sentence = headline(result)
    main, leaks = main_measure(result), leak_rows(result)
    return {
        "result": result,
        "title": title,
        "sentence": sentence,
        "plane": plane(result),
        "leaks": leaks,
        "alike": any(row.alike != wording.MISSING for row in leaks),
        "main": main,
        "use": use_rows(result, main) if main else [],
        "more": [row for row in use_rows(result) if row.measure != main],
        "columns": PUBLISHED,
        "published": published_rows(result),
        "claimed": CLAIMED,
        "not_claimed": NOT_CLAIMED,
        "seconds": wording.duration(result.seconds),
        "spent": spent_text(result.spent) if result.spent else "",
    }


def render_comparison(result: Comparison) -> str:
    """Return the page; every text is escaped."""
    return page("compare.html.j2", **comparison_values(result))


def write_comparison(result: Comparison, path: str | Path) -> None:
    """Write the page to ``path``.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(render_comparison(result), path)
