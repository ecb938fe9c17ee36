"""What a target can do, measured before anything else is spent on it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

from ragwitness.core.errors import CapabilityError
from ragwitness.core.files import replace_file
from ragwitness.core.run_files import TARGET
from ragwitness.core.types import Answer, Audit, Capability, Query, Target, TokenLogprob
from ragwitness.runner.worker import Spender
from ragwitness.targets.probe import (
    CapabilityReport,
    Echoes,
    Recorded,
    probe_capabilities,
    remarks_of,
)


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
