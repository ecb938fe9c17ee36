"""A RAG system we own: retrieve, write the prompt, generate."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document, Query
from ragwitness.models.base import (
    ChatPrompt,
    Embedder,
    Generation,
    LanguageModel,
    PromptTooLongError,
    TextScores,
)
from ragwitness.rag.chunk import (
    Passage,
    chat_overhead,
    chunk_documents,
    fit_passages,
)
from ragwitness.rag.config import DefendedConfig, PromptTemplate, RagConfig
from ragwitness.rag.index import DenseIndex, Hit, Index, LexicalIndex

PARALLEL = min(4, os.cpu_count() or 1)
"""Answers made at a time: one per core; more would fight for them. See ``RagSystem.parallel``."""


_ANSWER = 256
"""Tokens of an answer for which a usual prompt must leave room."""


class QueryTooLongError(InputError):
    """The query alone leaves the generator no room to answer.

    Args:
        tokens: Length of the query with the system's instruction.
        limit: The most tokens that the generator reads.
        message: The error of the generator, if it counted itself.
    """

    def __init__(self, tokens: int, limit: int, message: str = "") -> None:
        super().__init__(
            message
            or f"The query has {tokens} tokens with its instructions, "
            f"but the model reads at most {limit}, its answer included.",
            "Shorten the query or ask for fewer tokens.",
        )


@dataclass(frozen=True, slots=True)
class Lookup:
    """One search, as a defense sees it.

    Attributes:
        query: The search text, as rewritten.
        k: Passages that may go on to the generator.
        passages: The whole database; a hit's index points into it.
        distances: Whether the hits' scores are negative Euclidean distances.
    """

    query: str
    k: int
    passages: Sequence[Passage]
    distances: bool


class DefenseHook(Protocol):
    """The hooks of a defense; see :mod:`ragwitness.rag.defenses`."""

    @property
    def name(self) -> str:
        """The defense with every parameter; part of a target's identity."""

    def rewrite(self, query: str) -> str:
        """Return what the index is given in the query's stead."""

    def candidates(self, k: int, size: int) -> int:
        """Return how many hits it wants to see, of ``size`` passages."""

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the hits that stay, best first; the first ``lookup.k`` are used."""

    def template(self, template: PromptTemplate) -> PromptTemplate:
        """Return the template in use."""


class RagSystem:
    """Answers queries over a database of passages.

    The query is used verbatim, for retrieval and as the user's message; the passages
    are in the system message. A defense may change what is searched for, the hits and the
    system message.

    Args:
        passages: The database.
        index: Built from the passages' texts, in the same order.
        generator: Writes the answers.
        config: Settings.
        defense: Stands between the query and the generator; None: nothing does.

    Raises:
        InputError: No passages, the index is over another number of them, or the settings
            are those of a system behind another defense.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        index: Index,
        generator: LanguageModel,
        config: RagConfig,
        defense: DefenseHook | None = None,
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
        self.defense = defense
        self.config, self._template = _defended(config, defense)
        # Prompts that had to lose passages, and all of them; for the server of the system.
        self.shortened = self.prompts = 0
        self._counting = threading.Lock()
        self._overhead = chat_overhead(generator, self._template)

    @property
    def parallel(self) -> int:
        """Answers worth making at a time; more than cores where the generator batches them."""
        return int(getattr(self.generator, "callers", PARALLEL))

    def retrieve(self, query: str) -> list[Hit]:
        """Return the hits of a query, nearest first; none in the control without retrieval."""
        k, defense = self.config.k, self.defense
        if not self.config.retrieve:
            return []
        if defense is None:
            return self.index.search(query, k)
        # A defense may rewrite what retrieves, ask for more hits, and drop some of them.
        key = defense.rewrite(query)
        distances = isinstance(self.index, DenseIndex) and self.config.metric == "l2"
        # More candidates than k where the defense is going to drop some: k passages still arrive.
        hits = self.index.search(key, defense.candidates(k, len(self.index)))
        return defense.select(hits, Lookup(key, k, self.passages, distances))[:k]

    def prompt(self, query: str, max_tokens: int = 256) -> ChatPrompt:
        """Return what the generator is given for a query.

        Args:
            query: The user's text.
            max_tokens: Room kept for the answer, up to a quarter of the context length.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
        """
        return self._prompt(query, query, "", max_tokens)

    def completion_prompt(self, text: str, max_tokens: int = 256) -> ChatPrompt:
        """Return what the generator is given to continue or score a raw text.

        The text retrieves, and then is the assistant's own beginning; a defense may rewrite
        what retrieves, but not what is continued.

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
        # 1. Retrieve and fill in the template. 2. Generate. 3. Show only what a client may see.
        prompt = self.prompt(query.prompt, query.max_tokens)
        generation = self._generate(prompt, query, stop)
        lacking = bool(generation.text and not generation.tokens)
        return Answer(
            text=generation.text,
            # An endpoint may leave out what it was asked for; an empty answer has no tokens.
            tokens=generation.tokens if query.top_logprobs and not lacking else None,
            finish_reason=generation.finish_reason,
            # The whole prompt's length would tell how long the retrieved passages are.
            prompt_tokens=self.generator.count_tokens(query.prompt),
            completion_tokens=generation.completion_tokens,
        )

    def complete(
        self, query: Query, *, scored: bool = False, stop: Sequence[str] = ()
    ) -> tuple[TextScores | None, Generation | None]:
        """Continue a raw text, and score the text itself where asked to.

        Args:
            query: ``prompt`` is the text; ``max_tokens`` may be 0.
            scored: Whether the text's own tokens are scored, teacher-forced under the
                passages it retrieves.
            stop: Strings that end the continuation.

        Returns:
            Scores of the text, None where they were not asked for; and what follows it, None
            where no token was asked for.

        Raises:
            QueryTooLongError: It does not fit even without any passage.
            ModelError: The generator failed.
        """
        prompt = self.completion_prompt(query.prompt, query.max_tokens)
        scores = None
        if scored and query.prompt:
            # The text is scored in the place of the prefill, under the passages that it retrieves.
            bare = replace(prompt, prefill="")
            top = query.top_logprobs
            scores = self.generator.score([query.prompt], after=[bare], top=top)[0]
        generation = self._generate(prompt, query, stop) if query.max_tokens else None
        return scores, generation

    def describe(self) -> dict[str, str | int | bool]:
        """Return everything in use, for people."""
        config = self.config
        description: dict[str, str | int | bool] = {
            "documents": len({passage.document for passage in self.passages}),
            "passages": len(self.passages),
            "words per passage": f"at most {config.chunk_words}, {config.chunk_overlap} shared",
            "retrieval": self.index.name if config.retrieve else "off",
            "k": config.k,
            "template": self._template.name,
            "generator": self.generator.name,
            "context length": self.generator.context_length,
        }
        return description if self.defense is None else description | {"defense": self.defense.name}

    def _prompt(self, key: str, user: str, prefill: str, max_tokens: int) -> ChatPrompt:
        """Write the prompt over the passages that ``key`` retrieves, as many as fit."""
        count, limit = self.generator.count_tokens, self.generator.context_length
        # A generous limit is no reason to lose passages: most answers end long before it.
        room = min(max_tokens, limit // 4)
        fixed = (count(prefill) if prefill else 0) + self._overhead + room

        def length(passages: Sequence[str]) -> int:
            messages = self._template.messages(passages, user)
            return sum(count(message.content) for message in messages)

        def fits(passages: Sequence[str]) -> bool:
            return length(passages) + fixed <= limit

        # Retrieve, then drop or cut what does not fit.
        retrieved = [self.passages[hit.index].text for hit in self.retrieve(key)]
        fitting = fit_passages(retrieved, fits)
        if not fitting and not fits(()):
            raise QueryTooLongError(length(()) + fixed - room, limit)
        with self._counting:
            self.prompts += 1
            self.shortened += fitting != retrieved
        return ChatPrompt(self._template.messages(fitting, user), prefill)

    def check_room(self) -> None:
        """Refuse a generator that most prompts would not fit, before anything is asked of it.

        Raises:
            InputError: Prompt, ``k`` passages of median length and an answer do not fit.
        """
        if not self.config.retrieve:
            return
        by_length = sorted((passage.text for passage in self.passages), key=len)
        usual = [by_length[len(by_length) // 2]] * min(self.config.k, len(by_length))
        count, limit = self.generator.count_tokens, self.generator.context_length
        prompt = sum(count(message.content) for message in self._template.messages(usual, ""))
        needed = prompt + self._overhead + min(_ANSWER, limit // 4)
        if needed > limit:
            raise InputError(
                f"{self.generator.name} reads {limit} tokens, but {len(usual)} passages of usual"
                f" length with the prompt and room for an answer are {needed}.",
                "Retrieve fewer passages (k) or shorter ones (chunk words), or name a model that"
                " reads more.",
            )

    def _generate(self, prompt: ChatPrompt, query: Query, stop: Sequence[str]) -> Generation:
        try:
            return self.generator.generate(
                [prompt],
                max_tokens=min(query.max_tokens, self._room(prompt)),
                temperature=query.temperature,
                top_logprobs=query.top_logprobs,
                stop=stop,
                seed=query.seed,
            )[0]
        except PromptTooLongError as error:  # an endpoint knows better than our estimate
            raise QueryTooLongError(0, self.generator.context_length, error.message) from None

    def _room(self, prompt: ChatPrompt) -> int:
        """Tokens that can still be generated after a prompt."""
        count = self.generator.count_tokens
        used = sum(count(message.content) for message in prompt.messages)
        used += count(prompt.prefill) if prompt.prefill else 0
        return max(1, self.generator.context_length - used - self._overhead)


def _defended(config: RagConfig, defense: DefenseHook | None) -> tuple[RagConfig, PromptTemplate]:
    """The settings with the defense's name, and the template it leaves."""
    if defense is not None:
        return DefendedConfig.of(config, defense.name), defense.template(config.template)
    if isinstance(config, DefendedConfig):
        raise InputError(
            f"The settings name the defense {config.defense!r}, but none is given.",
            "Give the defense too, or take the undefended system's settings.",
        )
    return config, config.template


# Builds a RAG system from documents, loading what its settings name.


def build_system(
    documents: Iterable[Document],
    config: RagConfig | None = None,
    *,
    generator: LanguageModel | None = None,
    embedder: Embedder | None = None,
    originals: Mapping[str, str] | None = None,
) -> RagSystem:
    """Chunk and index documents, and put a generator before them.

    Args:
        documents: The database.
        config: Settings; the defaults where None.
        generator: Used instead of loading ``config.generator``.
        embedder: Used instead of loading ``config.retrieval``; ignored in lexical
            retrieval.
        originals: Texts by id that documents are found by in place of their own: SAGE finds a
            record by the original's vector and shows its synthetic text (Sec. 3, "when the
            original data is identified, the corresponding synthetic data is returned"). The
            index then holds the originals.

    Raises:
        InputError: No document holds text, a setting is unusable, or an original is missing.
        MissingExtraError: A model needs an extra that is not installed.
        ModelError: A model cannot be loaded.
        TargetError: The embeddings endpoint does not answer.
    """
    config = config or RagConfig()
    # 1. Documents become passages. 2. Their keys, which are found, may differ from their text,
    # which is shown. 3. Index and generator are loaded last: a mistake above costs no model.
    passages = chunk_documents(documents, config.chunk_words, config.chunk_overlap)
    if originals is not None:
        passages = _found_by(originals, passages)
    texts = [passage.text if passage.key is None else passage.key for passage in passages]
    index: Index
    if config.retrieval == "lexical":
        index = LexicalIndex(texts)
    else:
        from ragwitness.models.model_registry import load_embedder

        embedder = embedder or load_embedder(config.retrieval)
        index = DenseIndex(texts, embedder, config.metric)
    return RagSystem(passages, index, generator or _load_generator(config.generator), config)


def _load_generator(spec: str) -> LanguageModel:
    from ragwitness.models.model_registry import load_language_model

    return load_language_model(spec)


def _found_by(originals: Mapping[str, str], passages: Sequence[Passage]) -> list[Passage]:
    """Give every passage its whole original as key."""
    if unknown := sorted({passage.document for passage in passages} - set(originals)):
        raise InputError(
            f"{len(unknown)} documents have no original, the first {unknown[0]!r}.",
            "Give texts under the ids of their originals, or let them be found by their own text.",
        )
    return [replace(passage, key=originals[passage.document]) for passage in passages]
