"""Stored results as the pages see them, each told by its fields."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ragwitness.report.jsonout import from_json
from ragwitness.report.restoring import restored
from ragwitness.runs.result import AuditResult
from ragwitness.web.tables import Reproduced

if TYPE_CHECKING:
    from ragwitness.runs.battery import Battery
    from ragwitness.runs.comparison import Comparison
    from ragwitness.runs.leak_score import LeakResult

__all__ = ["CanaryProbe", "Collection", "Kind", "Making", "Result", "parsed"]


class Kind(enum.StrEnum):
    """What a run folder holds; the value is what it is called."""

    AUDIT = "audit"
    COLLECTION = "collection"
    EVALUATION = "evaluation"
    LEAK = "leak"
    COMPARISON = "comparison"
    SYNTHESIS = "synthesis"
    CANARY = "canaries"
    TABLE = "reproduced table"
    UNFINISHED = "not finished"
    BROKEN = "not readable"


@dataclass(frozen=True, slots=True)
class Collection:
    """The result of ``ragwitness owner``.

    Attributes:
        method: Name of the audit.
        target: Name of the system.
        alpha: Level.
        decided: Whether "the collection is like documents outside" is refused.
        log10_e: Decimal logarithm of the e-value.
        p_value: Anytime-valid.
        documents_asked: Until it was decided.
        documents: In the collection.
        known_out: Scored documents known to be outside.
        unscorable: Documents left out.
        queries: Calibration included.
        seconds: Wall time.
        path: log10 of the e-value after each scored document.
        permutation_p_value: Over all documents; None after an early stop.
    """

    method: str
    target: str
    alpha: float
    decided: bool
    log10_e: float
    p_value: float
    documents_asked: int
    documents: int
    known_out: int
    unscorable: int
    queries: int
    seconds: float
    path: tuple[float, ...]
    permutation_p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Making:
    """The result of ``ragwitness synthesize``; it holds no text.

    Attributes:
        method: How texts were made.
        model: Name of the language model; empty without one.
        settings: Everything that the texts follow from.
        counts: Records by what became of them.
        reasons: Records by why there is no text.
        queries: To the model, kept answers included.
        seconds: Wall time of the last start.
        warnings: What to know before the texts are used.
        out: Where the texts went; None where none passed.
    """

    method: str
    model: str
    settings: dict[str, str]
    counts: dict[str, int]
    reasons: dict[str, int]
    queries: int
    seconds: float
    warnings: tuple[str, ...]
    out: str | None


@dataclass(frozen=True, slots=True)
class CanaryProbe:
    """The result of ``ragwitness canary probe``, in words.

    Attributes:
        target: Name of the system.
        release: What the user calls this release of the model.
        way: How it was asked.
        said: The verdict and what it means, a sentence or two each.
        settings: Everything in use.
        warnings: What to know before relying on it.
        queries: It took, kept answers included.
        seconds: Wall time.
    """

    target: str
    release: str
    way: str
    said: tuple[str, ...]
    settings: dict[str, str]
    warnings: tuple[str, ...]
    queries: int
    seconds: float


Result: TypeAlias = (
    "AuditResult | Battery | CanaryProbe | Collection | Comparison | LeakResult | Making"
    " | Reproduced"
)


def parsed(data: Mapping[str, Any]) -> tuple[Kind, Result]:
    """Return what a stored result is of, and the result.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    if data.get("kind") == "leak":
        from ragwitness.report.leak import leak_from_json

        return Kind.LEAK, leak_from_json(data)
    if data.get("kind") == "comparison":
        from ragwitness.report.compare import comparison_from_json

        return Kind.COMPARISON, comparison_from_json(data)
    if data.get("kind") == "canary":
        return Kind.CANARY, _probe(data)
    if "audits" in data:
        from ragwitness.report.stored import battery_from_json

        return Kind.EVALUATION, battery_from_json(data)
    if "summary" not in data and "log10_e" in data:
        return Kind.COLLECTION, restored(Collection, data, "owner")
    if "counts" in data and "reasons" in data:
        return Kind.SYNTHESIS, restored(Making, data, "synthesize")
    return Kind.AUDIT, from_json(data)


def _probe(data: Mapping[str, Any]) -> CanaryProbe:
    from ragwitness.report.canary import told

    names = ("target", "release", "way", "settings", "warnings", "queries", "seconds")
    fields = {name: data.get(name) for name in names}
    return restored(CanaryProbe, {**fields, "said": told(data)}, "canary probe")
