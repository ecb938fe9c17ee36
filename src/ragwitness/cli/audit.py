"""``ragwitness audit``: are these documents in that system's database?"""

from __future__ import annotations

from typing import Annotated

from ragwitness.cli.options import (
    Answered,
    DryRun,
    FailOn,
    QuestionsTo,
)
from ragwitness.cli.typer_options import Files
from ragwitness.errands.audit import AuditErrand
from ragwitness.kit.options import Opt


def audit(
    errand: AuditErrand,
    collection: Annotated[bool, Opt("--collection")] = False,
    files: Files | None = None,
    fail_on: FailOn = None,
    dry_run: DryRun = False,
    questions_to: QuestionsTo = None,
    answered: Answered = None,
) -> None:
    """Find out whether documents are in a RAG system's database.

    It prints a verdict for each document (in, out or inconclusive, with its p-value) and writes an
    HTML report. Before the first query it says what so many documents can decide, and compares the
    texts of --known-out with those in question. Where they differ, no verdict says that a document
    is in.

    With --collection it prints one verdict for all documents together. It asks about one after
    another, and you may look at the e-value, and stop, at any time. That verdict says that the
    collection is not like the documents of --known-out, which must be of the same source and kind;
    it does not say which of its documents are inside.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        collection: Ask whether the documents as a whole are inside, one by one until the evidence
            suffices.
    """
    from contextlib import nullcontext

    from ragwitness.cli.common import console, on_cores, run_folder, say_error
    from ragwitness.cli.outputs import Outputs, conclude
    from ragwitness.cli.owner import audit_collection
    from ragwitness.cli.questions import write_down
    from ragwitness.cli.steps import (
        agree,
        ask,
        chosen_order,
        preview_audit,
        sealed,
        wait,
    )
    from ragwitness.errands.audit import asked
    from ragwitness.errors import InputError
    from ragwitness.kit.run_files import REPORT
    from ragwitness.models.cluster import models_on
    from ragwitness.targets.resolve import open_target

    # Step 1, what only the command line has: files, questions for a batch job.
    by_itself, target = errand.method == "auto", str(errand.target)
    if not errand.cluster:
        on_cores(errand.workers)
    if answered is not None and questions_to is None:
        raise InputError(
            "--answered is for writing what is still to be asked.", "--questions-to FILE"
        )
    if questions_to is not None and by_itself:
        raise InputError(
            "--method auto asks the target what it can do, and --questions-to asks nothing.",
            "Name the method: --method mba",
        )
    if errand.seal is not None and questions_to is not None:
        raise InputError(
            "A sealed audit asks its questions itself, and links each answer to the one before.",
            "Leave out --questions-to or --seal.",
        )
    outputs = Outputs.wanted("collection" if collection else "audit", files, fail_on)
    if collection:
        formats = [f"--{name}" for name in files or () if name != "json"]
        if idle := [*formats, *(["--questions-to"] if questions_to else [])]:
            raise InputError(
                f"{idle[0]} does not apply to a collection.", "Leave it out, or --collection."
            )
        audit_collection(errand, outputs, dry_run=dry_run)
        return
    # Step 2, the errand itself: options checked, documents read.
    order = errand.order(say_error)
    folder = run_folder(errand.run, target, *errand.identity(order))
    # Step 3, the preview. Nothing is opened and nothing is sent.
    screen = console()
    if dry_run:
        if by_itself:
            usual = f"auto asks the target what it gives; without that, it would be {order.method}."
            screen.print(usual)
        preview_audit(order.plan, order.method, order.config, order.proxy, folder, order.budget)
        return
    # What can be said of the audit without a query is said now, and may end it.
    agree(*order.beforehand(), yes=errand.yes)
    from ragwitness.evidence.audit import subject_of

    # Language models compute on the cluster where there is one; all else stays in this process.
    with models_on(errand.cluster) if errand.cluster else nullcontext():
        if by_itself:
            order = chosen_order(order, errand, folder)
        wait(order.refuse_unscorable())
        # Step 4, the asking. What the target can do may have been asked by now; nothing about a
        # document was, so that the run is sealed here.
        if questions_to is not None:
            write_down(order, questions_to, answered, screen)
            return

        # The governor reserves the worst case of every query before it is sent, and no query to the
        # target passes beside it (docs/design/runs.md).
        with errand.governed(folder) as (governor, transport):
            result = ask(
                open_target(target, transport),
                sealed(
                    folder,
                    lambda: subject_of(order),
                    errand,
                    lambda opened, progress: asked(order, opened, governor, folder, progress),
                ),
                folder,
                governor,
            )
    conclude(result, folder / REPORT, screen, outputs, store=folder)
