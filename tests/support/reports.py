"""Reports of results at hand, as tests read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ragwitness.report import files
from ragwitness.report.html import render_page
from ragwitness.report.result_registry import parse_result, result_type_for, to_json
from ragwitness.report.terminal import terminal


def page_of(result: object) -> str:
    """Return the page of a result."""
    return render_page(result_type_for(result).report(result))


def terminal_of(result: object, *, where: str = "the HTML report", width: int = 80) -> str:
    """Return a result as a terminal without colour shows it."""
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(terminal(result_type_for(result).report(result), where=where))
    return capture.get()


def junit_of(result: object, conditions: Sequence[Any] = ()) -> str:
    """Return a result as JUnit XML."""
    return files.junit_xml(result_type_for(result), result, conditions)


def write(form: str, result: object, path: Path, *more: Any) -> None:
    """Write a result in one of the ``FORMATS``."""
    files.write(form, result_type_for(result), result, path, *more)


def again(result: object) -> object:
    """Return a result after it was stored and opened."""
    return parse_result(to_json(result))[1]
