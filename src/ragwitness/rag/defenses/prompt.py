"""Prompt modification: the system prompt forbids what an audit asks for."""

from __future__ import annotations

from ragwitness.rag.config import TEMPLATES, PromptTemplate
from ragwitness.rag.defenses.base import Defense


class PromptModification(Defense):
    """Puts the prompt with defense intent (S-RAG, Fig. 3) in the place of the system's own."""

    name = "prompt(defended)"

    def template(self, template: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the replacement (S-RAG, §5.3: "alters the RAG prompt template")."""
        return TEMPLATES["defended"]
