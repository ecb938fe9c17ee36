"""``ragwitness audit``: are these documents in that system's database?"""

from __future__ import annotations

from typing import Annotated

from ragwitness.cli.options import Answered, DryRun, FailOn, QuestionsTo
from ragwitness.cli.typer_options import Files
from ragwitness.core.options import Opt
from ragwitness.membership.task import AuditTask


def audit(
    task: AuditTask,
    collection: Annotated[bool, Opt("--collection")] = False,
    accounts: Annotated[list[str] | None, Opt("--as", metavar="NAME=KEY_ENV")] = None,
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
        accounts: Ask about each document as an account that must not reach it, with the key in this
            variable, and print a matrix of documents and accounts with one error rate. May be
            repeated; caps count for each account.
    """
    from ragwitness.cli.collection import audit_collection
    from ragwitness.cli.common import console, run_folder, say_error
    from ragwitness.cli.outputs import Outputs, conclude
    from ragwitness.cli.questions import write_down
    from ragwitness.cli.scope import accounts_of, audit_scope
    from ragwitness.cli.steps import agree, audited, preview_audit, wait
    from ragwitness.core.errors import InputError

    # Step 1, what only the command line has: files, questions for a batch job.
    by_itself, target = task.method == "auto", str(task.target)
    refused = (
        (
            answered and not questions_to,
            "--answered is for writing what is still to be asked.",
            "--questions-to FILE",
        ),
        (
            questions_to and by_itself,
            "--method auto asks the target what it can do, and --questions-to asks nothing.",
            "Name the method: --method mba",
        ),
        (
            task.seal and questions_to,
            "A sealed audit asks its questions itself, and links each answer to the one before.",
            "Leave out --questions-to or --seal.",
        ),
        (accounts and collection, "--collection does not apply to --as.", "Leave one out."),
        (accounts and questions_to, "--questions-to does not apply to --as.", "Leave one out."),
    )
    for wrong, why, hint in refused:
        if wrong:
            raise InputError(why, hint)
    if accounts:
        wanted = Outputs.wanted("scope", files, fail_on)
        audit_scope(task, accounts_of(accounts), wanted, dry_run=dry_run)
        return
    outputs = Outputs.wanted("collection" if collection else "audit", files, fail_on)
    if collection:
        formats = [f"--{name}" for name in files or () if name != "json"]
        if idle := [*formats, *(["--questions-to"] if questions_to else [])]:
            raise InputError(
                f"{idle[0]} does not apply to a collection.", "Leave it out, or --collection."
            )
        audit_collection(task, outputs, dry_run=dry_run)
        return
    # Step 2, the task itself: options checked, documents read.
    order = task.order(say_error)
    folder = run_folder(task.run, target, *task.identity(order))
    # Step 3, the preview. Nothing is opened and nothing is sent.
    screen = console()
    if dry_run:
        if by_itself:
            usual = f"auto asks the target what it gives; without that, it would be {order.method}."
            screen.print(usual)
        preview_audit(order.plan, order.method, order.config, order.proxy, folder, order.budget)
        return
    # What can be said of the audit without a query is said now, and may end it.
    agree(*order.beforehand(), yes=task.yes)
    # Step 4, the asking.
    if questions_to is not None:
        wait(order.refuse_unscorable())
        write_down(order, questions_to, answered, screen)
        return
    result = audited(task, order, folder)
    conclude(result, outputs, store=folder)
