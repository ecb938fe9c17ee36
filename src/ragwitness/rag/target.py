"""A RAG system of ours as a target, in this process: the same answers as over HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import threading
from dataclasses import replace

from ragwitness.errors import TargetResponseError
from ragwitness.rag.echo import completed, echo_tokens
from ragwitness.rag.pipeline import PARALLEL, QueryTooLongError, RagSystem
from ragwitness.types import Answer, Capability, Query, TokenLogprob

__all__ = ["LabTarget"]


class LabTarget:
    """Asks a :class:`~ragwitness.rag.pipeline.RagSystem` and shows nothing of its inside.

    Args:
        system: The system under audit.
        shows: Whether answers come with the passages retrieved; for the system's owner alone.
    """

    def __init__(self, system: RagSystem, *, shows: bool = False) -> None:
        self._system = system
        self._shows = shows
        self._name = f"lab:{_fingerprint(system)}"
        self._turns = threading.BoundedSemaphore(PARALLEL)

    @property
    def name(self) -> str:
        """A hash over corpus, settings and models: the same name is the same system."""
        return self._name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Text, alternatives of generated tokens, and scores of prompts."""
        shown = {Capability.CONTEXTS} if self._shows else set()
        known = {Capability.TEXT, Capability.TOP_LOGPROBS, Capability.PROMPT_LOGPROBS}
        return frozenset(known | shown)

    @property
    def system(self) -> RagSystem:
        """The system itself, for its owner."""
        return self._system

    def for_owner(self) -> LabTarget:
        """Return the same system with the passages it retrieved in its answers."""
        return LabTarget(self._system, shows=True)

    async def ask(self, query: Query) -> Answer:
        """Answer one query in a worker thread.

        Raises:
            TargetResponseError: The query does not fit the generator.
            ModelError: The generator failed.
        """
        return await asyncio.to_thread(self._ask, query)

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        """Score a text under the passages it retrieves.

        Args:
            text: What is scored.
            top: Alternatives per token.

        Returns:
            One entry per token; the first has the log-probability NaN, as over HTTP.

        Raises:
            TargetResponseError: The text does not fit the generator.
            ModelError: The generator failed.
        """
        return await asyncio.to_thread(self._echo, text, top)

    async def go_on(self, query: Query) -> Answer:
        """Continue a raw text under the passages it retrieves.

        Raises:
            TargetResponseError: The text does not fit the generator.
            ModelError: The generator failed.
        """
        return await asyncio.to_thread(self._go_on, query)

    async def close(self) -> None:
        """Nothing to release."""

    def _ask(self, query: Query) -> Answer:
        with self._turns:
            try:
                answer = self._system.answer(query)
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error
            return replace(answer, contexts=self._contexts(query)) if self._shows else answer

    def _contexts(self, query: Query) -> tuple[str, ...]:
        """All that is retrieved, what did not fit the generator's prompt included."""
        hits = self._system.retrieve(query.prompt)
        return tuple(self._system.passages[hit.index].text for hit in hits)

    def _go_on(self, query: Query) -> Answer:
        with self._turns:
            try:
                return completed(self._system, query)
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error

    def _echo(self, text: str, top: int) -> tuple[TokenLogprob, ...]:
        query = Query(text, max_tokens=0, top_logprobs=top)
        with self._turns:
            try:
                scores = self._system.complete(query, scored=True).scores
            except QueryTooLongError as error:
                raise TargetResponseError(error.message, error.hint) from error
        return echo_tokens(text, scores)


def _fingerprint(system: RagSystem) -> str:
    """Hash of everything that decides an answer."""
    digest = hashlib.sha256()
    settings = dataclasses.asdict(system.config)
    del settings["index"]  # its own name, which follows, says more
    inside = [settings, system.index.name, system.generator.name]
    digest.update(json.dumps(inside, sort_keys=True).encode())
    for passage in system.passages:
        # The length keeps two different splits of one text apart.
        for text in (passage.text, *(() if passage.key is None else (passage.key,))):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]
