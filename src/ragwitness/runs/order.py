"""An audit as it was ordered: everything that whoever does the work must know, besides secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ragwitness.membership.registry import audit_class, build_audit
from ragwitness.models import load_language_model
from ragwitness.runs.budget import Budget
from ragwitness.runs.check import require_capabilities
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.units import Stages, audit_identity, learns, stages_of
from ragwitness.runs.worker import Spender
from ragwitness.targets import RetryPolicy, TransportOptions
from ragwitness.targets.retry import Setback
from ragwitness.types import Audit, Target

__all__ = ["Order", "Reach", "audit_at", "fitted"]


@dataclass(frozen=True, slots=True)
class Reach:
    """How the target is reached.

    Attributes:
        timeout: Seconds to wait for an answer.
        retries: Further attempts after a failed request.
        key_env: Name of the variable with the key; the key itself is never written down.

    Raises:
        InputError: A number is out of range, or ``key_env`` is no name of a variable.
    """

    timeout: float = 120.0
    retries: int = 5
    key_env: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used before anything is written or sent."""
        self.transport(1)

    def transport(
        self, concurrency: int, setback: Callable[[Setback], None] | None = None
    ) -> TransportOptions:
        """Return it as the target takes it.

        Args:
            concurrency: Connections at a time.
            setback: Told of requests that brought no answer.
        """
        return TransportOptions(
            read_timeout=self.timeout,
            retry=RetryPolicy(retries=self.retries),
            concurrency=concurrency,
            key_env=self.key_env,
            setback=setback,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """An audit as it was ordered.

    Attributes:
        target: Address of the target, as typed.
        plan: Documents and settings.
        method: Registered name of the audit.
        config: Its configuration.
        proxy: The auditor's own model.
        reach: How the target is reached.
        budget: Caps and prices, of all shards together.
    """

    target: str
    plan: AuditPlan
    method: str
    config: Any
    proxy: str = "reader"
    reach: Reach = field(default_factory=Reach)
    budget: Budget = field(default_factory=Budget)

    def stages(self) -> Stages:
        """Return what is asked about; no model is loaded for it.

        Raises:
            InputError: Too few documents, or an unknown audit.
        """
        return stages_of(self.plan, learns(audit_class(self.method)))


def fitted(method: str, config: Any, proxy: str, alternatives: int) -> tuple[Audit, str]:
    """Return an audit, and its identity, as the target's answers allow.

    Args:
        method: Registered name.
        config: Its configuration; fewer alternatives are asked for where the target gives
            fewer.
        proxy: The auditor's own model.
        alternatives: That the target gives per token.

    Raises:
        ModelError: The model cannot be loaded.
    """
    # A text-only target lists none, and an audit of text asks for none.
    if 1 <= alternatives < getattr(config, "top_logprobs", 0):
        config = replace(config, top_logprobs=alternatives)
    model = load_language_model(proxy)
    audit = build_audit(method, model, config)
    return audit, audit_identity(audit, model.name)


async def audit_at(
    target: Target, method: tuple[str, Any, str], governor: Spender, run: Path
) -> tuple[Audit, str]:
    """Measure a target and return the audit that it can serve, with its identity.

    Args:
        target: The system under audit.
        method: Registered name, configuration, and the auditor's own model.
        governor: Lets the questions pass.
        run: Folder in which what was seen is kept.

    Raises:
        CapabilityError: The target lacks what the audit requires.
        TargetError: It cannot be reached or does not speak the protocol.
    """
    name, config, proxy = method
    audit = build_audit(name, load_language_model(proxy), config)
    found = await require_capabilities(target, audit, governor, run)
    return fitted(name, config, proxy, found.alternatives)
