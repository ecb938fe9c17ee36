"""An audit as it was ordered: everything that whoever does the work must know, besides secrets."""

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
from ragwitness.membership.methods.method_registry import AUDITS, build_audit, configure
from ragwitness.membership.plan import AuditPlan, Stages, among, learns, stages_of
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.budget import Budget
from ragwitness.runner.score_store import audit_identity, questions_id
from ragwitness.runner.task_options import Reach

if TYPE_CHECKING:
    from ragwitness.runner.rate_limiter import RateLimiter


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
        budget: Caps and prices.
        why: Why this method was chosen, where it was not named.
    """

    target: str
    plan: AuditPlan
    method: str
    config: Any
    proxy: str = "reader"
    reach: Reach = field(default_factory=Reach)
    budget: Budget = field(default_factory=Budget)
    why: str = ""

    def stages(self) -> Stages:
        """Return what is asked about; no model is loaded for it.

        Raises:
            InputError: Too few documents, or an unknown audit.
        """
        return stages_of(self.plan, trains(self.method, self.config))

    def beforehand(self) -> tuple[tuple[str, ...], bool]:
        """Return what can be said of it before its first query; no model is loaded for it."""
        return beforehand(self.plan, self.stages().reference, self.config)

    async def refuse_unscorable(self) -> None:
        """Refuse an order of which nothing could be scored, before anything is opened or sent.

        Raises:
            InputError: No document in question, or none that calibrates, has a question.
            ModelError: The auditor's own model cannot be loaded.
        """
        from ragwitness.membership.forecast import refuse_unscorable

        audit = build_audit(self.method, load_language_model(self.proxy), self.config)
        audit = among(audit, self.plan.every_document)
        known = self.stages().reference.documents
        parts = {"documents": self.plan.documents, "known-out documents": known}
        await refuse_unscorable(audit, parts)


def trains(method: str, config: Any) -> bool:
    """Whether a method, configured like this, learns from a shadow system."""
    # The configuration may say it; else its class does.
    return learns(config if hasattr(config, "learns") else AUDITS.load(method))


def fitted(
    method: str, config: Any, proxy: str, alternatives: int, plan: AuditPlan
) -> tuple[Audit, str]:
    """Return an audit, and its identity, as the target's answers allow.

    Args:
        method: Registered name.
        config: Its configuration; fewer alternatives are asked for where the target gives
            fewer.
        proxy: The auditor's own model.
        alternatives: That the target gives per token.
        plan: The documents; an audit's questions may depend on all of them.

    Raises:
        ModelError: The model cannot be loaded.
    """
    model, config = load_language_model(proxy), fitted_config(config, alternatives)
    audit = among(build_audit(method, model, config), plan.every_document)
    return audit, audit_identity(audit, model.name)


def fitted_config(config: Any, alternatives: int) -> Any:
    """Return a configuration that asks for no more alternatives per token than a target gives."""
    # Most audits either need some or never ask; one that can do without asks a text-only target
    # for none.
    least = 0 if getattr(config, "logprobs_optional", False) else 1
    if least <= alternatives < getattr(config, "top_logprobs", 0):
        return replace(config, top_logprobs=alternatives)
    return config


_MOST = 20  # alternatives of a token: nobody who speaks the protocol gives more


def as_written(method: tuple[str, Any, str], plan: AuditPlan) -> tuple[Audit, str]:
    """Return an audit as it is before anything is known of its target, and its questions' name.

    Args:
        method: Registered name, configuration, and the auditor's own model.
        plan: As in :func:`fitted`.
    """
    name, config, proxy = method
    audit, identity = fitted(name, config, proxy, _MOST, plan)
    return audit, questions_id(identity, plan.every_document)


async def audit_at(
    target: Target,
    method: tuple[str, Any, str],
    limiter: RateLimiter,
    run: Path | None,
    plan: AuditPlan,
) -> tuple[Audit, str]:
    """Measure a target and return the audit that it can serve, with its identity.

    Args:
        target: The system under audit.
        method: Registered name, configuration, and the auditor's own model.
        limiter: Lets the questions pass.
        run: Folder in which what was seen is kept; None keeps nothing.
        plan: As in :func:`fitted`.

    Raises:
        CapabilityError: The target lacks what the audit requires.
        InputError: It answers the questions of another audit.
        TargetError: It cannot be reached or does not speak the protocol.
    """
    from ragwitness.runner.capabilities import require_capabilities
    from ragwitness.runner.replay import ReplayTarget

    name, config, proxy = method
    audit = build_audit(name, load_language_model(proxy), config)
    if isinstance(target, ReplayTarget):
        target.refuse_other(as_written(method, plan)[1])
    found = await require_capabilities(target, audit, limiter, run)
    return fitted(name, config, proxy, found.alternatives, plan)


# An order as JSON, for what commits to it.


_PARTS = ("documents", "known_out", "known_in", "auxiliary")


def parts_of(order: Order) -> dict[str, tuple[Document, ...]]:
    """Return the documents of an order by their part in it."""
    return {name: getattr(order.plan, name) for name in _PARTS}


def stored_settings(order: Order) -> dict[str, Any]:
    """Return everything of an order but its documents and how the target is reached, as JSON.

    Raises:
        InputError: The address holds a key, or the configuration cannot be written down.
    """
    refuse_secrets(order.target)
    plan = TypeAdapter(AuditPlan).dump_python(order.plan, mode="json", exclude=set(_PARTS))
    # What decides no answer is written down only where it is not as always.
    for one in fields(AuditPlan):
        if not one.repr and getattr(order.plan, one.name) == one.default:
            del plan[one.name]
    rag = order.plan.shadow.rag
    for name in unset(rag.template):
        del plan["shadow"]["rag"]["template"][name]
    return {
        "target": order.target,
        "method": order.method,
        "config": _plain_config(order),
        "proxy": order.proxy,
        "plan": plan,
        "budget": TypeAdapter(Budget).dump_python(order.budget, mode="json"),
    } | ({"why": order.why} if order.why else {})


def order_from(stored: Mapping[str, Any], parts: Mapping[str, Sequence[Document]]) -> Order:
    """Return an order from its settings and its documents by part.

    Raises:
        InputError: The method is not known here, or a value cannot be used.
        KeyError: A setting is missing.
        ValueError: A setting is of another type.
    """
    config = type(configure(stored["method"]))
    return Order(
        target=stored["target"],
        plan=TypeAdapter(AuditPlan).validate_python(stored["plan"] | parts),
        method=stored["method"],
        config=TypeAdapter(config).validate_python(stored["config"]),
        proxy=stored["proxy"],
        budget=TypeAdapter(Budget).validate_python(stored["budget"]),
        why=stored.get("why", ""),
    )


def _plain_config(order: Order) -> Any:
    """The configuration as JSON, where it can be read back from that."""
    adapter: TypeAdapter[Any] = TypeAdapter(type(order.config))
    try:
        plain = adapter.dump_python(order.config, mode="json")
        whole = adapter.validate_python(json.loads(json.dumps(plain))) == order.config
    except (ValidationError, ValueError, TypeError):
        whole = False
    if not whole:
        names = ", ".join(field.name for field in fields(order.config))
        raise InputError(
            f"The configuration of {order.method} cannot be written into a seal ({names}).",
            "Leave out --seal.",
        )
    idle = unset(order.config)
    return {name: value for name, value in plain.items() if name not in idle}
