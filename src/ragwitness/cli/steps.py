"""The steps that verbs share: preview, ask, conclude.

A verb reads its options, checks its inputs and says what is to be done; what is asked, kept,
shown and resumed goes through here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ragwitness.cli.common import (
    console,
    leave,
    one_thread_per_answer,
    print_lines,
    progress_bars,
)
from ragwitness.core.errors import ExitCode, InputError, TargetError
from ragwitness.core.run_files import SEAL

if TYPE_CHECKING:
    from ragwitness.core.types import Target
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.membership.prepared import PreparedAudit
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.membership.task import AuditTask
    from ragwitness.runner.budget import Budget
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.task_options import Sealing
    from ragwitness.runner.worker import Progress

Result = TypeVar("Result")

_EVERY = 5.0  # seconds between two lines about a target that does not answer


def ask(
    opening: Awaitable[Target] | None,
    work: Callable[[Any, Progress], Awaitable[Result]],
    folder: Path,
    limiter: RateLimiter,
    items: str = "documents",
    before: Callable[[str], None] | None = None,
) -> Result:
    """Open a target, do ``work`` with it under progress bars, and close it.

    Args:
        opening: Opens the target; None where nothing is asked.
        work: Called with the target and the progress bars.
        folder: Where the answers are kept.
        limiter: Lets queries to the target pass.
        items: The things that the bars count.
        before: Called with the target's name before it is asked.

    Raises:
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    import asyncio

    from ragwitness.runner.capabilities import remarks_of

    async def life() -> Result:
        target, setbacks = None, asyncio.ensure_future(_tell_setbacks(limiter))
        try:
            # Opened inside the event loop that closes it: a client must not outlive its loop.
            target = None if opening is None else await opening
            with progress_bars(console(), spent_so_far(limiter), items) as progress:
                if before is not None and target is not None:
                    before(target.name)
                return await work(target, progress)
        finally:
            setbacks.cancel()
            if target is not None:
                print_lines(console(), *(f"note: {line}" for line in remarks_of(target)))
                await target.close()

    return wait(life(), folder)


async def _tell_setbacks(limiter: RateLimiter) -> None:
    """Say every few seconds that the target turns requests away, while it does."""
    import asyncio

    screen, reported = console(), 0
    while True:
        await asyncio.sleep(_EVERY)
        if limiter.turned_away > reported:
            reported = limiter.turned_away
            slow = (
                f"; {limiter.late} had no answer in time, so that {limiter.limit} at a time are"
                " sent now"
            )
            print_lines(
                screen,
                f"waiting: the target turned {reported} requests away or did not answer them,"
                f" {limiter.answered} were answered{slow * bool(limiter.late)}; trying again",
            )


def wait(work: Coroutine[Any, Any, Result], folder: Path | None = None) -> Result:
    """Run work to its end.

    Args:
        work: The work.
        folder: Where its answers are kept, if it can be resumed.
    """
    import asyncio

    # Before any worker starts: small products side by side gain nothing from threads of their own.
    one_thread_per_answer()
    with nullcontext() if folder is None else leaving_resumable(folder):
        return asyncio.run(work)


@contextmanager
def leaving_resumable(folder: Path) -> Iterator[None]:
    """Say how to go on where the user interrupts (exit with 130) or the target goes away."""
    try:
        yield
    except TargetError as error:
        from ragwitness.core.files import at_hand
        from ragwitness.core.run_files import ANSWERS

        if at_hand(folder / ANSWERS) is not None:
            advice = f"Answers so far are kept in {folder}: the same command resumes."
            error.hint = f"{error.hint} {advice}".strip()
        raise
    except KeyboardInterrupt:
        from ragwitness.cli.common import console

        screen = console()
        screen.print(f"interrupted: answers so far are kept in {folder}", markup=False)
        how = f"resume with the same command and --run {folder}"
        screen.print(how, markup=False, soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


# A method that is chosen: ``--method auto``.


def chosen_order(order: PreparedAudit, task: AuditTask, folder: Path) -> PreparedAudit:
    """Measure the target of an order, choose its method, and say in one line why.

    Returns:
        The order with its method and the line.

    Raises:
        CapabilityError: No method can be chosen.
        InputError: No method has a question for any document; then nothing was sent.
    """
    from ragwitness.membership.task import choose_method
    from ragwitness.targets.resolve import open_target

    with task.limited(folder) as (limiter, transport):
        order_made = ask(
            open_target(order.target, transport),
            lambda target, progress: choose_method(order, target, limiter, folder, progress),
            folder,
            limiter,
        )
    console().print(order_made.why, markup=False)
    return order_made


def audited(task: AuditTask, order: PreparedAudit, folder: Path) -> AuditResult:
    """Choose the method where none is named, seal the run where that is asked for, and ask.

    Args:
        task: The audit's options.
        order: The same with its documents read.
        folder: Of the run.

    Raises:
        CapabilityError: No method can be chosen.
        InputError: No method has a question for any document; then nothing was sent.
    """
    from ragwitness.membership.evidence import subject_of
    from ragwitness.membership.task import run_prepared
    from ragwitness.models.cluster import models_on
    from ragwitness.targets.resolve import open_target

    # Language models compute on the cluster where there is one; all else stays in this process.
    with models_on(task.cluster) if task.cluster else nullcontext():
        if task.method == "auto":
            order = chosen_order(order, task, folder)
        wait(order.refuse_unscorable())
        # Capabilities may have been measured by now, but no document was asked about: the run
        # is sealed here.
        # The rate limiter reserves the worst case of every query before it is sent, and no query
        # to the target passes beside it (docs/design/runs.md).
        with task.limited(folder) as (limiter, transport):
            return ask(
                open_target(order.target, transport),
                lambda opened, progress: run_prepared(order, opened, limiter, folder, progress),
                folder,
                limiter,
                before=lambda system: seal_first(folder, lambda: subject_of(order), task, system),
            )


# A run that is to be evidence: sealed before its first query.


def seal_first(
    folder: Path, subject: Callable[[], SealSubject], sealing: Sealing, system: str
) -> None:
    """Seal a run, where that is asked for, and say what to publish.

    Args:
        folder: Of the run.
        subject: Makes the subject of the commitment, if it is needed.
        sealing: With which key, log of runs and timestamp authority; without a key, not at all.
        system: Name of the opened target.

    Raises:
        InputError: The run is sealed, and no key was given; or it cannot be sealed.
    """
    key = sealing.seal
    if key is None:
        if (folder / SEAL).exists():
            raise InputError(
                f"{folder} is sealed, and goes on only as it was sealed.",
                "Give --seal with the same key again, or choose another folder with --run.",
            )
        return
    from ragwitness.evidence.seal import sealing_key
    from ragwitness.evidence.sealing import seal_run

    digest = seal_run(sealing, folder, "", system, lambda _: subject())
    print_lines(console(), f"sealed: {digest}", f"key: {sealing_key(key).public.text}")


# Before anything is sent: what can be decided, what would be asked, and what is kept.


def agree(
    told: Sequence[str], doubtful: bool, *, yes: bool, refusal: InputError | None = None
) -> None:
    """Say what can be said before the first query; ask whether to go on where that is doubtful.

    Args:
        told: Lines to print.
        doubtful: Whether to ask.
        yes: The answer, if it was given before.
        refusal: Error where there is no terminal to ask on; None for that of an audit.

    Raises:
        InputError: It is doubtful, and there is no terminal to ask on.
    """
    import sys

    from ragwitness.membership.task import undecidable

    screen = console()
    ask = doubtful and not yes
    if ask and not (sys.stdin.isatty() and screen.is_terminal):
        raise refusal or undecidable(told)
    for line in told:
        screen.print(line, markup=False)
    if ask and not typer.confirm("Go on all the same?", default=False):
        screen.print("Answers so far are kept." if refusal else "Nothing was sent.")
        raise typer.Exit(ExitCode.INTERRUPTED)


def preview(lines: Iterable[str], folder: Path, budget: Budget) -> None:
    """Show what a command would ask, and what its run folder keeps; nothing is sent.

    Args:
        lines: Lines on the questions.
        folder: Of the run.
        budget: Prices what was spent.

    Raises:
        InputError: The files of the run folder cannot be read.
    """
    print_lines(console(), *lines, *_kept(folder, budget), "Nothing was sent.")


def preview_audit(order: PreparedAudit, folder: Path) -> None:
    """Show what an audit would ask and could show, and what its run folder keeps.

    Raises:
        InputError: The files of the run folder cannot be read.
    """
    from ragwitness.cli.plan import foresee

    # The same forecast as `ragwitness plan`, with the audit's own configuration.
    leave(foresee(order.plan, {order.method: order.config}, order.proxy, order.budget))
    known = f"The {len(order.plan.known_in)} known-in documents are asked about besides."
    preview([known] if order.plan.known_in else [], folder, order.budget)


def _kept(folder: Path, budget: Budget) -> list[str]:
    """Say what a run folder keeps and has spent.

    Raises:
        InputError: Its files cannot be read.
    """
    from ragwitness.core.files import at_hand
    from ragwitness.core.run_files import SPENT
    from ragwitness.runner.budget import total_use
    from ragwitness.runner.response_store import StoredAnswers

    # The journal is opened and not only counted: a preview must fail on a journal that a start
    # would fail on.
    path = folder / "answers.jsonl"
    if at_hand(path) is None:
        return [f"run folder: {folder}, new"]
    with StoredAnswers(path) as answers:
        count = len(answers)
    spent = total_use(folder / SPENT)
    cost = budget.price(spent)
    money = "" if cost is None else f", cost {cost:.4g}"
    return [
        f"run folder: {folder}, {count:,} answers kept, not to be asked for again; spent so far:"
        f" {spent.queries:,} queries, {spent.tokens:,} tokens{money}"
    ]


def spent_so_far(limiter: RateLimiter) -> Callable[[], str]:
    """Return what words the spending for a progress bar."""

    def words() -> str:
        spent, budget = limiter.spent, limiter.budget
        phrases = [_of(f"{spent.queries:,}", budget.queries, " queries")]
        if budget.tokens is not None:
            phrases.append(_of(f"{spent.tokens:,}", budget.tokens, " tokens"))
        if limiter.cost is not None:
            phrases.append(_of(f"cost {limiter.cost:.4g}", budget.cost, ""))
        return ", ".join(phrases)

    return words


def _of(spent: str, cap: float | None, unit: str) -> str:
    return f"{spent}{unit}" if cap is None else f"{spent} of {cap:,}{unit}"
