"""``ragwitness merge``: unite what the parts of a run left, and conclude."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.outputs import FailOn, JsonlPath, JsonPath, JUnitPath, ParquetPath

__all__ = ["merge"]


def merge(
    run: Annotated[Path, typer.Argument(help="Folder of a run that --prepare wrote.")],
    json_out: JsonPath = None,
    jsonl_out: JsonlPath = None,
    parquet_out: ParquetPath = None,
    junit_out: JUnitPath = None,
    fail_on: FailOn = None,
) -> None:
    """Print and report a run whose parts are all done. Nothing is sent."""
    from ragwitness.cli.common import console, one_thread_per_answer
    from ragwitness.cli.finish import finish
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.report.gate import parse_conditions
    from ragwitness.runs.manifest import read_manifest
    from ragwitness.runs.merge import merge_run

    outputs = Outputs(json_out, jsonl_out, parquet_out, junit_out, parse_conditions(fail_on or ()))
    manifest = read_manifest(run)
    outputs.check(files_of_run(run))
    one_thread_per_answer()
    finish(merge_run(manifest, run), run, console(), outputs)
