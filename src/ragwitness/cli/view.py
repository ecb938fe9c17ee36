"""``ragwitness view``: runs as pages in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.paths import PathRole


def view(
    runs: Annotated[
        list[Path] | None,
        PathRole.READS,
        typer.Argument(help="Run folders, or folders of runs.", show_default="ragwitness-runs"),
    ] = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one and prints it.")] = 8765,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on. Beyond this machine a token is needed to read."
        ),
    ] = "127.0.0.1",
) -> None:
    """Show runs as pages in a browser.

    The pages show verdicts, evidence and costs. Runs are only read, and runs under way can be
    watched.
    """
    from ragwitness.errors import InputError
    from ragwitness.kit.run_files import RUNS
    from ragwitness.web.app import serve

    roots = runs or [RUNS]
    # Checked here and not on the first page: a server without runs looks like one that lost them.
    for root in roots:
        if not root.is_dir():
            raise InputError(
                f"There is no folder {root}.",
                "Start an audit (ragwitness demo makes one), or name the folder of a run.",
            )
    serve(roots, host, port)
