"""``ragwitness audit``: are these documents in that system's database?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.common import print_lines
from ragwitness.cli.options import Answered, DryRun, FailOn, QuestionsTo
from ragwitness.cli.typer_options import Files
from ragwitness.core.options import Opt, PathRole
from ragwitness.membership.task import AuditTask

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.cli.outputs import Outputs
    from ragwitness.core.types import Target
    from ragwitness.membership.marks.task import MarksTask
    from ragwitness.membership.prepared import PreparedAudit
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.membership.results.collection import CollectionResult
    from ragwitness.runner.worker import Progress


def audit(
    task: AuditTask,
    collection: Annotated[bool, Opt("--collection")] = False,
    marks: Annotated[Path | None, PathRole.READS, Opt(metavar="KEY")] = None,
    accounts: Annotated[list[str] | None, Opt("--as", metavar="NAME=KEY_ENV")] = None,
    files: Files | None = None,
    fail_on: FailOn = None,
    dry_run: DryRun = False,
    questions_to: QuestionsTo = None,
    answered: Answered = None,
) -> None:
    """Find out whether documents are in a RAG system's database.

    It prints a verdict for each document (in, out or inconclusive, with its p-value) and writes an
    HTML report. Before the first query it says whether the documents suffice for a decision, and
    compares the texts of --known-out with those in question. Where they differ, no verdict says
    that a document is in.

    With --collection it prints one verdict for all documents together. It asks about one after
    another, and you may look at the e-value, and stop, at any time. That verdict says that the
    collection is not like the documents of --known-out, which must be of the same source and kind.
    It does not say which of its documents are inside.

    With --marks it asks for the words that ragwitness mark drew in documents before they were
    shared. It needs no other documents, and its error rate is exact for a single one.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        collection: Ask whether the documents as a whole are inside, one by one until the evidence
            suffices.
        marks: Ask about the marked documents of this key. With --documents, the published texts,
            it also says how many drawn words are in them still.
        accounts: Ask about each document as an account that must not reach it, with the key in this
            variable, and print a matrix of documents and accounts with one error rate. May be
            repeated; caps count for each account.
    """
    from ragwitness.cli.common import console, run_folder, say_error
    from ragwitness.cli.outputs import Outputs, conclude
    from ragwitness.cli.steps import agree, audited, preview_audit, wait
    from ragwitness.core.errors import InputError

    # 1. Options that only the command line has: files, questions for a batch job.
    by_itself = task.method == "auto"
    formats = next((f"--{name}" for name in files or () if name != "json"), "")
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
        (
            marks and (collection or accounts or questions_to),
            "--collection, --as and --questions-to do not apply to --marks.",
            "Leave them out.",
        ),
        (accounts and collection, "--collection does not apply to --as.", "Leave one out."),
        (accounts and questions_to, "--questions-to does not apply to --as.", "Leave one out."),
        (
            collection and (formats or questions_to),
            f"{formats or '--questions-to'} does not apply to a collection.",
            "Leave it out, or --collection.",
        ),
    )
    for wrong, reason, hint in refused:
        if wrong:
            raise InputError(reason, hint)
    kind = "marks" if marks else "scope" if accounts else "collection" if collection else "audit"
    outputs = Outputs.wanted(kind, files, fail_on)
    if marks:
        _audit_marks(_marks_of(task, marks), outputs, dry_run=dry_run)
        return
    if accounts:
        _audit_scope(task, _accounts_of(accounts), outputs, dry_run=dry_run)
        return
    if collection:
        _audit_collection(task, outputs, dry_run=dry_run)
        return
    # 2. The task itself: options checked, documents read.
    order = task.order(say_error)
    folder = run_folder(task.run, str(task.target), *task.identity(order))
    # 3. The preview: nothing is opened, and nothing is sent.
    screen = console()
    if dry_run:
        if by_itself:
            usual = f"auto asks the target what it gives; without that, it would be {order.method}."
            screen.print(usual)
        preview_audit(order, folder)
        return
    # Doubts that need no query are said now, and may end the audit.
    agree(*order.beforehand(), yes=task.yes)
    # 4. The questions.
    if questions_to is not None:
        wait(order.refuse_unscorable())
        _write_questions(order, questions_to, answered, screen)
        return
    conclude(audited(task, order, folder), outputs, store=folder)


# ``ragwitness audit --marks``: does the system hold these marked copies?


def _marks_of(task: AuditTask, key: Path) -> MarksTask:
    """Return the audit of marks with the options of an audit that it shares.

    Raises:
        InputError: Another option was given.
    """
    from ragwitness.core.errors import InputError
    from ragwitness.core.options import declared
    from ragwitness.membership.marks.task import MarksTask

    shared = {option.name for option in declared(MarksTask)} - {"marks"}
    for option in declared(type(task)):
        if option.name not in shared and getattr(task, option.name) != option.default:
            raise InputError(f"{option.option} does not apply to --marks.", "Leave it out.")
    options = {name: getattr(task, name) for name in shared}
    return MarksTask(marks=key, **options | {"documents": task.documents or None})


def _audit_marks(task: MarksTask, outputs: Outputs, *, dry_run: bool) -> None:
    """Ask about every marked document of a key."""
    from ragwitness.cli.common import run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import ask, preview, seal_first
    from ragwitness.membership.marks.evidence import subject_of
    from ragwitness.membership.marks.run import ask_about_marks
    from ragwitness.targets.resolve import open_target

    marked, target = task.order(say_error), str(task.target)
    folder = run_folder(task.run, "marks", target, marked.key.commitment.hex(), task.alpha)
    lots = sum(len(document.lots) for document in marked.key.documents)
    if dry_run:
        line = f"{len(marked.key.documents):,} marked documents: at most {2 * lots:,} questions"
        preview([line], folder, task.budget)
        return
    with task.limited(folder) as (limiter, transport):
        result = ask(
            open_target(target, transport),
            lambda opened, progress: ask_about_marks(
                marked, opened, run=folder, progress=progress, limiter=limiter,
                in_flight=task.at_once,
            ),
            folder,
            limiter,
            before=lambda system: seal_first(
                folder, lambda: subject_of(marked, task), task, system
            ),
        )  # fmt: skip
    conclude(result, outputs, store=folder)


# ``ragwitness audit --as``: can accounts reach documents that they must not?

_ACCOUNT = re.compile(r"([\w.-]+)=(\w+)")


def _accounts_of(given: Sequence[str]) -> dict[str, str]:
    """Return the variable with the key of each account, by its name.

    Raises:
        InputError: One is not ``NAME=VARIABLE``, or a name is given twice.
    """
    from ragwitness.core.errors import InputError

    accounts = {form[1]: form[2] for form in map(_ACCOUNT.fullmatch, given) if form}
    if len(accounts) < len(given) or {".", ".."} & {*accounts}:
        raise InputError(
            "--as takes the name of an account and the variable with its key, each name once.",
            "An example: --as alice=ALICE_KEY --as bob=BOB_KEY",
        )
    return accounts


def _audit_scope(
    task: AuditTask, accounts: dict[str, str], outputs: Outputs, *, dry_run: bool
) -> None:
    """Ask about the documents as each account, and put the verdicts into one matrix."""
    from ragwitness.cli.common import console, run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, audited, preview_audit
    from ragwitness.core.run_files import RESULT
    from ragwitness.membership.results.audit import RESULT_TYPE
    from ragwitness.membership.results.scope import scope_of
    from ragwitness.membership.task import as_accounts
    from ragwitness.report.files import write

    # 1. One task for each account, and one folder for all.
    audits: dict[str, AuditResult] = {}
    tasks = as_accounts(task, accounts, say_error)
    first, order = next(iter(tasks.values()))
    named = (*sorted(accounts.items()), *first.identity(order))
    folder = run_folder(task.run, "as", str(task.target), *named)
    agree(*order.beforehand(), yes=task.yes or dry_run)
    # 2. One audit after the other, each stored at once.
    for name, (account_task, prepared) in tasks.items():
        console().print(f"as {name}:", markup=False)
        if dry_run:
            preview_audit(order, folder / name)
            continue
        audits[name] = audited(account_task, prepared, folder / name)
        write("json", RESULT_TYPE, audits[name], folder / name / RESULT)
    if not dry_run:
        conclude(scope_of(audits, task.alpha), outputs, store=folder)


# ``ragwitness audit --collection``: does this provider hold my collection?


def _audit_collection(task: AuditTask, outputs: Outputs, *, dry_run: bool) -> None:
    """Ask about the documents of a collection one by one until the evidence suffices."""
    from dataclasses import replace

    from ragwitness.cli.common import run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, ask, preview_audit, wait
    from ragwitness.core.errors import InputError
    from ragwitness.membership.collection import run_collection, undecidable
    from ragwitness.targets.resolve import open_target

    # The e-value bets against "these documents are like those outside", so there is no default
    # here: generated documents are never of the same source and kind.
    if task.known_out is None:
        raise InputError(
            "A collection is compared with documents known to be outside.",
            "Give some of the same source and kind: --known-out FILE",
        )
    order = task.order(say_error, collection=True)
    plan, target = order.plan, str(task.target)
    same = replace(plan, in_flight=1)  # another --concurrency resumes the same run
    # The seed decides the order of asking, so it is part of the run's name. Another order is
    # another sequence of bets: the two must not be read as one.
    named = ("owner", target, same, order.method, order.config, order.proxy, task.seed)
    folder = run_folder(task.run, *named)
    if dry_run:
        preview_audit(order, folder)
        return
    if doubt := undecidable(plan):
        agree([doubt], doubtful=True, yes=task.yes)
    wait(order.refuse_unscorable())
    # One document is asked about after the other, until the e-value passes 1 / alpha or a cap is
    # reached.
    with task.limited(folder) as (limiter, transport):

        async def work(opened: Target, progress: Progress) -> CollectionResult:
            audit, _ = await order.fitted_to(opened, limiter, folder)
            return await run_collection(
                plan, opened, audit, seed=task.seed, run=folder, progress=progress,
                limiter=limiter,
            )  # fmt: skip

        result = ask(open_target(target, transport), work, folder, limiter)
    # The result is stored first, then shown; --fail-on decides the exit code.
    conclude(result, outputs, store=folder)


# ``ragwitness audit --questions-to``: the questions of an audit, for a batch job to answer.


def _write_questions(
    order: PreparedAudit, path: Path, answered: Path | None, screen: Console
) -> None:
    """Write the questions of an audit into a file and say how to go on."""
    from ragwitness.cli.steps import wait
    from ragwitness.membership.questions import write_questions

    questions, documents, without = wait(write_questions(path, order, answered))
    print_lines(
        screen,
        f"wrote {path}: {questions:,} questions about {documents:,} documents; {without:,} others"
        " have none; nothing was sent",
        "answer it:    any program for OpenAI batch files; docs/scale.md names one",
        "then:         the same command with replay/ANSWERS.jsonl in place of the target",
        "some missing: the same command with --questions-to MORE --answered ANSWERS",
    )
