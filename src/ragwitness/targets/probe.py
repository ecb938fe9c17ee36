"""Finds out what a target can do by asking it, whatever it claims."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ragwitness.errors import CapabilityError, TargetError, TargetResponseError
from ragwitness.types import Answer, Capability, Query, Target, TokenLogprob

_QUESTION = "Say hello."
# For a target that has nothing to say to the first.
_OTHER_QUESTION = "Complete the sentence: The sky is"
_TEXT = "The quick brown fox jumps over the lazy dog."
_MAX_TOKENS = 8


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
        answer, took = await _ask_otherwise(target, asked, notes, timer) or (answer, took)
    tokens = answer.tokens or ()
    usable = any(not math.isnan(token.logprob) for token in tokens)
    alternatives = max((len(token.top) for token in tokens), default=0)
    # 2. What came back, whatever was promised.
    # Nothing generated, nothing to score: that does not prove that a field was dropped.
    dropped = bool(asked and answer.text and not usable)
    notes += _remarks(answer, asked, alternatives, dropped)
    # 3. Does it score a prompt?
    echo = await _try_echo(target, notes)
    requests += echo is not None
    seen = {Capability.TEXT}
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
        notes=tuple(notes),
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
    """Ask for 20 alternatives, then 5, then none, until the target answers."""
    for requests, top in enumerate((20, 5), start=1):
        started = timer()
        try:
            answer = await target.ask(Query(_QUESTION, _MAX_TOKENS, top_logprobs=top))
        except (CapabilityError, TargetResponseError) as error:
            notes.append(f"Asked for {top} alternatives: {error.message}")
            continue
        return top, answer, timer() - started, requests
    started = timer()
    answer = await target.ask(Query(_QUESTION, _MAX_TOKENS))
    return 0, answer, timer() - started, 3


async def _ask_otherwise(
    target: Target, top: int, notes: list[str], timer: Callable[[], float]
) -> tuple[Answer, float] | None:
    """Ask another question: an empty answer shows nothing of what the target can do."""
    started = timer()
    try:
        answer = await target.ask(Query(_OTHER_QUESTION, _MAX_TOKENS, top_logprobs=top))
    except (CapabilityError, TargetError) as error:
        notes.append(f"The first answer was empty, and asked otherwise: {error.message}")
        return None
    return answer, timer() - started


def _remarks(answer: Answer, asked: int, alternatives: int, dropped: bool) -> list[str]:
    remarks = []
    if dropped:
        remarks.append("Log-probabilities were asked for and silently left out of the reply.")
    elif answer.tokens and not alternatives:
        remarks.append("Only the chosen token's log-probability comes back, no alternatives.")
    elif answer.tokens and alternatives < asked:
        remarks.append(f"{asked} alternatives were asked for, {alternatives} came.")
    if not answer.text:
        remarks.append("The answer was empty.")
    return remarks


async def _try_echo(target: Target, notes: list[str]) -> bool | None:
    if not isinstance(target, Echoes):
        return None
    try:
        tokens = await target.echo(_TEXT)
    except (CapabilityError, TargetError) as error:
        notes.append(f"Scoring a prompt: {error.message}")
        return False
    return any(not math.isnan(token.logprob) for token in tokens[1:])
