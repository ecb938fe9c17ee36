"""``ragwitness leak``: what can be got out of that system, and how much of it is private?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.cli.common import console, run_folder, say_error
from ragwitness.cli.options import Conditions, DryRun
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview, sealed
from ragwitness.cli.typer_options import Files
from ragwitness.leakage.task import LeakTask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ragwitness.leakage.attacks.base import Attack, Limits
    from ragwitness.runner.budget import Budget

_EXAMPLES = 3


def leak(
    task: LeakTask,
    files: Files | None = None,
    examples: bool = True,
    fail_on: Conditions = None,
    dry_run: DryRun = False,
) -> None:
    """Attack a RAG system and measure how much of its corpus leaks.

    It counts what comes back in two ways: as papers publish it, and corrected, against every
    record of the corpus. Each count has n, its interval, and what unrelated text gives by chance.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        examples: Show a few leaked answers in the report, behind a fold.
        fail_on: Exit with 3 if a measure is over a bound: "repeat records > 0", "secrets >= 1%",
            "coverage > .05". May be repeated.
    """
    from ragwitness.leakage.result import leak_report, pick_examples
    from ragwitness.models.model_registry import load_embedder
    from ragwitness.targets.resolve import open_target

    # Step 1, the options: conditions, source, attacks and limits are checked before anything is
    # read that is large or spent that is dear.
    outputs = Outputs.wanted("leak", files, fail_on)
    made = task.order(say_error)
    folder = run_folder(task.run, "leak", *made.identity)
    # Step 2, the preview: at most so many prompts and tokens, and what the folder keeps.
    if dry_run:
        preview_leak(made.attacks, made.limits, folder, task.budget)
        return
    # Step 3, what answers are held against; whatever cannot be loaded must be known before anything
    # is spent.
    plan = made.plan(say_error)
    if task.embedder:
        load_embedder(task.embedder)
    asked = None
    if task.transcripts is None:
        # Step 4, the asking; with --transcripts it was done elsewhere, and scoring alone remains.
        with task.limited(folder) as (limiter, transport):
            asked = ask(
                open_target(str(task.target), transport),
                sealed(
                    folder,
                    lambda: made.subject(plan),
                    task,
                    lambda opened, progress: made.asked(opened, limiter, folder, progress),
                ),
                folder,
                limiter,
                "prompts",
            )
    # Step 5, the conclusion: published counts and corrected ones, from the same transcripts.
    told = made.transcripts(asked)
    console().print(f"scoring {len(told):,} transcripts", markup=False)
    result = made.scored(plan, asked)
    # Examples are private text: they go into the page, behind a fold, and never into the stored
    # result.
    report = leak_report(result, pick_examples(told, plan.records, _EXAMPLES if examples else 0))
    conclude(result, outputs, store=folder, report=report)


def preview_leak(attacks: Sequence[Attack], limits: Limits, folder: Path, budget: Budget) -> None:
    """Say what would be asked at most, and what the run folder keeps; send nothing."""
    most = len(attacks) * limits.prompts
    lines = [
        f"{attack.name}: at most {limits.prompts:,} prompts, answers of at most"
        f" {limits.max_tokens:,} tokens"
        for attack in attacks
    ]
    total = f"all: at most {most:,} prompts, {most * limits.max_tokens:,} tokens written"
    preview([*lines, total], folder, budget)
