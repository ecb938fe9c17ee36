"""The user's query in other words, before it retrieves (S-RAG §5.3, after Li et al. 2024)."""

from __future__ import annotations

from functools import lru_cache

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.defenses.base import Defense
from ragwitness.rag.pipeline import QueryTooLongError

_PROMPT = "Please paraphrase the following sentence. Output only the paraphrase sentence.\n\n"
_SLACK = 64  # tokens a conversation may need beside its texts
_QUOTES = {'"': '"', "\u201c": "\u201d", "'": "'"}
_CACHED = 1 << 14  # rewritten queries


class QueryRewriting(Defense):
    """Rewrites the query that retrieves; the generator is still given what the user typed.

    S-RAG's paraphrasing "rewrites queries to mislead the retriever" (§5.3).

    Args:
        model: Greedy, so that the same query is rewritten the same way; None stands for the
            generator of the system that is defended.
    """

    def __init__(self, model: LanguageModel | None = None) -> None:
        self.model = model
        # The evaluation of retrieval asks for a query's rewrite again.
        self._by_model = lru_cache(maxsize=_CACHED)(self._ask)

    @property
    def name(self) -> str:
        """The name with the model, as stored answers know it."""
        writer = "the generator" if self.model is None else self.model.name
        return f"paraphrase(retrieve by {writer})"

    def bound(self, generator: LanguageModel) -> Defense:
        """Return the defense with a model: its own, or else the generator of the system."""
        return self if self.model is not None else QueryRewriting(generator)

    def rewrite(self, query: str) -> str:
        """Return the query in other words; a blank query stays as it is.

        Raises:
            QueryTooLongError: The model cannot read it and write as much again.
            ModelError: The model failed, or there is none.
        """
        return self._by_model(query) if query.strip() else query

    def _ask(self, query: str) -> str:
        if self.model is None:
            raise ModelError("The defense paraphrase has no model: put it before a system.")
        text = f"{_PROMPT}{query}"
        prompt_length, length = self.model.count_tokens(text), self.model.count_tokens(query)
        room = self.model.context_length - prompt_length - _SLACK
        if room < length:
            raise QueryTooLongError(prompt_length + length, self.model.context_length - _SLACK)
        prompt = ChatPrompt((Message(Role.USER, text),))
        reply = self.model.generate([prompt], max_tokens=min(room, 2 * length + 32))[0].text.strip()
        # An empty reply must not turn the query into one that retrieves nothing.
        return _unquoted(reply) or query


def _unquoted(text: str) -> str:
    """Return a reply without the quotes that a model puts around all of it."""
    inner = text[1:-1]
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1] and not set(inner) & {text[0], text[-1]}:
        return inner.strip()
    return text
