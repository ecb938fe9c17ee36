"""``ragwitness report``: render a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="Run folder, or its result.json.")],
    html: Annotated[
        Path | None, typer.Option(help="Where to write the page; default: in the run folder.")
    ] = None,
) -> None:
    """Print a finished run and write its HTML report again."""
    import json

    from ragwitness.cli.common import console
    from ragwitness.errors import InputError
    from ragwitness.report import from_json, render_terminal, write_html

    path = run / "result.json" if run.is_dir() else run
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist: the run is unknown or unfinished.",
            "Issue the audit command again to finish it, or check the folder.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as a result: {error}.", "Issue the audit command again."
        ) from error
    result = from_json(stored)
    page = html or path.parent / "report.html"
    write_html(result, page)
    screen = console()
    screen.print(render_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
