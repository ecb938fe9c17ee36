"""An audit that is ready to run: options checked, documents read, no secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from ragwitness.core.errors import InputError
from ragwitness.core.quotes import refuse_secrets
from ragwitness.core.stored_names import unset
from ragwitness.core.types import Audit, Document, Target
from ragwitness.membership.assumptions import beforehand
from ragwitness.membership.method_registry import AUDITS, build_audit, configure
from ragwitness.membership.plan import AuditPlan, Stages, among, learns, stages_of
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.budget import Budget
from ragwitness.runner.score_store import audit_identity, questions_id

if TYPE_CHECKING:
    from ragwitness.runner.rate_limiter import RateLimiter


_MOST = 20  # alternatives of a token: no server of the protocol gives more
_PARTS = ("documents", "known_out", "known_in", "auxiliary")


@dataclass(frozen=True, slots=True)
class PreparedAudit:
    """An audit whose options are checked and whose documents are read.

    Attributes:
        target: Address of the target, as typed.
        plan: Documents and settings.
        method: Registered name of the audit.
        config: Its configuration.
        proxy: The auditor's own model.
        budget: Caps and prices.
        why: Why this method was chosen, where it was not named.
    """

    target: str
    plan: AuditPlan
    method: str
    config: Any
    proxy: str = "reader"
    budget: Budget = field(default_factory=Budget)
    why: str = ""

    def stages(self) -> Stages:
        """Return the documents by stage; no model is loaded for it.

        Raises:
            InputError: Too few documents, or an unknown audit.
        """
        return stages_of(self.plan, trains(self.method, self.config))

    def beforehand(self) -> tuple[tuple[str, ...], bool]:
        """Return remarks before the first query, and whether to go on is doubtful."""
        return beforehand(self.plan, self.stages().reference, self.config)

    async def refuse_unscorable(self) -> None:
        """Refuse an audit that could score nothing, before anything is opened or sent.

        Raises:
            InputError: No document in question, or none that calibrates, has a question.
            ModelError: The auditor's own model cannot be loaded.
        """
        from ragwitness.membership.forecast import refuse_unscorable

        # The audit as it is before the target was measured.
        audit = build_audit(self.method, load_language_model(self.proxy), self.config)
        audit = among(audit, self.plan.every_document)
        await refuse_unscorable(audit, self.plan, self.stages().reference.documents)

    def fitted(self, alternatives: int = _MOST) -> tuple[Audit, str]:
        """Return the audit, and its identity, for a target that gives these alternatives per token.

        Raises:
            ModelError: The auditor's own model cannot be loaded.
        """
        model, config = load_language_model(self.proxy), fitted_config(self.config, alternatives)
        audit = among(build_audit(self.method, model, config), self.plan.every_document)
        return audit, audit_identity(audit, model.name)

    async def fitted_to(
        self, target: Target, limiter: RateLimiter, run: Path | None
    ) -> tuple[Audit, str]:
        """Measure a target and return the audit that it can serve, with its identity.

        Args:
            target: The system under audit.
            limiter: Lets the questions pass.
            run: Folder of the measured capabilities; None keeps nothing.

        Raises:
            CapabilityError: The target lacks what the audit requires.
            InputError: It answers the questions of another audit.
            TargetError: It cannot be reached or does not speak the protocol.
        """
        from ragwitness.runner.capabilities import require_capabilities
        from ragwitness.runner.replay import ReplayTarget

        # Recorded answers must be those of this very audit.
        audit = build_audit(self.method, load_language_model(self.proxy), self.config)
        if isinstance(target, ReplayTarget):
            target.refuse_other(self.questions_id())
        report = await require_capabilities(target, audit, limiter, run)
        return self.fitted(report.alternatives)

    def questions_id(self) -> str:
        """Return the name of the audit's questions before anything is known of its target."""
        return questions_id(self.fitted()[1], self.plan.every_document)

    def parts(self) -> dict[str, tuple[Document, ...]]:
        """Return the documents by their part in the audit."""
        return {name: getattr(self.plan, name) for name in _PARTS}

    def stored(self) -> dict[str, Any]:
        """Return everything except the documents and the way to the target, as JSON.

        Raises:
            InputError: The address holds a key, or the configuration cannot be written down.
        """
        refuse_secrets(self.target)
        plan = TypeAdapter(AuditPlan).dump_python(self.plan, mode="json", exclude=set(_PARTS))
        # Settings that decide no answer are written down only where they differ from the default.
        for setting in fields(AuditPlan):
            if not setting.repr and getattr(self.plan, setting.name) == setting.default:
                del plan[setting.name]
        for name in unset(self.plan.shadow.rag.template):
            del plan["shadow"]["rag"]["template"][name]
        return {
            "target": self.target,
            "method": self.method,
            "config": self._stored_config(),
            "proxy": self.proxy,
            "plan": plan,
            "budget": TypeAdapter(Budget).dump_python(self.budget, mode="json"),
        } | ({"why": self.why} if self.why else {})

    def _stored_config(self) -> Any:
        """The configuration as JSON, where it can be read back from that."""
        adapter: TypeAdapter[Any] = TypeAdapter(type(self.config))
        try:
            row = adapter.dump_python(self.config, mode="json")
            readable = adapter.validate_python(json.loads(json.dumps(row))) == self.config
        except (ValidationError, ValueError, TypeError):
            readable = False
        if not readable:
            names = ", ".join(field.name for field in fields(self.config))
            raise InputError(
                f"The configuration of {self.method} cannot be written into a seal ({names}).",
                "Leave out --seal.",
            )
        default = unset(self.config)
        return {name: value for name, value in row.items() if name not in default}

    @classmethod
    def from_stored(
        cls, stored: Mapping[str, Any], parts: Mapping[str, Sequence[Document]]
    ) -> PreparedAudit:
        """Return an audit from its settings and its documents by part.

        Raises:
            InputError: The method is not known here, or a value cannot be used.
            KeyError: A setting is missing.
            ValueError: A setting is of another type.
        """
        config = type(configure(stored["method"]))
        return cls(
            target=stored["target"],
            plan=TypeAdapter(AuditPlan).validate_python(stored["plan"] | parts),
            method=stored["method"],
            config=TypeAdapter(config).validate_python(stored["config"]),
            proxy=stored["proxy"],
            budget=TypeAdapter(Budget).validate_python(stored["budget"]),
            why=stored.get("why", ""),
        )


def trains(method: str, config: Any) -> bool:
    """Whether a method, configured like this, learns from a shadow system."""
    # The configuration may say it; else its class does.
    return learns(config if hasattr(config, "learns") else AUDITS.load(method))


def fitted_config(config: Any, alternatives: int) -> Any:
    """Return a configuration that asks for no more alternatives per token than a target gives."""
    # Most audits either need some or never ask; one that can do without asks a text-only target
    # for none.
    least = 0 if getattr(config, "logprobs_optional", False) else 1
    if least <= alternatives < getattr(config, "top_logprobs", 0):
        return replace(config, top_logprobs=alternatives)
    return config
