"""``ragwitness report``: render a finished run again, in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.typer_options import Files
from ragwitness.core.options import Arg, Opt, PathRole


def report(
    run: Annotated[Path, PathRole.KEEPS, Arg()],
    html: Annotated[Path | None, PathRole.PAGE, Opt(shown="the page in the run folder")] = None,
    files: Files | None = None,
    fail_on: Annotated[list[str] | None, Opt(metavar="CONDITION")] = None,
) -> None:
    """Show a finished run again, in any format.

    It prints the result and writes the page of the run again. Nothing is sent.

    Args:
        run: The run folder, or its result.json.
        html: Write the page to this HTML file.
        fail_on: Exit with 3 if this is met. The conditions are those of the verb that made the run,
            e.g. in:3, unscorable:5% or, for leaks, 'secrets > 1%'. May be repeated.
    """
    from ragwitness.core.run_files import REPORT
    from ragwitness.report.result_registry import open_result

    # Any kind, of any version before this one; the kind then reads the conditions, which are in its
    # own grammar.
    kind, result = open_result(run)
    outputs = Outputs.wanted(kind.name, files, fail_on)
    # The page is made anew beside the result; the result itself is never written again.
    page = html or (run if run.is_dir() else run.parent) / REPORT
    conclude(result, outputs, page=page)


# ``ragwitness view``: runs as pages in a browser, and a page to begin one from.


def view(
    runs: Annotated[list[Path] | None, PathRole.READS, Arg(shown="ragwitness-runs")] = None,
    port: int = 8765,
    host: str = "127.0.0.1",
) -> None:
    """Show runs as pages in a browser, and begin new ones.

    The pages show verdicts, evidence and costs. An audit or a leak measurement can be begun there
    without a terminal: its cost and power are shown before it starts, and it can be stopped and
    resumed. The printed address works once, for one browser. New runs go to
    the first folder of runs; on another --host than this machine the pages only read.

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
