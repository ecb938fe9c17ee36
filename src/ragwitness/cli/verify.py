"""``ragwitness verify``: PASS, FAIL or INCONCLUSIVE on one file, offline."""

from __future__ import annotations

from contextlib import nullcontext

import typer

from ragwitness.cli.options import AsJson
from ragwitness.core.errors import ExitCode
from ragwitness.evidence.task import VerifyTask


def verify(task: VerifyTask, as_json: AsJson = False) -> None:
    """Check a sealed file by itself, offline.

    It recognises the kind of file. For an evidence pack it recomputes every score, p-value and
    verdict from the recorded answers, and names each check that hidden texts prevent. For the
    bundle of an audit window it checks the proofs. It needs no network, and trusts no claim of the
    file about itself; the verdict lists its other assumptions. It exits with 0 for PASS, with 3
    for FAIL, and with 4 for INCONCLUSIVE: nothing is wrong, but a part is missing, such as hidden
    texts or your own terms (ragwitness attest pin).
    """
    import json

    from ragwitness.cli.common import console, is_verbose, one_thread_per_answer, progress_bars
    from ragwitness.evidence.result import RESULT_TYPE
    from ragwitness.report.terminal import terminal

    items, judge = task.opened()
    if items == "documents":
        one_thread_per_answer()
    screen = console()
    with nullcontext() if as_json else progress_bars(screen, items=items) as progress:
        verdict = judge(progress=progress)
    if as_json:
        typer.echo(json.dumps(RESULT_TYPE.stored(verdict), indent=1, allow_nan=False))
    else:
        screen.print(
            terminal(RESULT_TYPE.report(verdict), width=screen.width, verbose=is_verbose())
        )
    # Something missing is not something wrong, and neither is a pass.
    codes = {"pass": ExitCode.PASS, "fail": ExitCode.FAILED, "inconclusive": ExitCode.INCONCLUSIVE}
    raise typer.Exit(codes[verdict.outcome])
