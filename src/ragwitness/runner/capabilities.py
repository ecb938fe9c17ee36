"""Measures the capabilities of a target by a few questions, whatever it claims."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ragwitness.core.errors import CapabilityError, TargetError, TargetResponseError
from ragwitness.core.files import replace_file
from ragwitness.core.run_files import TARGET
from ragwitness.core.types import SILENT, Answer, Audit, Capability, Query, Target, TokenLogprob
from ragwitness.runner.worker import Spender

_QUESTION = "Say hello."
# For a target that answers the first with an empty text.
_SECOND_QUESTION = "Complete the sentence: The sky is"
_TEXT = "The quick brown fox jumps over the lazy dog."
_MAX_TOKENS = 8
_THOUGHT_TOKENS = 1024  # room for thoughts, where these used up the first limit

_LOGPROBS = "Use a model or server that returns log-probabilities"
_REMEDY = {
    Capability.TEXT: "See that the service itself goes on to an answer in words",
    Capability.CONTEXTS: "Say where its replies have the passages it retrieved (docs/targets.md),"
    " or take another method",
}

_log = logging.getLogger(__name__)


def remarks_of(target: object) -> tuple[str, ...]:
    """Return the deviations that a target has learned of its endpoint, a line each."""
    return getattr(target, "remarks", ())


@runtime_checkable
class Echoes(Protocol):
    """A target that can score a text."""

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        """Score a text's own tokens."""


@runtime_checkable
class Continues(Protocol):
    """A target that can continue a text as it is, without a conversation."""

    async def go_on(self, query: Query) -> Answer:
        """Continue the query's prompt."""


@runtime_checkable
class Recorded(Protocol):
    """A target that only repeats: it cannot answer a new question."""

    def recorded_answers(self) -> Sequence[Answer]:
        """Some of the answers it can give; at least one."""


@dataclass(frozen=True, slots=True)
class CapabilityReport:
    """The measured capabilities of a target.

    Attributes:
        target: Its name.
        capabilities: Those that were measured.
        logprobs: Whether generated tokens come with log-probabilities.
        alternatives: Most alternatives that came with one token.
        dropped_logprobs: It answered, and silently left the log-probabilities out.
        echo: Whether it scores prompts; None where it was not asked.
        latency: Seconds until the answer.
        requests: Number of questions sent.
        text: Its answer.
        notes: Further remarks, a line each.
        silence: Why the answer has no text; empty where it has.
    """

    target: str
    capabilities: frozenset[Capability]
    logprobs: bool
    alternatives: int
    dropped_logprobs: bool
    echo: bool | None
    latency: float
    requests: int
    text: str
    notes: tuple[str, ...] = ()
    silence: str = ""


async def probe_capabilities(
    target: Target, *, timer: Callable[[], float] = time.perf_counter
) -> CapabilityReport:
    """Ask a target a few harmless questions and report its capabilities.

    Args:
        target: The system under audit.
        timer: Seconds from any origin.

    Raises:
        TargetError: It does not even answer with text.
    """
    if isinstance(target, Recorded):
        answers = target.recorded_answers()
        note = ("Recorded answers: nothing was asked.",)
        capabilities, usable, alternatives = _measured_in(answers)
        rest = (usable, alternatives, False, None, 0.0, 0, answers[0].text, note)
        return CapabilityReport(target.name, capabilities, *rest)
    notes: list[str] = []
    # 1. Text, and as many alternatives as possible.
    wish, answer, seconds, requests = await _ask_downwards(target, notes, timer)
    if not answer.text.strip() and not answer.tokens:
        # An empty answer shows nothing; another question may get one with text.
        requests += 1
        limit = _MAX_TOKENS + _THOUGHT_TOKENS * (answer.finish_reason == "length")
        started = timer()
        try:
            answer = await target.ask(Query(_SECOND_QUESTION, limit, top_logprobs=wish))
            seconds = timer() - started
        except (CapabilityError, TargetError) as error:
            notes.append(f"The first answer was empty, and asked otherwise: {error.message}")
    capabilities, usable, alternatives = _measured_in([answer])
    # 2. The answer counts, not the promise. Without text, no field was dropped.
    dropped = bool(wish and answer.text and not usable)
    silence = "" if answer.text else SILENT.get(answer.finish_reason, "it said nothing")
    if dropped:
        notes.append("No log-probabilities came back.")
    elif answer.tokens and not alternatives:
        notes.append("Only the chosen token's log-probability comes back, no alternatives.")
    elif answer.tokens and alternatives < wish:
        notes.append(f"{wish} alternatives were asked for, {alternatives} came.")
    if silence:
        notes.append(f"Its answers have no text: {silence}.")
        # A model may have nothing to say; one that calls tools, or is filtered, never gives text.
        if answer.finish_reason in ("tool_calls", "content_filter"):
            capabilities -= {Capability.TEXT}
    # 3. Does it score a prompt?
    echo = await _try_echo(target, notes)
    return CapabilityReport(
        target=target.name,
        capabilities=capabilities | ({Capability.PROMPT_LOGPROBS} if echo else set()),
        logprobs=usable,
        alternatives=alternatives,
        dropped_logprobs=dropped,
        echo=echo,
        latency=seconds,
        requests=requests + (echo is not None),
        text=answer.text,
        notes=(*notes, *remarks_of(target)),
        silence=silence,
    )


def _measured_in(answers: Sequence[Answer]) -> tuple[frozenset[Capability], bool, int]:
    """Capabilities that answers show, whether they have log-probabilities, most alternatives."""
    tokens = [token for answer in answers for token in answer.tokens or ()]
    usable = any(not math.isnan(token.logprob) for token in tokens)
    alternatives = max((len(token.top) for token in tokens), default=0)
    capabilities = {Capability.TEXT}
    if usable and alternatives:
        capabilities.add(Capability.TOP_LOGPROBS)
    if any(answer.contexts is not None for answer in answers):
        capabilities.add(Capability.CONTEXTS)
    return frozenset(capabilities), usable, alternatives


async def _ask_downwards(
    target: Target, notes: list[str], timer: Callable[[], float]
) -> tuple[int, Answer, float, int]:
    """Ask for 20 alternatives, then 5, then none, until the target answers.

    A target that does not claim alternatives is asked for none.
    """
    wishes = (20, 5, 0) if Capability.TOP_LOGPROBS in target.capabilities else (0,)
    for requests, top in enumerate(wishes, start=1):
        started = timer()
        try:
            answer = await target.ask(Query(_QUESTION, _MAX_TOKENS, top_logprobs=top))
        except (CapabilityError, TargetResponseError) as error:
            if not top:
                raise
            notes.append(f"Asked for {top} alternatives: {error.message}")
            _log.info("%s refuses %d alternatives", target.name, top)
            continue
        return top, answer, timer() - started, requests
    raise AssertionError("the last question is asked without alternatives")


async def _try_echo(target: Target, notes: list[str]) -> bool | None:
    if not isinstance(target, Echoes):
        return None
    try:
        tokens = await target.echo(_TEXT)
    except (CapabilityError, TargetError) as error:
        notes.append(f"It does not score prompts, as few services do: {error.message}")
        return False
    return any(not math.isnan(token.logprob) for token in tokens[1:])


class _Limited:
    """A target whose queries pass a rate limiter; ``echo`` is there where the target has it."""

    echo: Any

    def __init__(self, target: Target, limiter: Spender) -> None:
        self._target, self._limiter = target, limiter
        self.name = target.name
        self.capabilities = target.capabilities
        if isinstance(target, Echoes):
            scorer = target

            async def echo(text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
                query = Query(text, max_tokens=1, top_logprobs=top)
                return await limiter.spend(query, lambda _: scorer.echo(text, top))

            self.echo = echo

    @property
    def remarks(self) -> tuple[str, ...]:
        return remarks_of(self._target)

    async def ask(self, query: Query) -> Answer:
        return await self._limiter.spend(query, self._target.ask)

    async def close(self) -> None:
        """The caller that opened the target closes it."""


async def require_capabilities(
    target: Target, audit: Audit, limiter: Spender | None = None, run: Path | None = None
) -> CapabilityReport:
    """Measure the target, once per run folder, and refuse an audit it cannot serve.

    Args:
        target: The system under audit.
        audit: Says what it requires.
        limiter: Lets the questions pass; None does not count them.
        run: Folder that keeps the report, so that resuming asks nothing again.

    Raises:
        CapabilityError: A capability that the audit requires is missing.
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    report = await measured(target, limiter, run, audit.requires)
    missing = sorted(audit.requires - report.capabilities)
    if missing:
        dropped = report.dropped_logprobs and Capability.TOP_LOGPROBS in missing
        because = "; it leaves them out without a word" if dropped else ""
        if Capability.TEXT in missing:
            because = f": {report.silence}"
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give{because}.",
            f"{_REMEDY.get(missing[0], _LOGPROBS)}; 'ragwitness doctor TARGET' shows what"
            " this one gives.",
        )
    return report


async def measured(
    target: Target,
    limiter: Spender | None = None,
    run: Path | None = None,
    needed: frozenset[Capability] = frozenset(),
) -> CapabilityReport:
    """Measure the target, unless an earlier start in the folder measured what is needed.

    Args:
        target: The system under audit.
        limiter: Lets the questions pass; None does not count them.
        run: Folder that keeps the report; None keeps nothing.
        needed: Capabilities without which a kept report is ignored: the target may have changed.

    Raises:
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    report = _stored_report(run) if run else None
    if report is None or report.target != target.name or not needed <= report.capabilities:
        counted = limiter is not None and not isinstance(target, Recorded)
        report = await probe_capabilities(_Limited(target, limiter) if counted else target)  # type: ignore[arg-type]
        if run is not None:
            row = asdict(report) | {"capabilities": sorted(report.capabilities)}
            replace_file(run / TARGET, json.dumps(row) + "\n", hint="Use another --run folder.")
    return report


def _stored_report(run: Path) -> CapabilityReport | None:
    """Return the report of an earlier start in a folder; None where there is none to be read."""
    try:
        stored = json.loads((run / TARGET).read_bytes())
        # 0.2.0 stored further fields.
        row = {f.name: stored[f.name] for f in fields(CapabilityReport) if f.name in stored}
        capabilities = frozenset(map(Capability, row.pop("capabilities")))
        row |= {"capabilities": capabilities, "notes": tuple(row["notes"])}
        return CapabilityReport(**row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
