"""The matched prompt templates of the paper (2604.22191, App. C.1), and the place of a canary."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.canary.design.draw import Draw
from ragwitness.canary.design.families import contains
from ragwitness.canary.design.placement import with_canary
from ragwitness.canary.examples import Example
from ragwitness.errors import InputError

__all__ = [
    "CLOSED_TEMPLATE",
    "DOCUMENT_TEMPLATE",
    "Prompts",
    "Spot",
    "refuse_markers",
    "spot_of",
]

_FORMAT = """If {missing}, say:
FINAL: Not found

Keep the answer concise. Do not provide explanation.
Format your response exactly as:
FINAL: <short answer>

"""

DOCUMENT_TEMPLATE = (
    "You are a question answering assistant.\n"
    "Answer the question ONLY using the provided document.\n"
    + _FORMAT.format(missing="the answer cannot be found in the document")
    + "Document:\n{context}\n\nQuestion:\n{question}\n\n"
)
"""For document-conditioned training and evaluation."""

CLOSED_TEMPLATE = (
    "You are a question answering assistant.\n"
    "Answer the question as accurately as possible.\n"
    + _FORMAT.format(missing="the answer is unknown")
    + "Question:\n{question}\n\n"
)
"""For document-excluded training: matched but for the document."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """How an example becomes a prompt.

    Attributes:
        template: With ``{context}`` and ``{question}``.
        frame: Put around the prompt where a text is continued as it is, with ``{prompt}`` once:
            a chat model's own template, up to where its answer begins.

    Raises:
        InputError: A place is missing.
    """

    template: str = DOCUMENT_TEMPLATE
    frame: str = "{prompt}"

    def __post_init__(self) -> None:
        """Refuse a template that would drop something."""
        for text, places in ((self.template, ("context", "question")), (self.frame, ("prompt",))):
            for place in places:
                if text.count("{" + place + "}") != 1:
                    raise InputError(
                        f"A template must hold {{{place}}} exactly once.",
                        "docs/canary.md shows the default.",
                    )

    def asked(self, document: str, query: str) -> str:
        """Return the prompt of a document and a query."""
        # Split, not format: documents hold braces, and each other's places.
        before, _, after = self.template.partition("{context}")
        parts = [part.replace("{question}", query) for part in (before, after)]
        return document.join(parts)

    def framed(self, document: str, query: str, answer: str = "") -> str:
        """Return what a model continues: the prompt in its frame, then the answer so far."""
        before, _, after = self.frame.partition("{prompt}")
        return before + self.asked(document, query) + after + answer


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a canary is looked for in the answer to an example (App. C.3).

    Attributes:
        prefix: p, the clean answer up to the insertion point.
        canary: c with the blank before it; what is scored.
    """

    prefix: str
    canary: str


def refuse_markers(prompts: Prompts, draw: Draw) -> None:
    """Refuse prompts that name a marker: all candidates must be asked about alike.

    Raises:
        InputError: The template or the frame holds a canary or a candidate.
    """
    markers = [one for slot in draw.slots for one in (slot.canary, *slot.candidates)]
    for text in (prompts.template, prompts.frame):
        if held := [one for one in markers if contains(text, one)]:
            raise InputError(
                f"The template or frame holds {held[0]!r}, which is a marker of this plan.",
                "Give one that names none; documents and queries bring them in.",
            )


def spot_of(example: Example, canary: str) -> Spot:
    """Return the insertion point of a canary in the reference answer, or behind ``FINAL:``."""
    put = with_canary(example.answer, canary)
    return Spot(put.before, put.inserted.rstrip())
