"""``ragwitness synthesize``: data that may replace a private corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.cli.common import console, print_lines, run_folder, say_error
from ragwitness.cli.options import Conditions, DryRun
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import agree, ask, preview
from ragwitness.cli.typer_options import Files
from ragwitness.core.errors import RagwitnessError
from ragwitness.synthesis.task import SynthesizeTask

if TYPE_CHECKING:
    from ragwitness.synthesis.run import SynthesisResult


def synthesize(
    task: SynthesizeTask,
    files: Files | None = None,
    fail_on: Conditions = None,
    dry_run: DryRun = False,
    show: int = 0,
) -> None:
    """Make synthetic records from private ones.

    A record that breaks a condition is withheld. A record that passes shares no long run of words
    with any private record (redact copies them), no known secret and no contact detail. It may
    still paraphrase a fact; measure that with ragwitness leak. The private methods check no
    condition on the records: their output depends on them by noisy counts alone, within --epsilon
    and --delta.

    Args:
        fail_on: Exit with 3 if a record has this fate, e.g. withheld, failed:3 or refused:5%. May
            be repeated.
        show: Print this number of texts that passed, and the reasons of as many withheld ones.
    """
    from ragwitness.core.run_files import RESULT
    from ragwitness.synthesis.run import UnseenAttributesError

    # Step 1, the task: options checked, files read.
    outputs = Outputs.wanted("synthesis", files, fail_on)
    work = task.order(say_error)
    # With a privacy budget no new run follows a finished one: it would spend the budget again.
    folder = run_folder(task.run, "synthesize", *work.identity, again=not work.private)
    # Step 2, the preview.
    if dry_run:
        preview(work.preview(), folder, task.budget)
        return
    # Step 3, the making. Models are loaded first, so that errors come before the first query.
    guard = work.guard()
    items = "queries" if work.private else "records"

    def texts(agreed: bool) -> SynthesisResult:
        with task.limited(folder) as (limiter, transport):
            return ask(
                work.opening(transport),
                lambda opened, progress: work.asked(
                    opened, guard, limiter, folder, progress, agreed=agreed
                ),
                folder,
                limiter,
                items,
            )

    try:
        result = texts(task.yes)
    except UnseenAttributesError as found:
        agree([found.message], doubtful=True, yes=False, refusal=found)
        result = texts(True)
    # Step 4, the conclusion. Texts first: they are what was paid for.
    report = work.written(result, folder)
    if report.out is not None:
        print_lines(console(), f"synthetic records: {report.out}")
    for passed in (True, False):
        some = [synthesis for synthesis in result.made if bool(synthesis.text) is passed][:show]
        print_lines(
            console(),
            *(f"{synthesis.record}: {synthesis.text or synthesis.reason}" for synthesis in some),
        )
    # Fail closed: where nothing passed there is a report, an exit code and no texts.
    conclude(report, outputs, store=folder)
    if report.out is None:
        raise RagwitnessError(
            "No synthetic text may be used; nothing was written.",
            f"{folder / RESULT} says why for each.",
        )
