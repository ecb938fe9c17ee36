"""A RAG system of ours as a target, in this process: the same answers as over HTTP."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from dataclasses import replace

from ragwitness.core.errors import TargetResponseError
from ragwitness.core.stored_names import unset
from ragwitness.core.threads import in_thread
from ragwitness.core.types import Answer, Capability, Message, Query, Role, TokenLogprob
from ragwitness.crypto.hashing import text_digest
from ragwitness.models.base import ChatPrompt, LanguageModel, TextScores
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import PromptTemplate, RagConfig
from ragwitness.rag.index import LexicalIndex
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem

# Raw texts scored and continued, as the completions protocol tells it.


def completed(
    system: RagSystem, query: Query, stop: tuple[str, ...] = (), *, echo: bool = False
) -> Answer:
    """Continue a raw text; with ``echo`` the text and its tokens come first.

    Raises:
        QueryTooLongError: It does not fit even without any passage.
        ModelError: The generator failed.
    """
    scored = echo and query.top_logprobs > 0
    scores, generation = system.complete(query, scored=scored, stop=stop)
    text, tokens = (query.prompt, echo_tokens(query.prompt, scores)) if echo else ("", ())
    read = system.generator.count_tokens(query.prompt)
    if generation is None:
        return Answer(text, tokens, "length", read, 0)
    return Answer(
        text + generation.text,
        (*tokens, *generation.tokens),
        generation.finish_reason,
        read,
        generation.completion_tokens,
    )


def echo_tokens(text: str, scores: TextScores | None) -> tuple[TokenLogprob, ...]:
    """Return one entry per token, the first without a log-probability (NaN).

    Each token is the slice of the text from its first character to the next token's, so
    that they join to the text.
    """
    if scores is None or not len(scores.ids):
        return ()
    # Slices from token to token: joined, they are the text.
    starts = [0, *(int(start) for start in scores.offsets[1:, 0]), len(text)]
    tokens = [
        TokenLogprob(
            text[starts[i] : starts[i + 1]],
            float(scores.logprobs[i]),
            scores.tokens[i].top if scores.tokens else (),
        )
        for i in range(len(scores.ids))
    ]
    # As in the protocol: the first token has no context that could predict it.
    tokens[0] = TokenLogprob(tokens[0].token, math.nan)
    return tuple(tokens)


class LabTarget:
    """Asks a :class:`~ragwitness.rag.pipeline.RagSystem` and shows nothing of its inside.

    Args:
        system: The system under audit.
        shows: Whether answers come with the passages retrieved; for the system's owner alone.

    Attributes:
        name: A hash over corpus, settings and models: the same name is the same system.
        system: The system itself, for its owner.
    """

    def __init__(self, system: RagSystem, *, shows: bool = False) -> None:
        self.system = system
        self._shows = shows
        self.name = f"lab:{_fingerprint(system)}"
        # As many answers at a time as keep the generator busy, wherever it works.
        self._turns = threading.BoundedSemaphore(system.parallel)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Text, alternatives of generated tokens, and scores of prompts where the model can."""
        passages = {Capability.CONTEXTS} if self._shows else set()
        scored = getattr(self.system.generator, "can_score", True)
        scoring = {Capability.PROMPT_LOGPROBS} if scored else set()
        return frozenset(scoring | passages | {Capability.TEXT, Capability.TOP_LOGPROBS})

    def for_owner(self) -> LabTarget:
        """Return the same system with the passages it retrieved in its answers."""
        return LabTarget(self.system, shows=True)

    async def ask(self, query: Query) -> Answer:
        """Answer one query in a worker thread.

        Raises:
            TargetResponseError: The query does not fit the generator.
            ModelError: The generator failed.
        """
        return await in_thread(self._ask, query)

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        """Score a text under the passages it retrieves.

        Args:
            text: The text to score.
            top: Alternatives per token.

        Returns:
            One entry per token; the first has the log-probability NaN, as over HTTP.

        Raises:
            TargetResponseError: The text does not fit the generator.
            ModelError: The generator failed.
        """
        return await in_thread(self._echo, text, top)

    async def go_on(self, query: Query) -> Answer:
        """Continue a raw text under the passages it retrieves.

        Raises:
            TargetResponseError: The text does not fit the generator.
            ModelError: The generator failed.
        """
        return await in_thread(self._go_on, query)

    async def close(self) -> None:
        """Nothing to release."""

    def _ask(self, query: Query) -> Answer:
        with self._turns:
            try:
                answer = self.system.answer(query)
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error
            return replace(answer, contexts=self._contexts(query)) if self._shows else answer

    def _contexts(self, query: Query) -> tuple[str, ...]:
        """All that is retrieved, what did not fit the generator's prompt included."""
        hits = self.system.retrieve(query.prompt)
        return tuple(self.system.passages[hit.index].text for hit in hits)

    def _go_on(self, query: Query) -> Answer:
        with self._turns:
            try:
                return completed(self.system, query)
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error

    def _echo(self, text: str, top: int) -> tuple[TokenLogprob, ...]:
        query = Query(text, max_tokens=0, top_logprobs=top)
        with self._turns:
            try:
                scores, _ = self.system.complete(query, scored=True)
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error
        return echo_tokens(text, scores)


def _fingerprint(system: RagSystem) -> str:
    """Hash of everything that decides an answer."""
    settings = dataclasses.asdict(system.config)
    for name in unset(system.config.template):  # fields that are newer than stored identities
        del settings["template"][name]
    del settings["index"]  # the name of the index, which follows, says more
    inside = [settings, system.index.name, system.generator.name]
    pairs = ((entry.text, entry.key) for entry in system.passages)
    texts = (text for pair in pairs for text in pair if text is not None)
    return text_digest(texts, json.dumps(inside, sort_keys=True).encode())[:16]


# A language model alone behind the same protocol: no passages and no added instruction.


class BareSystem(RagSystem):
    """Hands a query to the model as its user's only message, and continues a raw text as it is.

    Args:
        generator: Answers, and reads a text without a conversation.
        name: Name by which the generator is loaded, for reports.
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
