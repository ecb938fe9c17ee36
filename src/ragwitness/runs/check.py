"""What a target can do, measured before anything else is spent on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ragwitness.errors import CapabilityError, InputError
from ragwitness.runs.governor import Governor
from ragwitness.targets.probe import CapabilityReport, Echoes, Recorded, probe_capabilities
from ragwitness.types import Answer, Audit, Capability, Query, Target, TokenLogprob

__all__ = ["require_capabilities"]

_FILE = "target.json"


class _Governed:
    """A target that is asked through a governor."""

    def __init__(self, target: Target, governor: Governor) -> None:
        self._target = target
        self._governor = governor
        self.name = target.name
        self.capabilities = target.capabilities

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


async def require_capabilities(
    target: Target, audit: Audit, governor: Governor | None = None, run: Path | None = None
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
    found = _kept(run, target.name)
    if found is None or not audit.requires <= found.capabilities:
        found = await probe_capabilities(_governed(target, governor))
    missing = sorted(audit.requires - found.capabilities)
    if missing:
        because = "; it leaves them out without a word" if found.dropped_logprobs else ""
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give{because}.",
            "Use a model or server that returns log-probabilities; 'ragwitness doctor TARGET'"
            " shows what this one gives.",
        )
    _keep(run, found)
    return found


def _governed(target: Target, governor: Governor | None) -> Target:
    if governor is None or isinstance(target, Recorded):
        return target
    kind = _GovernedEcho if isinstance(target, Echoes) else _Governed
    return kind(target, governor)


def _kept(run: Path | None, name: str) -> CapabilityReport | None:
    """What an earlier start of the run saw of the same target."""
    if run is None:
        return None
    try:
        row = json.loads((run / _FILE).read_bytes())
        seen = frozenset(map(Capability, row.pop("capabilities")))
        found = CapabilityReport(**row | {"capabilities": seen, "notes": tuple(row["notes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if found.target == name else None


def _keep(run: Path | None, found: CapabilityReport) -> None:
    if run is None:
        return
    row = asdict(found) | {"capabilities": sorted(found.capabilities)}
    try:
        run.mkdir(parents=True, exist_ok=True)
        (run / _FILE).write_text(json.dumps(row) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"Cannot write {run / _FILE}: {error.strerror}.",
            "Free some disk space, or choose another folder with --run.",
        ) from error
