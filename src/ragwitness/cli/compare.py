"""``ragwitness compare``: what other data in a corpus's place buys in privacy and costs in use."""

from __future__ import annotations

from ragwitness.cli.common import console, progress_bars, run_folder, say_error
from ragwitness.cli.options import Conditions, DryRun
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import preview, spent_so_far, wait
from ragwitness.cli.typer_options import Files
from ragwitness.comparison.task import CompareTask


def compare(
    task: CompareTask,
    files: Files | None = None,
    fail_on: Conditions = None,
    dry_run: DryRun = False,
) -> None:
    """Compare substitutes of a corpus: privacy against use.

    Each substitute is indexed in a RAG system in this process, attacked with the same prompts and
    asked the same questions; leaks are counted against the original records. Caps and prices are
    those of the chat models (--model and --judge).

    Args:
        fail_on: Exit with 3 if a substitute leaks this much, e.g. 'repeat records > 0'. The
            conditions are those of leak. May be repeated.
    """
    # Step 1, the task: options checked, the corpus read and divided.
    outputs = Outputs.wanted("comparison", files, fail_on)
    work = task.order(say_error)
    folder = run_folder(task.run, "compare", *work.identity)
    # Step 2, the preview.
    if dry_run:
        preview(work.preview(), folder, task.budget)
        return
    # Step 3, making and asking.
    with (
        task.limited(folder) as (limiter, transport),
        progress_bars(console(), spent_so_far(limiter), "asked") as show,
    ):
        result = wait(work.asked(limiter, transport, folder, show), folder)
    # Step 4, the conclusion.
    conclude(result, outputs, store=folder)
