"""``ragwitness canary plant``: send the traces and vote, or write them for doing so by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.common import console, print_lines, progress_bars
from ragwitness.cli.options import DryRun
from ragwitness.cli.steps import preview, spent_so_far
from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, PathRole
from ragwitness.report.formatting import visible
from ragwitness.runner.task_options import Caps, Reached

if TYPE_CHECKING:
    from ragwitness.canary.draw import Design
    from ragwitness.canary.plant import Planted
    from ragwitness.canary.traces import Trace
    from ragwitness.runner.budget import Budget


def plant(
    folder: Annotated[Path, PathRole.KEEPS, Arg()],
    service: Annotated[str | None, PathRole.ADDRESS, Arg(shown=False)] = None,
    beacon: str = "",
    answers: Annotated[Path | None, PathRole.READS] = None,
    votes: Annotated[Path | None, PathRole.READS] = None,
    days: float = 0.0,
    tries: int = 3,
    late: bool = False,
    permission: str = "",
    *,
    caps: Caps,
    dry_run: DryRun = False,
    reached: Reached,
) -> None:
    """Send the traces to a service and vote on its answers.

    Without a service it writes what to send, and with --answers the vote for each answer. With a
    service it sends every document with its question, waits for the answer and gives the vote, and
    keeps a journal: the same command goes on where it stopped. Answers that quote a trigger get no
    vote. Plant only where you may; see RESPONSIBLE_USE.md.

    Args:
        folder: The folder that ragwitness canary draw made.
        service: The service to plant in: the URL of a chat, http/FILE.toml or python:MODULE:OBJECT.
            Without it the files are written, to plant by hand.
        beacon: The public randomness that was promised, once it is known.
        answers: The answers of the service, JSONL {"id", "answer"}; the votes are then written.
        votes: A description (TOML) of how votes are given, for a chat.
        days: The days over which the traces are spread; 0 does not wait.
        tries: The most times that a trace is sent, or a vote given, in one start.
        late: Send the late slots too. Do so a refresh period (--refresh of the draw) before the
            probe.
        permission: By whose leave you plant, for a service of somebody else. It is kept with the
            evidence.
    """
    from ragwitness.canary.folder import read_plan, write_feedback, write_traces
    from ragwitness.canary.plant import planting_of, ready_at

    if service is None and (votes is not None or days):
        raise InputError("--votes and --days need a service to plant in.", "Name it, or leave out.")
    if service is not None and answers is not None:
        raise InputError("--answers is for planting by hand.", "Leave it out, or the service.")
    # Step 1: join the beacon; only now is it settled which trigger is planted.
    plan = read_plan(folder).joined(beacon)
    plan.draw()
    plan.check()
    # Step 2: the rows to send.
    traces = plan.traces()
    budget = caps.budget
    if dry_run:
        _preview(folder, traces, service, days, budget)
        return
    path = write_traces(folder, plan, traces)
    roles = Counter(trace.role.value for trace in traces)
    counted = ", ".join(f"{n:,} {role}" for role, n in sorted(roles.items()))
    screen = console()
    print_lines(screen, f"{len(traces):,} traces in {path}: {counted}")
    # Step 3: the service, by itself.
    if service is not None:
        planted = _sent(
            folder, service, plan.design, votes, (days, tries, late, permission), budget, reached
        )
        print_lines(screen, *report(planted))
        if late and (ready := ready_at(planting_of(folder, plan), plan)):
            print_lines(screen, f"probe from {ready:%Y-%m-%d %H:%M} UTC on")
        return
    # Or later, by hand and with the same command: the votes on what the service answered.
    if answers is None:
        return
    feedback = write_feedback(folder, plan, traces, answers)
    reasons = Counter(vote.reason for vote in feedback)
    missing = f", {len(traces) - len(feedback):,} missing" if len(feedback) < len(traces) else ""
    print_lines(
        screen, f"{len(feedback):,} answers{missing}, votes in {folder}/send/feedback.jsonl"
    )
    for reason, n in reasons.most_common():
        screen.print(f"  {n:,}: {reason}", markup=False)


def report(found: Planted) -> list[str]:
    """Return what was planted, a line each."""
    from ragwitness.canary.plant import cautions

    true, decoy = (found.votes.get(role, 0) for role in ("true", "decoy"))
    lines = [
        f"{found.answered:,} of {found.traces:,} traces answered; votes taken: {true:,} on traces"
        f" with the planted trigger, {decoy:,} on decoys",
        *(f"  {n:,}: {reason}" for reason, n in Counter(found.reasons).most_common()),
    ]
    if found.asked:
        share = found.obeyed / found.asked
        n, saying = found.clean
        clean = f"; unasked, {saying:,} of {n:,} clean ones do" if n else "; no trace was clean"
        lines.append(f"obedience: {share:.0%} of {found.asked:,} answers say the canary{clean}")
    lines += [f"warning: {caution}" for caution in cautions(found)]
    return [*lines, f"stopped: {found.stopped}"] if found.stopped else lines


def _sent(
    folder: Path,
    service: str,
    design: Design,
    votes: Path | None,
    how: tuple[float, int, bool, str],
    budget: Budget,
    reached: Reached,
) -> Planted:
    """Plant with progress bars; Ctrl-C leaves the journal, and the same command goes on."""
    import asyncio

    from ragwitness.canary.plant import PlantConfig, plant_canaries
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.targets.conversation import open_conversation

    config = PlantConfig(*how)
    screen = console()

    def shown(kind: str, answer: str) -> None:
        print_lines(screen, f"an answer that {kind}: {visible(answer, 160)}")

    with RateLimiter.of_run(folder / "send", budget, 1) as limiter:
        options = reached.transport(1, limiter.setback)

        async def work() -> Planted:
            opened = await open_conversation(
                service, options, form=design.shown, votes=str(votes) if votes else None
            )
            try:
                with progress_bars(screen, spent_so_far(limiter), "traces") as progress:
                    return await plant_canaries(
                        folder, opened, config,
                        limiter=limiter, progress=progress, shown=shown,
                    )  # fmt: skip
            finally:
                await opened.close()

        return asyncio.run(work())


def _preview(
    folder: Path, traces: list[Trace], service: str | None, days: float, budget: Budget
) -> None:
    """Say what would be sent, how long that takes and what it costs at most; send nothing."""
    from ragwitness.canary.plant import read_deliveries, service_of
    from ragwitness.runner.budget import Use, worst_case
    from ragwitness.targets.conversation import Turn, query_of

    done = read_deliveries(folder)
    unsent = [trace for trace in traces if trace.id not in done or done[trace.id].reply is None]
    use = sum((worst_case(query_of(Turn(o.id, o.document, o.query))) for o in unsent), Use())
    cost = budget.price(use)
    lines = [
        f"{len(unsent):,} of {len(traces):,} traces to send to {service or 'a service, by hand'}",
        f"time: about {days:g} days" if days else f"time: {len(unsent):,} answers, one at a time",
        f"tokens: {use.tokens:,} at most",
        f"cost: {cost:.2f} at most" if cost is not None else "cost: unknown without prices",
    ]
    if planted := service_of(folder).get("service"):
        lines.append(f"so far: planted in {planted}; another service is refused")
    preview(lines, folder, budget)
