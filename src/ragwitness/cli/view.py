"""``ragwitness view``: runs as pages in a browser, and a page to begin one from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.core.options import Arg, PathRole


def view(
    runs: Annotated[list[Path] | None, PathRole.READS, Arg(shown="ragwitness-runs")] = None,
    port: int = 8765,
    host: str = "127.0.0.1",
) -> None:
    """Show runs as pages in a browser, and begin new ones.

    The pages show verdicts, evidence and costs. An audit, a leak measurement or canaries can be
    begun there without a terminal: documents are uploaded, what it would cost and could show is
    said before it starts, and it can be stopped and gone on with. The address that is printed works
    once, for one browser. New runs go to the first folder of runs; on another --host than this
    machine the pages only read.

    Args:
        runs: Run folders, or folders of runs.
        port: The port; 0 takes a free one and prints it.
        host: The address to listen on. Beyond this machine the pages only read.
    """
    from ragwitness.core.errors import InputError
    from ragwitness.core.run_files import RUNS
    from ragwitness.web.app import serve

    # Checked here and not on the first page: a server without runs looks like one that lost them.
    # The usual folder is made by the first run.
    for root in runs or []:
        if not root.is_dir():
            raise InputError(
                f"There is no folder {root}.",
                "Name the folder of a run, or leave it out and begin a run in the pages.",
            )
    serve(runs or [RUNS], host, port)
