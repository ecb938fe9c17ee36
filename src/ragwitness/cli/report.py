"""``ragwitness report``: render a finished run again, in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.outputs import JsonlPath, JsonPath, JUnitPath, ParquetPath

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="Run folder, or its result.json.")],
    html: Annotated[
        Path | None, typer.Option(help="Where to write the page; default: in the run folder.")
    ] = None,
    json_out: JsonPath = None,
    jsonl_out: JsonlPath = None,
    parquet_out: ParquetPath = None,
    junit_out: JUnitPath = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 3 where it is met, as of the verb that made the run: in:3,"
            " unscorable:5%, of leaks 'secrets > 1%'. May be repeated.",
        ),
    ] = None,
) -> None:
    """Print a finished run, write its report again; send nothing."""
    import json

    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.errors import InputError
    from ragwitness.report import from_json, render_terminal, write_html
    from ragwitness.report.gate import parse_conditions

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
    if isinstance(stored, dict) and stored.get("kind") == "leak":
        from ragwitness.cli.leaked import show_again

        given = {"--jsonl": jsonl_out, "--parquet": parquet_out, "--junit": junit_out}
        show_again(stored, path, html, json_out, fail_on or (), given)
        return
    if isinstance(stored, dict) and stored.get("kind") == "comparison":
        from ragwitness.cli.compare_run import show_again as show_comparison_again

        given = {"--jsonl": jsonl_out, "--parquet": parquet_out, "--junit": junit_out}
        show_comparison_again(stored, path, html, json_out, {**given, "--fail-on": fail_on})
        return
    if isinstance(stored, dict) and stored.get("kind") == "canary":
        from ragwitness.report.canary import show_canary

        given = {"--html": html, "--jsonl": jsonl_out, "--parquet": parquet_out}
        show_canary(stored, {**given, "--json": json_out, "--junit": junit_out}, fail_on)
        return
    wanted = parse_conditions(fail_on or ())
    outputs = Outputs(json_out, jsonl_out, parquet_out, junit_out, wanted)
    result = from_json(stored)
    page = html or path.parent / "report.html"
    outputs.check([path, page, *files_of_run(path.parent)])
    write_html(result, page)
    screen = console()
    screen.print(render_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
    outputs.conclude(result, screen)
