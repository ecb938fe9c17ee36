"""Which documents the p-values are ranked against, and what that assumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.runs.result import Calibration
from ragwitness.types import Document

__all__ = ["Reference", "choose_reference", "describe", "distinct"]

_MOST = 200  # auxiliary documents asked of the target for calibration


@dataclass(frozen=True, slots=True)
class Reference:
    """Documents outside the target.

    Attributes:
        documents: They are put to the target like the audited ones.
        source: ``"known-out"``, ``"auxiliary"`` or ``"generated"``.
        exact: Whether the user vouches that they are like the audited non-members.
        note: The assumption, in one sentence.
        warning: What to beware of; None where the user vouches.
    """

    documents: tuple[Document, ...]
    source: str
    exact: bool
    note: str
    warning: str | None = None


def distinct(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with each text once: a copy is no further evidence."""
    return tuple({document.text: document for document in reversed(documents)}.values())[::-1]


def choose_reference(
    known_out: Sequence[Document], auxiliary_given: bool, spare: Sequence[Document]
) -> Reference:
    """Take the user's known-out documents, or else auxiliary ones the shadow never saw."""
    if known_out:
        return Reference(
            tuple(known_out),
            "known-out",
            True,
            "P-values hold if the audited documents that are outside are like the --known-out"
            " ones in kind.",
        )
    source = "auxiliary" if auxiliary_given else "generated"
    return Reference(
        tuple(spare[:_MOST]),
        source,
        False,
        f"P-values hold as far as the {source} documents are like the audited ones that are"
        " outside, which nobody has said.",
        "No --known-out was given: the p-values are approximate. Do not accuse on them alone.",
    )


def describe(reference: Reference, scores: Sequence[float]) -> Calibration:
    """Return what the result keeps of the calibration."""
    return Calibration(
        reference.source, len(scores), reference.exact, reference.note, tuple(scores)
    )
