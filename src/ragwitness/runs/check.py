"""What a target can do, measured before anything is spent on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.errors import CapabilityError
from ragwitness.types import Audit, Capability, Target

__all__ = ["Examination", "examine", "require_capabilities"]


@dataclass(frozen=True, slots=True)
class Examination:
    """Measured capabilities of a target with what was observed."""

    capabilities: frozenset[Capability]
    observed: tuple[tuple[str, str], ...]

    def lines(self) -> Sequence[tuple[str, str]]:
        """Label and value pairs to print."""
        return self.observed


async def require_capabilities(target: Target, audit: Audit) -> None:
    """Measure the target and refuse an audit it cannot serve.

    Raises:
        CapabilityError: Something the audit requires is missing.
        TargetUnreachableError: No connection.
    """
    found = await examine(target)
    missing = sorted(audit.requires - found.capabilities)
    if missing:
        raise CapabilityError(
            f"{audit.name} needs {', '.join(missing)}, which {target.name} does not give.",
            "Run 'ragwitness doctor TARGET' to see what it gives.",
        )


async def examine(target: Target) -> Examination:
    raise RuntimeError
