"""What a target can do, measured before anything else is spent on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ragwitness.errors import CapabilityError, InputError
from ragwitness.runs.worker import Spender
from ragwitness.targets.probe import CapabilityReport, Echoes, Recorded, probe_capabilities
from ragwitness.types import Answer, Audit, Capability, Query, Target, TokenLogprob

__all__ = ["TARGET", "require_capabilities", "seen_before"]

TARGET = "target.json"
"""Name of the file in a folder with what its target was seen to do."""


class _Governed:
    """A target that is asked through a governor."""

    def __init__(self, target: Target, governor: Spender) -> None:
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
    found = seen_before(run) if run else None
    if found is None or found.target != target.name or not audit.requires <= found.capabilities:
        found = await probe_capabilities(_governed(target, governor))
    missing = sorted(audit.requires - found.capabilities)
    if missing:
        because = "; it leaves them out without a word" if found.dropped_logprobs else ""
        sampled = hasattr(getattr(audit, "config", None), "sampled")
        instead = ", or estimate them from samples: --set sampled=20" if sampled else ""
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give{because}.",
            f"Use a model or server that returns log-probabilities{instead}; 'ragwitness doctor"
            " TARGET' shows what this one gives.",
        )
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
        row = json.loads((run / TARGET).read_bytes())
        seen = frozenset(map(Capability, row.pop("capabilities")))
        return CapabilityReport(**row | {"capabilities": seen, "notes": tuple(row["notes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep(run: Path | None, found: CapabilityReport) -> None:
    if run is None:
        return
    row = asdict(found) | {"capabilities": sorted(found.capabilities)}
    try:
        run.mkdir(parents=True, exist_ok=True)
        (run / TARGET).write_text(json.dumps(row) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"Cannot write {run / TARGET}: {error.strerror}.",
            "Free some disk space, or choose another folder with --run.",
        ) from error
