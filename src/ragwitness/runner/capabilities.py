"""What a target can do, measured before anything else is spent on it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol, runtime_checkable

from ragwitness.core.errors import CapabilityError, TargetError, TargetResponseError
from ragwitness.core.files import replace_file
from ragwitness.core.run_files import TARGET
from ragwitness.core.types import SILENT, Answer, Audit, Capability, Query, Target, TokenLogprob
from ragwitness.runner.worker import Spender


class _Governed:
    """A target that is asked through a rate limiter."""

    def __init__(self, target: Target, limiter: Spender) -> None:
        self._target = target
        self._governor = limiter
        self.name = target.name
        self.capabilities = target.capabilities

    @property
    def remarks(self) -> tuple[str, ...]:
        return remarks_of(self._target)

    async def ask(self, query: Query) -> Answer:
        return await self._governor.spend(query, self._target.ask)

    async def close(self) -> None:
        """The target is closed by whoever opened it."""


class _GovernedEcho(_Governed):
    """Another that scores prompts."""

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        target = self._target
        if not isinstance(target, Echoes):
            raise TypeError(target)
        query = Query(text, max_tokens=1, top_logprobs=top)
        return await self._governor.spend(query, lambda _: target.echo(text, top))


_LOGPROBS = "Use a model or server that returns log-probabilities"
_REMEDY = {
    Capability.TEXT: "See that the service itself goes on to an answer in words",
    Capability.CONTEXTS: "Say where its replies have the passages it retrieved (docs/targets.md),"
    " or take another method",
}


async def require_capabilities(
    target: Target, audit: Audit, limiter: Spender | None = None, run: Path | None = None
) -> CapabilityReport:
    """Measure the target, once per run folder, and refuse an audit it cannot serve.

    Args:
        target: The system under audit.
        audit: Says what it requires.
        limiter: Lets the questions pass; None does not count them.
        run: Folder in which what was seen is kept, so that resuming asks nothing again.

    Raises:
        CapabilityError: Something the audit requires is missing.
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    found = await measured(target, limiter, run, audit.requires)
    missing = sorted(audit.requires - found.capabilities)
    if missing:
        dropped = found.dropped_logprobs and Capability.TOP_LOGPROBS in missing
        because = "; it leaves them out without a word" if dropped else ""
        if Capability.TEXT in missing:
            because = f": {found.silence}"
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give{because}.",
            f"{_REMEDY.get(missing[0], _LOGPROBS)}; 'ragwitness doctor TARGET' shows what"
            " this one gives.",
        )
    _keep(run, found)
    return found


async def measured(
    target: Target,
    limiter: Spender | None = None,
    run: Path | None = None,
    needed: frozenset[Capability] = frozenset(),
) -> CapabilityReport:
    """Measure the target, unless an earlier start in the folder saw what is needed.

    Args:
        target: The system under audit.
        limiter: Lets the questions pass.
        run: Folder in which an earlier start may have kept what was seen.
        needed: Without it what was kept is not believed: the target may have changed.

    Raises:
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    found = seen_before(run) if run else None
    if found is None or found.target != target.name or not needed <= found.capabilities:
        found = await probe_capabilities(_governed(target, limiter))
    return found


async def measured_once(target: Target, limiter: Spender, run: Path | None) -> CapabilityReport:
    """Measure the target once per run folder: as :func:`measured`, and keep what was seen."""
    found = await measured(target, limiter, run)
    _keep(run, found)
    return found


def _governed(target: Target, limiter: Spender | None) -> Target:
    if limiter is None or isinstance(target, Recorded):
        return target
    kind = _GovernedEcho if isinstance(target, Echoes) else _Governed
    return kind(target, limiter)


def seen_before(run: Path) -> CapabilityReport | None:
    """Return what an earlier start in a folder saw of its target; None where it saw nothing."""
    try:
        stored = json.loads((run / TARGET).read_bytes())
        # Earlier versions kept more.
        row = {one.name: stored[one.name] for one in fields(CapabilityReport) if one.name in stored}
        seen = frozenset(map(Capability, row.pop("capabilities")))
        return CapabilityReport(**row | {"capabilities": seen, "notes": tuple(row["notes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep(run: Path | None, found: CapabilityReport) -> None:
    if run is None:
        return
    row = asdict(found) | {"capabilities": sorted(found.capabilities)}
    replace_file(run / TARGET, json.dumps(row) + "\n", hint="Choose another folder with --run.")


# Ways to ask a target how probable a given continuation is, and which of them it serves.
#
# A server that scores prompts need not score them right: one in wide use returns, for each token,
# its log-probability *after* that token (abetlen/llama-cpp-python, issue 1983). So where a target
# also continues texts, what it echoes of a token it wrote is compared with what it wrote it by.


# Finds out what a target can do by asking it, whatever it claims.


_QUESTION = "Say hello."
# For a target that has nothing to say to the first.
_OTHER_QUESTION = "Complete the sentence: The sky is"
_TEXT = "The quick brown fox jumps over the lazy dog."
_MAX_TOKENS = 8
_THOUGHT_ROOM = 1024  # tokens, where these were spent before anything was said


def remarks_of(target: object) -> tuple[str, ...]:
    """Return what a target has learned of its own dialect, a line each."""
    return getattr(target, "remarks", ())


@runtime_checkable
class Echoes(Protocol):
    """A target that can be asked to score a text."""

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        """Score a text's own tokens."""


@runtime_checkable
class Continues(Protocol):
    """A target that can be asked to continue a text as it is, without a conversation."""

    async def go_on(self, query: Query) -> Answer:
        """Continue the query's prompt."""


@runtime_checkable
class Recorded(Protocol):
    """A target that only repeats: it cannot be asked a question of ours."""

    def recorded_answers(self) -> Sequence[Answer]:
        """Some of the answers it can give; at least one."""


@dataclass(frozen=True, slots=True)
class CapabilityReport:
    """What a target was seen to do.

    Attributes:
        target: Its name.
        capabilities: Those that were seen.
        logprobs: Whether generated tokens come with log-probabilities.
        alternatives: Most alternatives that came with one token.
        dropped_logprobs: It answered, and left the log-probabilities out without a word.
        echo: Whether it scores prompts; None where it was not asked.
        latency: Seconds until the answer.
        requests: Questions asked of it.
        text: What it answered.
        notes: What else there is to know, a line each.
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
    """Ask a target a few harmless questions and report what came back.

    Args:
        target: The system under audit.
        timer: Seconds from any origin.

    Raises:
        TargetError: It does not even answer with text.
    """
    if isinstance(target, Recorded):
        return _recorded(target.name, target.recorded_answers())
    notes: list[str] = []
    # 1. Text, and as many alternatives as it gives.
    asked, answer, took, requests = await _ask_downwards(target, notes, timer)
    if not answer.text.strip() and not answer.tokens:
        requests += 1
        room = _MAX_TOKENS + _THOUGHT_ROOM * (answer.finish_reason == "length")
        asking = Query(_OTHER_QUESTION, room, top_logprobs=asked)
        answer, took = await _ask_otherwise(target, asking, notes, timer) or (answer, took)
    tokens = answer.tokens or ()
    usable = any(not math.isnan(token.logprob) for token in tokens)
    alternatives = max((len(token.top) for token in tokens), default=0)
    # 2. What came back, whatever was promised.
    # Nothing generated, nothing to score: that does not prove that a field was dropped.
    dropped = bool(asked and answer.text and not usable)
    silence = "" if answer.text else SILENT.get(answer.finish_reason, "it said nothing")
    notes += _remarks(answer, asked, alternatives, dropped)
    notes += [f"Its answers have no text: {silence}."] if silence else []
    # 3. Does it score a prompt?
    echo = await _try_echo(target, notes)
    requests += echo is not None
    # A model may have nothing to say; one that calls tools, or is filtered, never says anything.
    mute = silence and answer.finish_reason in ("tool_calls", "content_filter")
    seen: set[Capability] = set() if mute else {Capability.TEXT}
    if usable and alternatives:
        seen.add(Capability.TOP_LOGPROBS)
    if echo:
        seen.add(Capability.PROMPT_LOGPROBS)
    if answer.contexts is not None:
        seen.add(Capability.CONTEXTS)
    return CapabilityReport(
        target=target.name,
        capabilities=frozenset(seen),
        logprobs=usable,
        alternatives=alternatives,
        dropped_logprobs=dropped,
        echo=echo,
        latency=took,
        requests=requests,
        text=answer.text,
        notes=(*notes, *remarks_of(target)),
        silence=silence,
    )


def _recorded(name: str, answers: Sequence[Answer]) -> CapabilityReport:
    """What is in recorded answers; nothing is asked."""
    tokens = [token for answer in answers for token in answer.tokens or ()]
    usable = any(not math.isnan(token.logprob) for token in tokens)
    alternatives = max((len(token.top) for token in tokens), default=0)
    seen = {Capability.TEXT}
    if usable and alternatives:
        seen.add(Capability.TOP_LOGPROBS)
    if any(answer.contexts is not None for answer in answers):
        seen.add(Capability.CONTEXTS)
    return CapabilityReport(
        target=name,
        capabilities=frozenset(seen),
        logprobs=usable,
        alternatives=alternatives,
        dropped_logprobs=False,
        echo=None,
        latency=0.0,
        requests=0,
        text=answers[0].text,
        notes=("Recorded answers: nothing was asked.",),
    )


async def _ask_downwards(
    target: Target, notes: list[str], timer: Callable[[], float]
) -> tuple[int, Answer, float, int]:
    """Ask for 20 alternatives, then 5, then none, until the target answers.

    One that has no place for such a wish is not asked for any.
    """
    wishes = (20, 5) if Capability.TOP_LOGPROBS in target.capabilities else ()
    for requests, top in enumerate(wishes, start=1):
        started = timer()
        try:
            answer = await target.ask(Query(_QUESTION, _MAX_TOKENS, top_logprobs=top))
        except (CapabilityError, TargetResponseError) as error:
            notes.append(f"Asked for {top} alternatives: {error.message}")
            continue
        return top, answer, timer() - started, requests
    started = timer()
    answer = await target.ask(Query(_QUESTION, _MAX_TOKENS))
    return 0, answer, timer() - started, len(wishes) + 1


async def _ask_otherwise(
    target: Target, query: Query, notes: list[str], timer: Callable[[], float]
) -> tuple[Answer, float] | None:
    """Ask another question: an empty answer shows nothing of what the target can do."""
    started = timer()
    try:
        answer = await target.ask(query)
    except (CapabilityError, TargetError) as error:
        notes.append(f"The first answer was empty, and asked otherwise: {error.message}")
        return None
    return answer, timer() - started


def _remarks(answer: Answer, asked: int, alternatives: int, dropped: bool) -> list[str]:
    remarks = []
    if dropped:
        remarks.append("No log-probabilities came back.")
    elif answer.tokens and not alternatives:
        remarks.append("Only the chosen token's log-probability comes back, no alternatives.")
    elif answer.tokens and alternatives < asked:
        remarks.append(f"{asked} alternatives were asked for, {alternatives} came.")
    return remarks


async def _try_echo(target: Target, notes: list[str]) -> bool | None:
    if not isinstance(target, Echoes):
        return None
    try:
        tokens = await target.echo(_TEXT)
    except (CapabilityError, TargetError) as error:
        notes.append(f"It does not score prompts, as few services do: {error.message}")
        return False
    return any(not math.isnan(token.logprob) for token in tokens[1:])
