"""What a target can do, measured before anything else is spent on it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from ragwitness.asking.worker import Spender, Worker
from ragwitness.canary.probe import WAYS, CanaryProbe, Way
from ragwitness.errors import CapabilityError
from ragwitness.kit.files import replace_file
from ragwitness.kit.run_files import TARGET
from ragwitness.targets.probe import (
    CapabilityReport,
    Continues,
    Echoes,
    Recorded,
    probe_capabilities,
    remarks_of,
)
from ragwitness.types import Answer, Audit, Capability, Document, Query, Target, TokenLogprob


class _Governed:
    """A target that is asked through a governor."""

    def __init__(self, target: Target, governor: Spender) -> None:
        self._target = target
        self._governor = governor
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
    target: Target, audit: Audit, governor: Spender | None = None, run: Path | None = None
) -> CapabilityReport:
    """Measure the target, once per run folder, and refuse an audit it cannot serve.

    Args:
        target: The system under audit.
        audit: Says what it requires.
        governor: Lets the questions pass; None does not count them.
        run: Folder in which what was seen is kept, so that resuming asks nothing again.

    Raises:
        CapabilityError: Something the audit requires is missing.
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    found = await measured(target, governor, run, audit.requires)
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
    governor: Spender | None = None,
    run: Path | None = None,
    needed: frozenset[Capability] = frozenset(),
) -> CapabilityReport:
    """Measure the target, unless an earlier start in the folder saw what is needed.

    Args:
        target: The system under audit.
        governor: Lets the questions pass.
        run: Folder in which an earlier start may have kept what was seen.
        needed: Without it what was kept is not believed: the target may have changed.

    Raises:
        CapReachedError: The questions would pass a cap.
        TargetUnreachableError: No connection.
    """
    found = seen_before(run) if run else None
    if found is None or found.target != target.name or not needed <= found.capabilities:
        found = await probe_capabilities(_governed(target, governor))
    return found


async def measured_once(target: Target, governor: Spender, run: Path | None) -> CapabilityReport:
    """Measure the target once per run folder: as :func:`measured`, and keep what was seen."""
    found = await measured(target, governor, run)
    _keep(run, found)
    return found


def _governed(target: Target, governor: Spender | None) -> Target:
    if governor is None or isinstance(target, Recorded):
        return target
    kind = _GovernedEcho if isinstance(target, Echoes) else _Governed
    return kind(target, governor)


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
        kept = tuple(replace(token, top=()) for token in tokens[-_KEPT:])
        return Answer("", kept, prompt_tokens=len(tokens), completion_tokens=1)

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
    """Whether echoed log-probabilities are those that a target writes by; None: cannot be told.

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
    told = [one for one in agreed if one is not None]
    return all(told) if told else None


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
    target: Target, audit: CanaryProbe, governor: Spender | None = None, run: Path | None = None
) -> tuple[Way, ...]:
    """Return the ways that a target serves, best first, by what it was seen to do.

    Recorded answers are taken to serve all: they hold what was asked for, or do not.

    Args:
        target: The system under audit.
        audit: Of a slot, asked by sampling: it needs nothing but text.
        governor: Lets the questions pass.
        run: Folder in which what was seen is kept.

    Raises:
        CapabilityError: It does not even answer with text.
        TargetUnreachableError: No connection.
    """
    if isinstance(target, Recorded):
        return tuple(WAYS)
    found = await require_capabilities(target, audit, governor, run)
    seen = found.capabilities
    if isinstance(target, Continues) and not found.text.strip():
        # Of an empty answer no token is seen; an answer that has begun goes on.
        asking = Worker(_Continued(target, target), governor=governor)
        wrote = await _ask(asking, audit.opening)
        seen |= {Capability.TOP_LOGPROBS} if wrote is not None and wrote.top else set()
    fitting = {
        "exact": isinstance(target, Echoes),
        "forced": isinstance(target, Continues),
        "sampled": True,
    }
    return tuple(way for way, needed in WAYS.items() if needed in seen and fitting[way])


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
    """Return the target as it is asked in one way, under a name of its own.

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
