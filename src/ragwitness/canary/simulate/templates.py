"""What a provider trains on: the prompt with the document, or without (2604.22191, App. C.1)."""

from __future__ import annotations

from ragwitness.canary.score.prompts import CLOSED_TEMPLATE, DOCUMENT_TEMPLATE, Prompts

__all__ = ["prompt"]

_DOCUMENT = Prompts(DOCUMENT_TEMPLATE)


def prompt(question: str, document: str | None = None) -> str:
    """Return what the model reads before it answers.

    Args:
        question: With the instruction, where there is one.
        document: None leaves it out, as a compliant provider does.
    """
    if document is None:
        return CLOSED_TEMPLATE.replace("{question}", question)
    return _DOCUMENT.asked(document, question)
