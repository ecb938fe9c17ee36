"""A RAG system we own: retrieve, write the prompt, generate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragwitness.errors import InputError
from ragwitness.models.base import ChatPrompt, Generation, LanguageModel, TextScores
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import RagConfig
from ragwitness.rag.fitting import FitCounts, FitLog, fit_passages
from ragwitness.rag.index import Hit, Index
from ragwitness.types import Answer, Message, Query, Role

__all__ = ["PARALLEL", "Echo", "QueryTooLongError", "RagSystem"]

# A text's tokens may differ by a few inside a conversation.
_SLACK = 8

PARALLEL = min(4, os.cpu_count() or 1)
"""Answers made at a time: one per core; more would fight for them."""


class QueryTooLongError(InputError):
    """The query alone leaves the generator no room to answer.

    Args:
        tokens: Length of the query with the system's instruction.
        limit: What the generator can read.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(
            f"The query has {tokens} tokens with its instructions, "
            f"but the model reads at most {limit}, its answer included.",
            "Shorten the query or ask for fewer tokens.",
        )


@dataclass(frozen=True, slots=True)
class Echo:
    """A text scored under its retrieved passages, and its continuation.

    Attributes:
        scores: Teacher-forced scores of the text; None where they were not asked for.
        generation: What follows the text; None where no token was asked for.
    """

    scores: TextScores | None
    generation: Generation | None


class RagSystem:
    """Answers queries over a database of passages.

    The query is used verbatim, for retrieval and as the user's message; the passages
    stand in the system message.

    Args:
        passages: The database.
        index: Built from the passages' texts, in the same order.
        generator: Writes the answers.
        config: Settings.

    Raises:
        InputError: No passages, or the index is over another number of them.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        index: Index,
        generator: LanguageModel,
        config: RagConfig,
    ) -> None:
        if not passages:
            raise InputError(
                "The corpus has no text to index.", "Give documents that are not blank."
            )
        if len(index) != len(passages):
            raise InputError(
                f"The index holds {len(index)} passages, but there are {len(passages)}.",
                "Build the index from the same passages.",
            )
        self.passages = tuple(passages)
        self.index = index
        self.generator = generator
        self.config = config
        self._fit_log = FitLog()
        self._overhead = _chat_overhead(generator)

    @property
    def fit_counts(self) -> FitCounts:
        """How many prompts had to lose passages so far."""
        return self._fit_log.counts

    def retrieve(self, query: str) -> list[Hit]:
        """Return the hits of a query, nearest first; none in the control without retrieval."""
        return self.index.search(query, self.config.k) if self.config.retrieve else []

    def prompt(self, query: str, max_tokens: int = 256) -> ChatPrompt:
        """Return what the generator is given for a query.

        Args:
            query: What the user types.
            max_tokens: Room kept for the answer, up to a quarter of the context length.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
        """
        return self._prompt(query, query, "", max_tokens)

    def completion_prompt(self, text: str, max_tokens: int = 256) -> ChatPrompt:
        """Return what the generator is given to continue or score a raw text.

        The text retrieves, and then is the assistant's own beginning.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
        """
        return self._prompt(text, self.config.completion_task, text, max_tokens)

    def answer(self, query: Query, stop: Sequence[str] = ()) -> Answer:
        """Answer one query.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
            ModelError: The generator failed.
        """
        prompt = self.prompt(query.prompt, query.max_tokens)
        generation = self._generate(prompt, query, stop)
        return Answer(
            text=generation.text,
            tokens=generation.tokens if query.top_logprobs else None,
            finish_reason=generation.finish_reason,
            # The whole prompt's length would tell how long the retrieved passages are.
            prompt_tokens=self.generator.count_tokens(query.prompt),
            completion_tokens=generation.completion_tokens,
        )

    def complete(self, query: Query, *, scored: bool = False, stop: Sequence[str] = ()) -> Echo:
        """Continue a raw text, and score the text itself where asked to.

        Args:
            query: ``prompt`` is the text; ``max_tokens`` may be 0.
            scored: Whether the text's own tokens are scored, teacher-forced under the
                passages it retrieves.
            stop: Strings that end the continuation.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
            ModelError: The generator failed.
        """
        prompt = self.completion_prompt(query.prompt, query.max_tokens)
        scores = None
        if scored and query.prompt:
            bare = replace(prompt, prefill="")
            top = query.top_logprobs
            scores = self.generator.score([query.prompt], after=[bare], top=top)[0]
        generation = self._generate(prompt, query, stop) if query.max_tokens else None
        return Echo(scores, generation)

    def describe(self) -> dict[str, str | int | bool]:
        """Return everything in use, for people."""
        config = self.config
        return {
            "documents": len({passage.document for passage in self.passages}),
            "passages": len(self.passages),
            "words per passage": f"at most {config.chunk_words}, {config.chunk_overlap} shared",
            "retrieval": self.index.name if config.retrieve else "off",
            "k": config.k,
            "template": config.template.name,
            "generator": self.generator.name,
            "context length": self.generator.context_length,
        }

    def _prompt(self, key: str, user: str, prefill: str, max_tokens: int) -> ChatPrompt:
        """Write the prompt over the passages that ``key`` retrieves, as many as fit."""
        count, limit = self.generator.count_tokens, self.generator.context_length
        # A generous limit is no reason to lose passages: most answers end long before it.
        room = min(max_tokens, limit // 4)
        fixed = count(user) + (count(prefill) if prefill else 0) + self._overhead + room
        render = self.config.template.render

        def fits(passages: Sequence[str]) -> bool:
            return count(render(passages)) + fixed <= limit

        found = [self.passages[hit.index].text for hit in self.retrieve(key)]
        kept, dropped, cut = fit_passages(found, fits)
        if not kept and not fits(()):
            raise QueryTooLongError(count(render(())) + fixed - room, limit)
        self._fit_log.add(dropped=dropped, cut=cut)
        system, question = Message(Role.SYSTEM, render(kept)), Message(Role.USER, user)
        return ChatPrompt((system, question), prefill)

    def _generate(self, prompt: ChatPrompt, query: Query, stop: Sequence[str]) -> Generation:
        return self.generator.generate(
            [prompt],
            max_tokens=min(query.max_tokens, self._room(prompt)),
            temperature=query.temperature,
            top_logprobs=query.top_logprobs,
            stop=stop,
            seed=query.seed,
        )[0]

    def _room(self, prompt: ChatPrompt) -> int:
        """Tokens that can still be generated after a prompt."""
        count = self.generator.count_tokens
        used = sum(count(message.content) for message in prompt.messages)
        used += count(prompt.prefill) if prompt.prefill else 0
        return max(1, self.generator.context_length - used - self._overhead)


def _chat_overhead(generator: LanguageModel) -> int:
    """Tokens of a conversation beyond its texts: role markers, end tokens, a date line."""
    word = "a"
    shortest = ChatPrompt((Message(Role.SYSTEM, word), Message(Role.USER, word)))
    read = generator.score([word], after=[shortest])[0].prompt_tokens
    return max(0, read - 2 * generator.count_tokens(word)) + _SLACK
