"""The membership audits by name.

Other packages add theirs as entry points of the group ``ragwitness.audits``: the name is the
audit's, the object its class, made from a language model and a configuration. The configuration
is a dataclass with defaults, in the same module under the class's name followed by ``Config``.

An audit's defaults are ours. ``NAME:paper`` is the audit as its paper has it, for comparison with
published numbers: the class variable ``presets`` of its configuration lists the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragwitness.core.registry import Listing, Registry, config_class
from ragwitness.core.types import Audit
from ragwitness.models.base import LanguageModel

GROUP = "ragwitness.audits"
"""Entry-point group of other packages' audits."""


def _fits(kind: Any) -> bool:
    return config_class(kind) is not None and all(
        hasattr(kind, name) for name in ("name", "requires", "probe")
    )


@dataclass(frozen=True, slots=True)
class AuditListing(Listing):
    """A membership audit.

    Attributes:
        shows: Reason why a document is called in, as a clause about "its text".
    """

    shows: str = "its answers stand out"


# Addresses by name: a method is imported when it is used.
_METHODS = "ragwitness.membership.methods"
AUDITS = Registry(
    "audit",
    {
        "s-rag": AuditListing(
            f"{_METHODS}.srag:SRag",
            "next-word probabilities of the words that tell most",
            shows="where its telling words come, the system held them likelier than a model"
            " without the database does",
        ),
        "mba": AuditListing(
            f"{_METHODS}.mba.audit:Mba",
            "fill in masked words",
            shows="the system filled in words that were left out of its text",
        ),
        "runon": AuditListing(
            f"{_METHODS}.runon:Runon",
            "ten words of the document: does the answer run on past them",
            shows="shown a few of its words, the system went on with those that follow in it",
        ),
        "rag-mia": AuditListing(
            f"{_METHODS}.rag_mia:RagMia",
            "is this text in your context, yes or no",
            shows="asked whether this text is in its context, the system said yes",
        ),
        "s2mia": AuditListing(
            f"{_METHODS}.s2mia:S2Mia",
            "likeness of the answer to the second half",
            shows="given one half of its text, the system answered in words like those of the"
            " other",
        ),
        "min-k": AuditListing(
            f"{_METHODS}.min_k:MinK",
            "least probable tokens of the answer",
            shows="the system was surer of its answer than it is about texts outside",
        ),
        "passages": AuditListing(
            f"{_METHODS}.passages:Passages",
            "the document's words in the passages that are shown",
            shows="the system retrieved passages that hold its own words in the same order",
        ),
        "joint": AuditListing(
            "ragwitness.membership.joint:Joint",
            "several kinds of questions about each document, and one score",
            shows="asked in several ways, the system answered as if it could read its text",
        ),
    },
    group=GROUP,
    fits=_fits,
    needs="It must be a class with name, requires and probe, beside a dataclass with its name "
    "followed by Config.",
)
"""Our own are the names for ``--method`` and ``--audits``; ``all`` means these."""

BETTING = ("runon", "s-rag", "mba", "joint")
"""Those that bet on words which no question sends, so that e-values can decide."""


def configure(name: str, options: Mapping[str, object] | None = None) -> Any:
    """Return the configuration of an audit; see :meth:`.Registry.configure`."""
    return AUDITS.configure(name, options)


def build_audit(name: str, proxy: LanguageModel, config: object | None = None) -> Audit:
    """Return an audit by name.

    Args:
        name: One of ``AUDITS.names()``, with or without a preset.
        proxy: The auditor's own language model.
        config: As from :func:`configure`; None for the defaults.

    Raises:
        InputError: Unknown name, or a plug-in that fails.
    """
    chosen = configure(name) if config is None else config
    kind = AUDITS.load(name)
    # One that joins others is made from these.
    joined = {
        audit_name: build_audit(audit_name, proxy, configure(audit_name, options))
        for audit_name, options in getattr(chosen, "parts", {}).items()
    }
    audit: Audit = AUDITS.guard(
        name, lambda: kind(proxy, chosen, joined) if joined else kind(proxy, chosen)
    )
    return audit
