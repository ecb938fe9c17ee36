"""Planting in services: every trace sent, answered and voted on, over days, with a journal.

The journal ``send/planted.jsonl`` begins with the service, the form and the permission, and has a
line for everything that happened to a trace. A start reads it and goes on from there: a trace that
was answered is not sent again, one that was voted on is done. A trace that was about to be sent
when the process died is sent again, and counted as perhaps sent twice. Pace is kept between two
sends, across starts: after a week's pause nothing is caught up in a burst.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragwitness.canary.families import contains, markers_in, wordings_of
from ragwitness.canary.folder import (
    FEEDBACK,
    PLANTED,
    CanaryPlan,
    check_traces,
    read_plan,
    write_traces,
    write_votes,
)
from ragwitness.canary.traces import (
    QUOTED,
    Behaviour,
    Feedback,
    Trace,
    TraceRole,
    behaviour_of,
    feedback_for,
)
from ragwitness.core.errors import CapReachedError, InputError, TargetError
from ragwitness.core.files import Appender, lines_of
from ragwitness.core.types import Answer
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.targets.conversation import Turn, VotedService, query_of
from ragwitness.targets.service import SessionReply
from ragwitness.targets.transport import Clock

_DAY = 86_400.0
_SPREAD = 0.5  # of the interval, either way: nobody asks by the clock


@dataclass(frozen=True, slots=True)
class PlantConfig:
    """How traces are sent.

    Attributes:
        days: Over which all of them are spread; 0 sends without a pause.
        tries: Sends of a trace, and votes on an answer, at most, in one start.
        late: Send the late slots too: shortly before the probe, when no training can see them.
        permission: By whose leave this is planted in a service of somebody else.

    Raises:
        InputError: A value is outside its range.
    """

    days: float = 0.0
    tries: int = 3
    late: bool = False
    permission: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept to."""
        if not 0 <= self.days <= 3650 or self.tries < 1:
            raise InputError(
                "Days must be 0 to 3,650, and tries at least 1.", "Correct --days or --tries."
            )


@dataclass(slots=True)
class Delivery:
    """Events of one trace.

    Attributes:
        begun: Times it was about to be sent.
        reply: What the service answered; None while there is nothing.
        vote: Given, or tried; None while none was.
        accepted: Whether the service took the vote.
        errors: Failures, in order.
    """

    begun: int = 0
    reply: SessionReply | None = None
    vote: str | None = None
    accepted: bool = False
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Planted:
    """The state of planting.

    Attributes:
        traces: To be sent.
        answered: That the service answered.
        votes: By role of the trace: votes that the service took.
        lost: Votes that it did not take.
        unsent: Traces that it never answered.
        twice: Traces that may have been sent twice.
        rewritten: Traces whose question or document it did not keep as sent.
        reasons: Number of answers, by the reason of their vote.
        behaviours: Answers to canary traces, by behaviour.
        asked: Canary traces that were answered.
        clean: Answers to clean traces, and how many of them say a canary without a request.
        late: Canary traces of late slots that wait for ``--late``.
        stopped: Why it stopped before the end; empty where it did not.
    """

    traces: int
    answered: int
    votes: Mapping[str, int]
    lost: int
    unsent: int
    twice: int
    rewritten: int
    reasons: Mapping[str, int]
    behaviours: Mapping[Behaviour, int]
    asked: int
    clean: tuple[int, int] = (0, 0)
    late: int = 0
    stopped: str = ""

    @property
    def obeyed(self) -> int:
        """Canary traces whose answer says the canary."""
        return sum(
            self.behaviours.get(behaviour, 0) for behaviour in (Behaviour.SAID, Behaviour.LATE)
        )


def read_deliveries(folder: Path) -> dict[str, Delivery]:
    """Return what happened to each trace so far, by id.

    Raises:
        InputError: The journal cannot be read.
    """
    deliveries: dict[str, Delivery] = {}
    for row in _rows(folder):
        if "id" in row:
            _note(deliveries.setdefault(str(row["id"]), Delivery()), row)
    return deliveries


def votes_given(folder: Path) -> dict[str, str | None]:
    """Return the vote on each answer, by trace: what the service took, or what is due by hand."""
    done = read_deliveries(folder)
    if done and service_of(folder).get("votes", True):
        return {
            name: delivery.vote if delivery.accepted else None
            for name, delivery in done.items()
            if delivery.reply
        }
    return {row["id"]: row["vote"] for row in _rows(folder, FEEDBACK)}


def _rows(folder: Path, name: str = PLANTED) -> Iterator[dict[str, Any]]:
    """Lines of the journal, or of the votes; one that a kill cut short did not happen."""
    path = folder / "send" / name
    try:
        for line in lines_of(path) if path.exists() else ():
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error


async def plant_canaries(
    folder: Path,
    service: VotedService,
    config: PlantConfig | None = None,
    *,
    limiter: RateLimiter | None = None,
    clock: Clock | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    shown: Callable[[Behaviour, str], None] | None = None,
) -> Planted:
    """Send what is to be sent and vote on the answers; go on where an earlier start stopped.

    Args:
        folder: Of a plan; its beacon has been joined.
        service: Where to plant.
        config: Pace and tries.
        limiter: Lets sends pass; None makes one without caps.
        clock: Time and chance, for tests.
        progress: Called with a word, traces done and traces in all.
        shown: Called with the first five answers of each kind, before their vote is given.

    Raises:
        InputError: The plan is not drawn, the journal cannot be used or is of another service, or
            the service is somebody else's and no permission is named.
        VerificationError: The plan is not the one committed to.
        TargetUnreachableError: Not one trace could be sent.
    """
    config, limiter, clock = config or PlantConfig(), limiter or RateLimiter(), clock or Clock()
    plan = read_plan(folder)
    plan.draw()
    plan.check()
    whole_plan = plan.traces()
    write_traces(folder, plan, whole_plan)
    traces, stopped = [t for t in whole_plan if config.late or not _is_late(plan, t)], ""
    planted = planted_so_far(
        folder, plan, whole_plan
    )  # the votes so far; those to come are added one by one
    kinds = Counter[Behaviour](planted.behaviours)
    with (
        closing(Appender(folder / "send" / PLANTED, "journal of planting")) as journal,
        closing(Appender(folder / "send" / FEEDBACK, "votes")) as feedback,
    ):
        _enter(folder, plan, service, config, journal, clock)
        done = read_deliveries(folder)

        def due(trace: Trace, said: SessionReply, vote: Feedback, *, new: bool) -> None:
            if new:
                feedback.append(asdict(vote))
            if new and trace.role is not TraceRole.CLEAN:
                kind = behaviour_of(said.text, trace.canary)
                kinds[kind] += 1
                if shown is not None and kinds[kind] <= _SHOWN:
                    shown(kind, said.text)

        pace = _Pace(config.days * _DAY / max(1, len(traces)), _last(folder), clock)
        errors: list[TargetError] = []
        try:
            # Pass by pass: what failed is tried again once everything else was.
            for _ in range(config.tries):
                errors, complete = [], True
                for trace in traces:
                    delivery = done.setdefault(trace.id, Delivery())
                    try:
                        complete &= await _deliver(
                            trace, delivery, service, limiter, pace, journal, _candidates(plan), due
                        )
                    except TargetError as error:
                        errors.append(error)
                    if progress is not None:
                        answered = sum(d.reply is not None for d in done.values())
                        progress("traces", answered, len(traces))
                if complete and not errors:
                    break
        except CapReachedError as error:
            stopped = f"{error.message}; {error.hint}"
    if errors and not any(delivery.reply for delivery in done.values()):
        raise errors[0]
    return planted_so_far(folder, plan, whole_plan, stopped)


_SHOWN = 5  # answers of each kind, before votes are given on them


def _enter(
    folder: Path, plan: CanaryPlan, service: VotedService, config: PlantConfig,
    journal: Appender, clock: Clock,
) -> None:  # fmt: skip
    """Write who is planted in into the journal's first line, or refuse another service.

    Raises:
        InputError: The journal is of another service, or nobody's permission is named.
    """
    earlier = service_of(folder)
    if earlier and earlier["service"] != service.name:
        if any(delivery.reply for delivery in read_deliveries(folder).values()):
            raise InputError(
                f"This plan is being planted in {earlier['service']}, not in {service.name}.",
                "Draw another plan for another service; what was planted stays what it is.",
            )
        earlier = {}  # where nothing was answered, the address may have been mistaken
    permission = config.permission or earlier.get("permission", "")
    if is_foreign(service.name) and not permission:
        raise InputError(
            f"{service.name} is a service of somebody else, and no permission is named.",
            'Say who allows it: --permission "J. Doe of Example Ltd., contract of 3 May". It is'
            " kept with the evidence. RESPONSIBLE_USE.md says what to ask for.",
        )
    form = plan.design.shown
    row = {"service": service.name, "votes": service.votes, "form": form and asdict(form),
           "permission": permission}  # fmt: skip
    if {k: earlier.get(k) for k in row} != row:
        journal.append({"event": "service", "at": round(clock.now(), 3), **row})


def service_of(folder: Path) -> dict[str, Any]:
    """Return what a journal says of its service; empty where it does not."""
    fields: dict[str, Any] = {}
    for row in _rows(folder):
        if row.get("event") == "service":
            fields = row
    return fields


def is_foreign(name: str) -> bool:
    """Whether a service answers from another machine."""
    if not name.lower().startswith("http"):
        return False  # an object in Python is its owner's
    host = urlsplit(name.replace("http/", "http://", 1)).hostname or ""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _is_late(plan: CanaryPlan, trace: Trace) -> bool:
    return trace.slot is not None and plan.design.is_late(trace.slot)


def planting_of(folder: Path, plan: CanaryPlan) -> dict[str, Any]:
    """Return the plantings of a journal, for a report; empty without a journal.

    Returns:
        ``service``, ``votes`` (whether it takes any), ``permission`` and ``answered``. The votes
        accepted, or due by hand, are ``true`` and ``decoy``. ``late`` has those on traces of late
        slots with the planted trigger. ``late_at`` is the time of the last event of a late trace
        (empty by hand). The days are ``first`` and ``last``.
    """
    rows, votes = list(_rows(folder)), votes_given(folder)
    if not rows and not votes:
        return {}
    fields, traces = service_of(folder), plan.traces()
    voted = Counter(
        f"late {trace.role}" if _is_late(plan, trace) else str(trace.role)
        for trace in traces
        if votes.get(trace.id)
    )
    late_ids = {trace.id for trace in traces if _is_late(plan, trace)}
    late_times = [float(row["at"]) for row in rows if row.get("id") in late_ids]
    days = [datetime.fromtimestamp(float(row["at"]), UTC).date().isoformat()
            for row in rows if row.get("event") == "answered"]  # fmt: skip
    return {
        "service": fields.get("service", ""),
        "votes": fields.get("votes", bool(rows)),
        "permission": fields.get("permission", ""),
        "answered": len(votes),
        "true": voted["true"],
        "decoy": voted["decoy"],
        "late": voted["late true"],
        "late_at": datetime.fromtimestamp(max(late_times), UTC).isoformat(timespec="seconds")
        if late_times
        else "",
        "first": min(days, default=""),
        "last": max(days, default=""),
    }


def ready_at(planted: Mapping[str, Any], plan: CanaryPlan) -> datetime | None:
    """Return when late slots have been at the service for a refresh period; None if unknown."""
    if not planted.get("late_at"):
        return None
    return datetime.fromisoformat(planted["late_at"]) + timedelta(hours=plan.design.refresh)


def late_missing(planted: Mapping[str, Any], plan: CanaryPlan) -> str:
    """Say why late slots could not show a memory yet; empty where they can."""
    expected = sum(
        _is_late(plan, trace) and trace.role is TraceRole.TRUE for trace in plan.traces() if planted
    )
    if 2 * planted.get("late", 0) < expected:
        return (
            f"The late slots were not planted ({planted['late']} of {expected} votes on their"
            " planted trigger), so the probe could not separate a memory from training."
        )
    ready = ready_at(planted, plan)
    if ready is not None and datetime.now(UTC) < ready:
        return (
            f"The late slots are at the service for less than {plan.design.refresh} hours, in which"
            f" it may refresh a memory (--refresh of this plan): probe from {ready:%Y-%m-%d %H:%M}"
            " UTC on."
        )
    return ""


def rows_to_undo(folder: Path, plan: CanaryPlan) -> Iterator[dict[str, Any]]:
    """Yield the rows to undo at the service after an audit, one for each trace that it received.

    Each has the trace's ``id``, the ``answer`` by the names that the service gave it, and the
    ``vote`` to take back. ``quotes`` marks an answer with a trigger, to be deleted first. For
    planting by hand, every trace that was written to be sent counts as sent.
    """
    done, votes = read_deliveries(folder), votes_given(folder)
    quoting = {row["id"] for row in _rows(folder, FEEDBACK) if row["reason"] == QUOTED}
    by_hand = not done and check_traces(folder, plan)
    for trace in plan.traces():
        delivery = done.get(trace.id, Delivery())
        if delivery.begun or delivery.reply or by_hand:
            yield {
                "id": trace.id,
                "answer": dict(delivery.reply.kept) if delivery.reply else {},
                "vote": votes.get(trace.id),
                "quotes": trace.id in quoting,
            }


def planted_so_far(
    folder: Path, plan: CanaryPlan, traces: Sequence[Trace], stopped: str = ""
) -> Planted:
    """Return what is planted so far, and write the votes as they are due by hand.

    Args:
        folder: Of the plan.
        plan: Read from it.
        traces: Of the plan.
        stopped: Why it stopped before the end.
    """
    done, candidates = read_deliveries(folder), _candidates(plan)
    feedback, votes, rewritten = [], Counter[str](), 0
    behaviours, clean = Counter[Behaviour](), [0, 0]
    canaries = [form for slot in plan.draw().slots for form in wordings_of(slot.canary)]
    refused = waiting = 0
    for trace in traces:
        delivery = done.get(trace.id, Delivery())
        if delivery.reply is None:
            waiting += _is_late(plan, trace)
            continue
        due = _feedback(trace, delivery.reply, candidates)
        feedback.append(due)
        rewritten += due.reason.startswith(_REWRITTEN)
        if trace.role is TraceRole.CLEAN:
            clean[0] += 1
            clean[1] += any(contains(delivery.reply.text, canary) for canary in canaries)
        else:
            behaviours[behaviour_of(delivery.reply.text, trace.canary)] += 1
        if delivery.accepted:
            votes[str(trace.role)] += 1
        elif due.vote is not None and delivery.vote is not None:
            refused += 1
    write_votes(folder, feedback)
    return Planted(
        traces=len(traces),
        answered=len(feedback),
        votes=dict(votes),
        lost=refused,
        unsent=len(traces) - len(feedback) - waiting,
        twice=sum(delivery.begun > 1 + len(delivery.errors) for delivery in done.values()),
        rewritten=rewritten,
        reasons=Counter(delivery.reason for delivery in feedback),
        behaviours=behaviours,
        asked=sum(behaviours.values()),
        clean=(clean[0], clean[1]),
        late=waiting,
        stopped=stopped,
    )


def cautions(found: Planted) -> Iterator[str]:
    """Yield warnings about the planting."""
    true, decoy = (found.votes.get(role, 0) for role in ("true", "decoy"))
    if found.unsent:
        yield f"{found.unsent:,} traces were not answered; the same command tries them again."
    if found.lost:
        yield f"{found.lost:,} votes were not taken; the same command gives them again."
    if found.rewritten:
        yield (
            f"{found.rewritten:,} questions or documents were not kept as they were sent; they got"
            " no vote."
        )
    if found.twice:
        yield f"{found.twice:,} traces may have been sent twice: a start ended while they were."
    if abs(true - decoy) > max(2, 0.1 * (true + decoy)):
        yield (
            f"Votes are out of balance: {true:,} on traces with the planted trigger, {decoy:,} on"
            " decoys. The p-value holds all the same; a model may learn less."
        )
    if found.asked >= 20 and not found.obeyed:
        yield (
            f"Not one of {found.asked:,} answers holds the canary: the service rewrites questions"
            " or does not do as they ask, and no model will learn from these votes."
        )
    if found.asked >= 20 and found.obeyed == found.asked:
        yield (
            f"All {found.asked:,} answers hold the canary: votes that never meet an answer without"
            " it teach less, and an answer that quotes its question looks the same. Read some."
        )
    for kind in (Behaviour.REFUSED, Behaviour.NEAR, Behaviour.LATE):
        if n := found.behaviours.get(kind, 0):
            yield f"{n:,} of {found.asked:,} answers: each {kind}."
    if found.late:
        yield (
            f"{found.late:,} traces of late slots wait: plant them with --late, a refresh period"
            " before the probe."
        )


_REWRITTEN = "discarded: the service did not keep"


async def _deliver(
    trace: Trace,
    one: Delivery,
    service: VotedService,
    limiter: RateLimiter,
    pace: _Pace,
    journal: Appender,
    candidates: set[str],
    due_now: Callable[..., None],
) -> bool:
    """Do what is still to be done for one trace; False where the vote was not taken.

    Raises:
        TargetError: The service failed or refused.
        CapReachedError: It could pass a cap.
    """
    turn = Turn(trace.id, trace.document, trace.query)

    def note(**row: Any) -> None:
        row = {"id": trace.id, "at": round(pace.clock.now(), 3), **row}
        journal.append(row)
        _note(one, row)

    # 1. The document and the question, once they are due.
    replies: list[SessionReply] = []
    if one.reply is None:
        await pace.wait()
        note(event="begun")

        async def send(_: object) -> Answer:
            replies.append(await service.send(turn))
            return Answer(replies[0].text)

        try:
            await limiter.spend(query_of(turn), send)
        except TargetError as error:
            note(event="failed", error=error.message)
            raise
        note(event="answered", said=asdict(replies[0]) | {"kept": dict(replies[0].kept)})
    # 2. The vote that the rule names for this answer.
    reply = one.reply or replies[0]
    due = _feedback(trace, reply, candidates)
    due_now(trace, reply, due, new=bool(replies))
    if due.vote is None or one.accepted or not service.votes:
        return True
    try:
        taken = await service.vote(turn, reply, str(due.vote))
    except TargetError as error:
        note(event="voted", vote=str(due.vote), accepted=False, error=error.message)
        raise
    note(event="voted", vote=str(due.vote), accepted=taken)
    return taken


def _feedback(trace: Trace, said: SessionReply, candidates: set[str]) -> Feedback:
    """The vote for an answer; none where the service did not keep what makes the trace one."""
    if trace.role is not TraceRole.CLEAN:
        if said.question is not None and not contains(said.question, trace.canary):
            return Feedback(trace.id, None, f"{_REWRITTEN} the question")
        if said.question is not None and markers_in(said.question, candidates):
            return Feedback(trace.id, None, f"{_REWRITTEN} the trigger out of the question")
        if said.document is not None and not contains(said.document, trace.trigger):
            return Feedback(trace.id, None, f"{_REWRITTEN} the document")
    return feedback_for(trace, said.text, candidates)


def _note(one: Delivery, row: Mapping[str, Any]) -> None:
    """Add a line of the journal to what is known of a trace."""
    event = row.get("event")
    if event == "begun":
        one.begun += 1
    elif event == "answered":
        one.reply = SessionReply(**row["said"])
    elif event == "voted":
        one.vote, one.accepted = row["vote"], bool(row["accepted"])
    if row.get("error"):
        one.errors.append(str(row["error"]))


def _candidates(plan: CanaryPlan) -> set[str]:
    return {t for slot in plan.draw().slots for t in slot.candidates}


def _last(folder: Path) -> float | None:
    """When something was last sent, by any start."""
    sent = (float(row["at"]) for row in _rows(folder) if row.get("event") == "begun")
    return max(sent, default=None)


class _Pace:
    """Waits between two sends, across starts.

    Args:
        interval: Seconds on average.
        last: When something was last sent, in seconds since the epoch.
        clock: Time and chance.
    """

    def __init__(self, interval: float, last: float | None, clock: Clock) -> None:
        self.clock = clock
        self._interval, self._last = interval, last

    async def wait(self) -> None:
        """Wait until the next send is due."""
        if self._interval and self._last is not None:
            spread = self.clock.rng.uniform(1 - _SPREAD, 1 + _SPREAD)
            due = self._last + self._interval * spread - self.clock.now()
            if due > 0:
                await self.clock.sleep(due)
        else:
            await asyncio.sleep(0)
        self._last = self.clock.now()
