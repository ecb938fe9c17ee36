"""What a target can do, measured before anything is spent on it."""

from __future__ import annotations

from ragwitness.errors import CapabilityError
from ragwitness.targets.probe import CapabilityReport, probe_capabilities
from ragwitness.types import Audit, Target

__all__ = ["require_capabilities"]


async def require_capabilities(target: Target, audit: Audit) -> CapabilityReport:
    """Measure the target and refuse an audit it cannot serve.

    Raises:
        CapabilityError: Something the audit requires is missing.
        TargetUnreachableError: No connection.
    """
    found = await probe_capabilities(target)
    missing = sorted(audit.requires - found.capabilities)
    if missing:
        because = "; it leaves them out without a word" if found.dropped_logprobs else ""
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give{because}.",
            "Use a model or server that returns log-probabilities; 'ragwitness doctor TARGET'"
            " shows what this one gives.",
        )
    return found
