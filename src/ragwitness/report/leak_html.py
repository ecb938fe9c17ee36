"""A leak measurement as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragwitness.report import wording
from ragwitness.report.html import page, write_page
from ragwitness.report.leak import CLAIMED, NOT_CLAIMED, Example, headline, rows
from ragwitness.report.view import spent_text
from ragwitness.runs.leak_score import LeakResult

__all__ = ["leak_values", "render_leak", "write_leak"]


def leak_values(result: LeakResult, examples: Sequence[Example] = ()) -> dict[str, object]:
    """Return everything that the template of the page lays out."""
    title, sentence = headline(result)
    return {
        "result": result,
        "title": title,
        "sentence": sentence,
        "together": rows(result.together),
        "attacks": [(one, rows(one.measures)) for one in result.attacks],
        "claimed": CLAIMED,
        "not_claimed": NOT_CLAIMED,
        "examples": examples,
        "seconds": wording.duration(result.seconds),
        "spent": spent_text(result.spent),
    }


def render_leak(result: LeakResult, examples: Sequence[Example] = ()) -> str:
    """Return the page; every text is escaped, examples stand behind a fold.

    Args:
        result: The measurement.
        examples: Answers that repeat records: private text.
    """
    return page("leak.html.j2", **leak_values(result, examples))


def write_leak(result: LeakResult, path: str | Path, examples: Sequence[Example] = ()) -> None:
    """Write the page to ``path``.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(render_leak(result, examples), path)
