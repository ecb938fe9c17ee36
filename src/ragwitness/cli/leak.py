"""``ragwitness leak``: what can be got out of that system, and how much of it is private?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.cli.common import console, run_folder, say_error
from ragwitness.cli.options import Conditions, DryRun
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview, seal_first
from ragwitness.cli.typer_options import Files
from ragwitness.core.errors import InputError
from ragwitness.core.files import write_rows
from ragwitness.core.options import PathRole
from ragwitness.leakage.task import LeakTask, documents_of

_EXAMPLES = 3


def leak(
    task: LeakTask,
    files: Files | None = None,
    examples: bool = True,
    fail_on: Conditions = None,
    plant: Annotated[Path | None, PathRole.WRITES] = None,
    dry_run: DryRun = False,
) -> None:
    """Attack a RAG system and measure how much of its corpus leaks.

    It compares every answer with every record of the corpus. Each count has n, its interval, and
    what unrelated text gives by chance.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        examples: Show a few leaked answers in the report, behind a fold.
        fail_on: Exit with 3 if a measure is over a bound: "repeat records > 0", "secrets >= 1%",
            "coverage > .05". May be repeated.
        plant: Write the documents of the attack planted, one {"id", "text"} a line, and send
            nothing. Load them into the system, attack it, and remove them by their ids.
    """
    from ragwitness.leakage.result import leak_report, pick_examples
    from ragwitness.targets.resolve import open_target

    # Step 1, the options: they are checked before anything large is read or anything is spent.
    outputs = Outputs.wanted("leak", files, fail_on)
    work = task.order(say_error)
    if plant is not None:
        rows = [{"id": d.id, "text": d.text} for d in documents_of(work.attacks)]
        if not rows:
            raise InputError("No attack plants a document.", "Add --attacks planted.")
        write_rows(plant, rows)
        console().print(f"{len(rows)} documents in {plant}; nothing was sent", markup=False)
        return
    folder = run_folder(task.run, "leak", *work.identity)
    # Step 2, the preview: the most prompts and tokens, and the contents of the folder.
    if dry_run:
        prompts, tokens = work.limits.prompts, work.limits.max_tokens
        lines = [
            f"{attack.name}: at most {prompts:,} prompts, answers of at most {tokens:,} tokens"
            for attack in work.attacks
        ]
        total_prompts = len(work.attacks) * prompts
        total = f"all: at most {total_prompts:,} prompts, {total_prompts * tokens:,} tokens written"
        preview([*lines, total], folder, task.budget)
        return
    # Step 3, the texts that answers are compared with.
    plan = work.plan(say_error)
    run = None
    if task.transcripts is None:
        # Step 4, the attacks; stored transcripts are only scored.
        with task.limited(folder) as (limiter, transport):
            run = ask(
                open_target(str(task.target), transport),
                lambda opened, progress: work.asked(opened, limiter, folder, progress),
                folder,
                limiter,
                "prompts",
                lambda system: seal_first(folder, lambda: work.subject(plan), task, system),
            )
    # Step 5, the conclusion.
    transcripts = work.transcripts(run)
    console().print(f"scoring {len(transcripts):,} transcripts", markup=False)
    result = work.scored(plan, run)
    # Examples are private text: they go into the page, behind a fold, and never into the stored
    # result.
    leaked = pick_examples(transcripts, plan.records, _EXAMPLES if examples else 0)
    conclude(result, outputs, store=folder, report=leak_report(result, leaked))
