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
        auxiliary: Documents for the shadow system; the generated corpus where empty.
        alpha: Level of the verdicts.
        shadow: The shadow system.
        automl: Train the audit classifier with AutoGluon.
        in_flight: Documents probed at the same time.
    """

    documents: tuple[Document, ...]
    known_out: tuple[Document, ...] = ()
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
        shared = [document.id for document in self.known_out if document.text in audited]
        if shared:
            raise InputError(
                f"{len(shared)} documents stand both in --known-out and in --documents"
                f" (first: {shared[0]!r}).",
                "A document in question cannot be known to be outside; remove it from one.",
            )
