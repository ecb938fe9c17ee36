"""The membership audits by name."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragwitness.errors import InputError
from ragwitness.models import LanguageModel
from ragwitness.types import Audit

__all__ = ["AUDITS", "AuditEntry", "build_audit", "configure"]


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
"""Names that ``--method`` and ``--audits`` accept."""


def configure(name: str, options: Mapping[str, object] | None = None) -> Any:
    """Return the configuration of a registered audit.

    Args:
        name: A key of :data:`AUDITS`.
        options: Fields of the configuration; text is turned into the field's type.

    Raises:
        InputError: Unknown name, field or value.
    """
    entry = AUDITS.get(name)
    if entry is None:
        raise InputError(f"Unknown method {name!r}.", f"Available: {', '.join(AUDITS)}.")
    config_class = getattr(_module(entry), f"{entry.kind}Config")
    default, chosen = config_class(), {**entry.preset, **(options or {})}
    known = {field.name for field in dataclasses.fields(config_class)}
    unknown = sorted(set(chosen) - known)
    if unknown:
        raise InputError(
            f"{name} has no option {unknown[0]!r}.", f"It has: {', '.join(sorted(known))}."
        )
    given = {
        key: _like(getattr(default, key), value, f"{name}: {key}") for key, value in chosen.items()
    }
    return config_class(**given)


def build_audit(name: str, proxy: LanguageModel, config: object | None = None) -> Audit:
    """Return a registered audit.

    Args:
        name: A key of :data:`AUDITS`.
        proxy: The auditor's own language model.
        config: As from :func:`configure`; None for the defaults.

    Raises:
        InputError: Unknown name.
    """
    chosen = configure(name) if config is None else config
    entry = AUDITS[name]
    audit: Audit = getattr(_module(entry), entry.kind)(proxy, chosen)
    return audit


def _module(entry: AuditEntry) -> Any:
    return importlib.import_module(f"ragwitness.membership.{entry.package}")


def _like(default: object, value: object, what: str) -> object:
    """Turn the text of a command line into the type of a field's default."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if default is None:
        return _number_or_none(value, what)
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if value.lower() in words:
            return words[value.lower()]
    else:
        kind = int if isinstance(default, int) else float
        try:
            return kind(value)
        except ValueError:
            pass
    raise InputError(f"{what} cannot be {value!r}.", f"Its default is {default!r}.")


def _number_or_none(text: str, what: str) -> float | None:
    """Read a field that is unset by default; those of the audits are numbers when set."""
    if text.strip().lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} cannot be {text!r}.", "Give a number, or 'none'.") from None
