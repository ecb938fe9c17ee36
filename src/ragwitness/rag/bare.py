"""A language model alone behind the same protocol: no passages, no instruction of ours."""

from __future__ import annotations

from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index import LexicalIndex
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem
from ragwitness.rag.prompts import PromptTemplate
from ragwitness.types import Message, Role

__all__ = ["BareSystem"]


class BareSystem(RagSystem):
    """Hands a query to the model as its user's only message, and continues a raw text as it is.

    Args:
        generator: Answers, and reads a text without a conversation.
        name: By which it is loaded, for reports.
    """

    def __init__(self, generator: LanguageModel, name: str = "") -> None:
        config = RagConfig(
            retrieve=False,
            template=PromptTemplate("none", ""),
            generator=name or generator.name,
            completion_task="",
        )
        super().__init__([Passage("", 0, 1, "-")], LexicalIndex(["-"]), generator, config)

    def prompt(self, query: str, max_tokens: int = 256) -> ChatPrompt:
        """Return the query as the only message.

        Raises:
            QueryTooLongError: The model cannot read it.
        """
        del max_tokens  # nothing of ours makes room
        return self._checked(ChatPrompt((Message(Role.USER, query),)), query)

    def completion_prompt(self, text: str, max_tokens: int = 256) -> ChatPrompt:
        """Return the text alone, without a conversation.

        Raises:
            QueryTooLongError: The model cannot read it.
        """
        del max_tokens
        return self._checked(ChatPrompt((), text), text)

    def describe(self) -> dict[str, str | int | bool]:
        """Return everything in use, for people."""
        return {
            "generator": self.generator.name,
            "context length": self.generator.context_length,
            "passages": "none: the model alone",
        }

    def _checked(self, prompt: ChatPrompt, text: str) -> ChatPrompt:
        tokens, limit = self.generator.count_tokens(text) + 1, self.generator.context_length
        if tokens > limit:
            raise QueryTooLongError(tokens, limit)
        return prompt
