"""What an audit consists of: units of one document at one system, with content addresses.

A unit's address is a hash of everything that its score follows from: how the audit is made, the
name of the system that is asked, and the document. So it is the same in every process and on
every machine, and a changed setting is a different unit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from pydantic import TypeAdapter

from ragwitness.membership.srag import Split, split_auxiliary
from ragwitness.runs.calibration import Reference, choose_reference, distinct
from ragwitness.runs.plan import AuditPlan
from ragwitness.types import Audit, Document

__all__ = [
    "SHADOW_STAGES",
    "Stages",
    "Systems",
    "Unit",
    "at_shadow",
    "at_target",
    "audit_identity",
    "auxiliary_of",
    "learns",
    "stages_of",
    "unit_id",
]

D = TypeVar("D")

SHADOW_STAGES = ("shadow, inside", "shadow, outside")
"""Stages that ask the shadow system; the others ask the target."""


@dataclass(frozen=True, slots=True)
class Systems:
    """Names of the systems that an audit asks.

    Attributes:
        target: The system under audit.
        shadow: The auditor's own; None where there is none.
    """

    target: str
    shadow: str | None = None

    def at(self, stage: str) -> str:
        """Return the name of the one that a stage asks."""
        return self.shadow or "" if stage in SHADOW_STAGES else self.target


@dataclass(frozen=True, slots=True)
class Unit:
    """One document at one system.

    Attributes:
        stage: Part of the audit.
        document: What is probed.
        id: Content address.
    """

    stage: str
    document: Document
    id: str


@dataclass(frozen=True, slots=True)
class Stages:
    """Everything that an audit asks about.

    Attributes:
        documents: By stage, both in the order in which they are asked about and reported.
        reference: Those that calibrate, and what that assumes.
    """

    documents: Mapping[str, tuple[Document, ...]]
    reference: Reference

    @property
    def count(self) -> int:
        """Number of units."""
        return sum(map(len, self.documents.values()))

    def units(self, identity: str, systems: Systems) -> Iterator[Unit]:
        """Yield all units in order.

        Args:
            identity: From :func:`audit_identity`.
            systems: Whom they ask.
        """
        for stage, documents in self.documents.items():
            for document in documents:
                yield Unit(stage, document, unit_id(identity, systems.at(stage), document))

    def part(self, mine: Callable[[int], bool]) -> dict[str, tuple[Document, ...]]:
        """Return a part of the documents by stage.

        Args:
            mine: Whether the unit at a place belongs to the part. Copies of a document at
                one system have one place: they are one unit.
        """
        places: dict[tuple[bool, str, str], int] = {}
        found = {}
        for stage, documents in self.documents.items():
            chosen: dict[int, Document] = {}
            for document in documents:
                key = (stage in SHADOW_STAGES, document.id, document.text)
                if mine(place := places.setdefault(key, len(places))):
                    chosen[place] = document
            found[stage] = tuple(chosen.values())
        return found


def at_shadow(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the shadow system."""
    return {stage: part for stage, part in documents.items() if stage in SHADOW_STAGES}


def at_target(documents: Mapping[str, D]) -> dict[str, D]:
    """Return those stages that ask the target."""
    return {stage: part for stage, part in documents.items() if stage not in SHADOW_STAGES}


def learns(audit: object) -> bool:
    """Whether an audit, or a class of audits, trains on a shadow system."""
    return bool(getattr(audit, "learns", False))


def stages_of(plan: AuditPlan, shadow: bool) -> Stages:
    """Return what is asked about, and where.

    Args:
        plan: Documents and settings.
        shadow: The audit trains on a shadow system.

    Raises:
        InputError: Too few auxiliary documents for that.
    """
    auxiliary = auxiliary_of(plan)
    split: Split | None = split_auxiliary(auxiliary, plan.shadow) if shadow else None
    spare: Sequence[Document] = split.spare if split else auxiliary
    reference = choose_reference(distinct(plan.known_out), bool(plan.auxiliary), spare)
    probed = dict(zip(SHADOW_STAGES, (split.inside, split.outside), strict=True)) if split else {}
    documents = {
        **probed,
        "known outside": reference.documents,
        "known inside": distinct(plan.known_in),
        "documents": plan.documents,
    }
    return Stages(documents, reference)


def auxiliary_of(plan: AuditPlan) -> list[Document]:
    """Auxiliary documents that are neither in question nor used for calibration."""
    source: Sequence[Document] = plan.auxiliary
    if not source:
        from ragwitness.text.sample import load_sample

        source = load_sample()
    taken = {document.text for document in (*plan.documents, *plan.known_out, *plan.known_in)}
    return [document for document in distinct(source) if document.text not in taken]


def audit_identity(audit: Audit, proxy: str) -> str:
    """Return a hash of how an audit from the registry is made.

    Args:
        audit: From :func:`~ragwitness.membership.registry.build_audit`; one made by hand may
            hold more than its configuration says.
        proxy: Name of the model that reads for it.
    """
    config = getattr(audit, "config", None)
    settings = (
        None if config is None else TypeAdapter(type(config)).dump_python(config, mode="json")
    )
    kind = type(audit)
    made_of = [version("ragwitness"), kind.__module__, kind.__qualname__, settings, proxy]
    return _hash(made_of)


def unit_id(identity: str, target: str, document: Document) -> str:
    """Return the content address of a unit.

    Args:
        identity: From :func:`audit_identity`.
        target: Name of the system that is asked.
        document: Its id counts: several audits draw their questions by it.
    """
    return _hash([identity, target, document.id, document.text])


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
