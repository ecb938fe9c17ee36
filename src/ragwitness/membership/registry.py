"""The membership audits by name.

Other packages add theirs as entry points of the group ``ragwitness.audits``: the name is the
audit's, the object its class, made from a language model and a configuration. The configuration
is a dataclass with defaults, in the same module under the class's name followed by ``Config``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragwitness.errors import InputError
from ragwitness.fields import typed_fields
from ragwitness.models import LanguageModel
from ragwitness.plugins import load_plugin, made_by_plugin, plugin_names
from ragwitness.types import Audit

__all__ = [
    "AUDITS",
    "GROUP",
    "AuditEntry",
    "audit_class",
    "audit_names",
    "build_audit",
    "configure",
]

GROUP = "ragwitness.audits"
"""Entry-point group of other packages' audits."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A registered audit.

    Attributes:
        package: Its package in ``ragwitness.membership``.
        kind: Class of the audit there; ``kind + "Config"`` is its configuration.
        summary: What it asks, in a few words.
        preset: Fields of the configuration that the name stands for.
    """

    package: str
    kind: str
    summary: str
    preset: Mapping[str, object] = field(default_factory=dict)


AUDITS: dict[str, AuditEntry] = {
    "s-rag": AuditEntry("srag", "SRag", "next-word probabilities, classifier from a shadow system"),
    "mba": AuditEntry("mba", "Mba", "fill in masked words"),
    "rag-mia": AuditEntry("rag_mia", "RagMia", "is this text in your context, yes or no"),
    "s2mia": AuditEntry("s2mia", "S2Mia", "likeness of the answer to the second half"),
    "min-k": AuditEntry("min_k", "MinK", "least probable tokens of the answer"),
    "min-k++": AuditEntry(
        "min_k", "MinK", "the same, standardised over the alternatives", {"variant": "min-k++"}
    ),
    "interrogation": AuditEntry("interrogation", "Interrogation", "thirty yes/no questions"),
    "dcmi": AuditEntry("dcmi", "Dcmi", "the document against a perturbed copy"),
    "menta": AuditEntry("menta", "Menta", "open questions, answers checked by entailment"),
    "twin": AuditEntry("twin", "Twin", "true values against same-frequency alternatives"),
}
"""Our own names for ``--method`` and ``--audits``; ``all`` means these."""


def audit_names() -> tuple[str, ...]:
    """Return the names of all audits, those of other packages last; none of these is loaded."""
    return (*AUDITS, *(name for name in plugin_names(GROUP) if name not in AUDITS))


def configure(name: str, options: Mapping[str, object] | None = None) -> Any:
    """Return the configuration of a registered audit.

    Args:
        name: One of :func:`audit_names`.
        options: Fields of the configuration; text is turned into the field's type.

    Raises:
        InputError: Unknown name, field or value.
    """
    _, config_class, preset = _classes(name)
    default, chosen = _made(name, config_class), {**preset, **(options or {})}
    known = {field.name for field in dataclasses.fields(config_class)}
    given = typed_fields(name, default, known, chosen)
    made: Any = _made(name, lambda: config_class(**given))
    return made


def audit_class(name: str) -> Any:
    """Return the class of a registered audit.

    Raises:
        InputError: Unknown name.
    """
    return _classes(name)[0]


def build_audit(name: str, proxy: LanguageModel, config: object | None = None) -> Audit:
    """Return a registered audit.

    Args:
        name: One of :func:`audit_names`.
        proxy: The auditor's own language model.
        config: As from :func:`configure`; None for the defaults.

    Raises:
        InputError: Unknown name.
    """
    chosen = configure(name) if config is None else config
    kind, _, _ = _classes(name)
    audit: Audit = _made(name, lambda: kind(proxy, chosen))
    return audit


def _made(name: str, make: Callable[[], Any]) -> Any:
    """Make something of an audit, ours or another package's."""
    return make() if name in AUDITS else made_by_plugin(f"audit {name!r}", make)


def _classes(name: str) -> tuple[Any, Any, Mapping[str, object]]:
    """An audit's class, that of its configuration, and the fields that the name stands for.

    Raises:
        InputError: Unknown name, or a plug-in that is no audit.
    """
    entry = AUDITS.get(name)
    if entry is not None:
        module = importlib.import_module(f"ragwitness.membership.{entry.package}")
        return getattr(module, entry.kind), getattr(module, f"{entry.kind}Config"), entry.preset
    kind = load_plugin(GROUP, name)
    if kind is None:
        raise InputError(f"Unknown method {name!r}.", f"Available: {', '.join(audit_names())}.")
    where = sys.modules.get(getattr(kind, "__module__", ""))
    config_class = getattr(where, f"{getattr(kind, '__name__', '')}Config", None)
    complete = all(hasattr(kind, part) for part in ("name", "requires", "probe"))
    if not (inspect.isclass(kind) and complete and dataclasses.is_dataclass(config_class)):
        raise InputError(
            f"The plug-in {name!r} ({GROUP}) is no audit.",
            "It must be a class with name, requires and probe, beside a dataclass with its "
            "name followed by Config.",
        )
    return kind, config_class, {}
