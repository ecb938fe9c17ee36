"""Ways to ask a target how probable a continuation is, and which of them it serves."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ragwitness.canary.probe import WAYS, CanaryProbe, Way
from ragwitness.core.errors import CapabilityError
from ragwitness.core.types import Answer, Capability, Document, Query, Target, TokenLogprob
from ragwitness.runner.capabilities import Continues, Echoes, Recorded, require_capabilities
from ragwitness.runner.worker import Spender, Worker

_TEXTS = ("The quick brown fox jumps over the lazy", "Monday, Tuesday, Wednesday,")


_NEAR = 0.2  # nats; servers compute with few digits, and differently in other batches


_KEPT = 64  # echoed tokens that are kept: the continuation, what follows it, and a few before


class _Scored:
    """Scores the prompt; of its tokens the last are kept, without alternatives."""

    def __init__(self, target: Target, echoes: Echoes) -> None:
        self._target, self._echoes = target, echoes
        self.name = f"{target.name} (scored)"
        self.capabilities = target.capabilities

    async def ask(self, query: Query) -> Answer:
        tokens = await self._echoes.echo(query.prompt, query.top_logprobs)
        last = tuple(replace(token, top=()) for token in tokens[-_KEPT:])
        return Answer("", last, prompt_tokens=len(tokens), completion_tokens=1)

    async def close(self) -> None:
        await self._target.close()


class _Continued:
    """Continues the prompt as it is."""

    def __init__(self, target: Target, continues: Continues) -> None:
        self._target, self._continues = target, continues
        self.name = f"{target.name} (continued)"
        self.capabilities = target.capabilities

    async def ask(self, query: Query) -> Answer:
        return await self._continues.go_on(query)

    async def close(self) -> None:
        await self._target.close()


async def echoes_truly(
    target: Target, worker: Callable[[Target], Worker], opening: str = ""
) -> bool | None:
    """Whether echoed log-probabilities are those that a target writes by; None: not known.

    Args:
        target: That scores prompts.
        worker: Makes a worker for a target asked in one way.
        opening: Begins an answer; asked where the target goes on from none of our own texts.

    Raises:
        TargetUnreachableError: No connection.
    """
    if not (isinstance(target, Echoes) and isinstance(target, Continues)):
        return None
    continued, scored = worker(_Continued(target, target)), worker(_Scored(target, target))
    agreed = [await _agrees(continued, scored, text) for text in _TEXTS]
    if opening and agreed == [None] * len(_TEXTS):
        agreed = [await _agrees(continued, scored, opening)]
    decided = [result for result in agreed if result is not None]
    return all(decided) if decided else None


async def _agrees(continued: Worker, scored: Worker, text: str) -> bool | None:
    """Whether the token written behind a text is echoed with the number it was written by."""
    wrote = await _ask(continued, text)
    if wrote is None or not wrote.token or math.isnan(wrote.logprob):
        return None
    echoed = await _ask(scored, text + wrote.token)
    if echoed is None or echoed.token != wrote.token:
        return None
    return abs(echoed.logprob - wrote.logprob) < _NEAR


async def _ask(worker: Worker, text: str) -> TokenLogprob | None:
    """The last token that comes with a log-probability; None where none does."""
    query = Query(text, max_tokens=1, top_logprobs=1)
    [answer] = await worker.put([(Document("check", text), query)], "check")
    return answer.tokens[-1] if answer and answer.tokens else None


async def ways_served(
    target: Target, audit: CanaryProbe, limiter: Spender | None = None, run: Path | None = None
) -> tuple[Way, ...]:
    """Return the ways that a target serves, best first, by measurement.

    Recorded answers are taken to serve all: they hold what was asked for, or do not.

    Args:
        target: The system under audit.
        audit: Of a slot, asked by sampling: it needs nothing but text.
        limiter: Lets the questions pass.
        run: Folder in which what was seen is kept.

    Raises:
        CapabilityError: It does not even answer with text.
        TargetUnreachableError: No connection.
    """
    if isinstance(target, Recorded):
        return tuple(WAYS)
    measured = await require_capabilities(target, audit, limiter, run)
    capabilities = measured.capabilities
    if isinstance(target, Continues) and not measured.text.strip():
        # Of an empty answer no token is seen; an answer that has begun goes on.
        asking = Worker(_Continued(target, target), limiter=limiter)
        wrote = await _ask(asking, audit.opening)
        capabilities |= {Capability.TOP_LOGPROBS} if wrote is not None and wrote.top else set()
    fitting = {
        "exact": isinstance(target, Echoes),
        "forced": isinstance(target, Continues),
        "sampled": True,
    }
    return tuple(way for way, needed in WAYS.items() if needed in capabilities and fitting[way])


def best_way(target: Target, ways: Sequence[Way]) -> Way:
    """Return the best way that reads log-probabilities; sampling is asked for by name.

    Raises:
        CapabilityError: There is none.
    """
    for way in ways:
        if way != "sampled":
            return way
    raise CapabilityError(
        f"{target.name} gives no log-probabilities of a given text, neither of prompts nor of"
        " texts that it continues.",
        "Count canaries in sampled answers instead: --way sampled (many more queries).",
    )


def asked_in(target: Target, way: Way, ways: Collection[Way], *, untrue: bool = False) -> Target:
    """Return the target as it is asked in one way, under its own name.

    Args:
        target: The system under audit.
        way: How.
        ways: Those it serves.
        untrue: Its log-probabilities of prompts were seen to be wrong.

    Raises:
        CapabilityError: It does not serve that way.
    """
    if way not in ways:
        because = (
            "what it returns for the tokens of a prompt is not what it writes them by"
            if untrue and way == "exact"
            else f"it does not give {WAYS[way]} of given texts"
        )
        raise CapabilityError(
            f"{target.name} cannot be asked in the way {way!r}: {because}.",
            f"It serves: {', '.join(ways)}.",
        )
    if isinstance(target, Recorded):
        return target
    if way == "exact" and isinstance(target, Echoes):
        return _Scored(target, target)
    if way == "forced" and isinstance(target, Continues):
        return _Continued(target, target)
    return target
