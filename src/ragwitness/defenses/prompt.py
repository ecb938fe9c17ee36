"""Prompt modification: the system prompt forbids what an audit asks for."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.defenses.base import Defense
from ragwitness.rag.prompts import TEMPLATES, PromptTemplate

__all__ = ["PromptModification"]


@dataclass(frozen=True)
class PromptModification(Defense):
    """Puts another system prompt in the place of the system's own.

    Attributes:
        replacement: The prompt with defense intent (S-RAG, Fig. 3).
    """

    replacement: PromptTemplate = TEMPLATES["defended"]

    @property
    def name(self) -> str:
        """The prompt's name, and its text where it is not one of ours."""
        known = TEMPLATES.get(self.replacement.name) == self.replacement
        shown = self.replacement.name if known else repr(self.replacement)
        return f"prompt({shown})"

    def template(self, template: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the replacement (S-RAG, §5.3: "alters the RAG prompt template")."""
        return self.replacement
