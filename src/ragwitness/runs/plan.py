"""What is to be audited and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragwitness.errors import InputError
from ragwitness.membership.srag import ShadowConfig
from ragwitness.types import Document

__all__ = ["AuditPlan"]


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is to be audited and how.

    Attributes:
        documents: The documents in question.
        known_out: Documents known to be outside the target, like the audited ones in kind.
        known_in: Documents known to be inside, like the audited ones in kind; without them only
            an audit that learns from a shadow system can say ``out``.
        auxiliary: Documents for the shadow system; the generated corpus where empty.
        alpha: Level of the verdicts.
        shadow: The shadow system.
        automl: Train the audit classifier with AutoGluon.
        in_flight: Documents probed at the same time.
    """

    documents: tuple[Document, ...]
    known_out: tuple[Document, ...] = ()
    known_in: tuple[Document, ...] = ()
    auxiliary: tuple[Document, ...] = ()
    alpha: float = 0.05
    shadow: ShadowConfig = field(default_factory=ShadowConfig)
    automl: bool = False
    in_flight: int = 4

    def __post_init__(self) -> None:
        """Refuse what cannot give a verdict."""
        if not self.documents:
            raise InputError("There is no document to audit.")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {self.alpha}.")
        audited = {document.text for document in self.documents}
        outside = {document.text for document in self.known_out}
        for option, known, others, where in (
            ("--known-out", self.known_out, audited, "--documents"),
            ("--known-in", self.known_in, audited, "--documents"),
            ("--known-in", self.known_in, outside, "--known-out"),
        ):
            shared = [document.id for document in known if document.text in others]
            if shared:
                raise InputError(
                    f"{len(shared)} documents stand both in {option} and in {where}"
                    f" (first: {shared[0]!r}).",
                    "A document cannot be known and in question, or inside and outside;"
                    " remove it from one.",
                )
