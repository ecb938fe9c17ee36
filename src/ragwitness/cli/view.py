"""``ragwitness view``: runs as pages in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["view"]


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, or folders of runs.", show_default="ragwitness-runs"),
    ] = None,
    port: Annotated[int, typer.Option(help="0 takes a free one and prints it.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine a token is needed.")
    ] = "127.0.0.1",
) -> None:
    """Show runs in a browser: verdicts, evidence and costs.

    It only reads; runs under way can be watched.
    """
    from ragwitness.cli.common import RUNS
    from ragwitness.errors import InputError
    from ragwitness.web import serve

    roots = runs or [RUNS]
    for root in roots:
        if not root.is_dir():
            raise InputError(
                f"There is no folder {root}.",
                "Start an audit (ragwitness demo makes one), or name the folder of a run.",
            )
    serve(roots, host, port)
