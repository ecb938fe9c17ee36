"""``ragwitness evaluate``: how well audits do on a corpus, beside guessers."""

from __future__ import annotations

from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.typer_options import Files
from ragwitness.membership.evaluation_task import EvaluateTask


def evaluate(task: EvaluateTask, files: Files | None = None) -> None:
    """Measure how well audits do on a corpus of yours.

    The corpus is split once, at random, and every rate has its interval. There are always
    controls: guessers that never ask the system, the system with its retrieval switched off, and
    the non-members that are most like something in the index.
    """
    from ragwitness.cli.common import console, progress_bars, run_folder, say_error
    from ragwitness.cli.steps import wait
    from ragwitness.core.run_files import EVALUATION

    outputs = Outputs.wanted("evaluation", files)
    plan, documents = task.order(say_error)
    folder = run_folder(task.run, "evaluate", task.corpus, plan, task.defense, task.proxy)
    # A system in this process answers: it spends nothing outside, so there is no budget and no
    # preview.
    with progress_bars(console()) as progress:
        battery = wait(task.asked(plan, documents, folder, progress), folder)
    # The page has another name than a report: only an older evaluation.html is replaced.
    conclude(battery, outputs, store=folder, page=folder / EVALUATION)
