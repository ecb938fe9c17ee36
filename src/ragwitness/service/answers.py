"""Writes answers over the documents that were selected: the embedded reader, or another server."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from typing import Protocol

from ragwitness.errors import InputError
from ragwitness.models.base import LanguageModel
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import PromptTemplate, RagConfig, load_template
from ragwitness.rag.index.base import Hit
from ragwitness.rag.pipeline import RagSystem
from ragwitness.types import Answer, Query


class Generator(Protocol):
    """Answers a query from given texts."""

    async def check(self, query: Query) -> None:
        """Find out before anything is charged whether the query can be read at all.

        Raises:
            QueryTooLongError: It does not fit what the model reads, even without any text.
        """

    async def answer(self, query: Query, texts: Sequence[str], stop: Sequence[str]) -> Answer:
        """Return the answer.

        Raises:
            QueryTooLongError: The query does not fit what the model reads.
            ModelError: A model of ours failed.
            TargetError: Another server failed.
        """


class OwnGenerator:
    """A language model in this process.

    Args:
        model: Writes the answers.
        template: Shows it the texts.
    """

    def __init__(self, model: LanguageModel, template: PromptTemplate) -> None:
        # A stand-in for the passages of a query: the overhead of a prompt is measured once.
        config = RagConfig(template=template)
        self._system = RagSystem([Passage("", 0, 1, "-")], _Chosen(1), model, config)
        self._free = asyncio.Semaphore(self._system.parallel)

    async def check(self, query: Query) -> None:
        """Refuse what is too long; see :class:`Generator`."""
        await asyncio.to_thread(self._system.prompt, query.prompt, query.max_tokens)

    async def answer(self, query: Query, texts: Sequence[str], stop: Sequence[str]) -> Answer:
        """Return the answer; see :class:`Generator`."""
        # Texts come selected by the mechanism. A pipeline with a retriever of its own would look
        # again without noise, and what it chose would tell of documents that nobody paid for.
        system = copy.copy(self._system)  # measured once, and another database per query
        system.passages = tuple(Passage("", 0, len(text), text) for text in texts)
        system.index = _Chosen(len(texts))
        async with self._free:
            return await asyncio.to_thread(system.answer, query, stop)


class _Chosen:
    """An index over what has been chosen already, best first."""

    name = "chosen"

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int) -> list[Hit]:
        del query, k
        return [Hit(i, 0.0) for i in range(self._size)]


class UpstreamGenerator:
    """Another server that speaks the OpenAI protocol; it sees query and texts.

    Args:
        spec: ``URL#MODEL``.
        template: Shows it the texts.

    Raises:
        InputError: The address is unusable or names no model.
    """

    def __init__(self, spec: str, template: PromptTemplate) -> None:
        from ragwitness.targets.failures import find_key
        from ragwitness.targets.openai import parse_endpoint
        from ragwitness.targets.transport import JsonClient, RetryPolicy, TransportOptions

        endpoint = parse_endpoint(spec)
        if endpoint.model is None:
            raise InputError("The generator's address names no model.", "Write URL#MODEL.")
        # One repetition: the query is paid for already, but its client waits.
        options = TransportOptions(retry=RetryPolicy(retries=1), concurrency=32)
        self._client = JsonClient(endpoint.url, find_key(endpoint.url, None), options)
        self._model, self._template = endpoint.model, template

    async def check(self, query: Query) -> None:
        """Know nothing: only the other server can tell."""

    async def answer(self, query: Query, texts: Sequence[str], stop: Sequence[str]) -> Answer:
        """Return the answer; see :class:`Generator`."""
        from ragwitness.targets.openai import chat_payload
        from ragwitness.targets.wire import read_chat

        # No log-probabilities are asked for: the service gives none, see ServiceChat.
        payload = chat_payload(self._model, query, "max_tokens")
        payload["messages"] = [
            {"role": "system", "content": self._template.render(texts)},
            {"role": "user", "content": query.prompt},
        ]
        if stop:
            payload["stop"] = list(stop)
        return read_chat(await self._client.post("/chat/completions", payload))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def make_generator(spec: str, template: str = "plain") -> Generator:
    """Return the generator ``spec`` names.

    Args:
        spec: ``reader``, ``hf:NAME_OR_FOLDER``, or ``URL#MODEL``.
        template: Name of a prompt template, or its file.

    Raises:
        InputError: ``spec`` has no valid form, or there is no such template.
        ModelError: The model cannot be loaded.
    """
    shown = load_template(template)
    if spec.lower().startswith(("http://", "https://")):
        return UpstreamGenerator(spec, shown)
    from ragwitness.models.registry import load_language_model

    return OwnGenerator(load_language_model(spec), shown)
