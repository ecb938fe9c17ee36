"""Writes answers over the documents that were selected, by any language model."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence

from ragwitness.core.threads import in_thread
from ragwitness.core.types import Answer, Query
from ragwitness.models.base import LanguageModel
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import PromptTemplate, RagConfig, load_template
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import RagSystem


class Generator:
    """Answers a query from given texts.

    Args:
        model: Writes the answers; one behind another server sees query and texts.
        template: Shows it the texts.
    """

    def __init__(self, model: LanguageModel, template: PromptTemplate) -> None:
        # A stand-in for the passages of a query: the overhead of a prompt is measured once.
        config = RagConfig(template=template)
        self._system = RagSystem([Passage("", 0, 1, "-")], _Chosen(1), model, config)
        self._free = asyncio.Semaphore(self._system.parallel)

    async def check(self, query: Query) -> None:
        """Find out before anything is charged whether the query can be read at all.

        Raises:
            QueryTooLongError: It does not fit what the model reads, even without any text.
        """
        await asyncio.to_thread(self._system.prompt, query.prompt, query.max_tokens)

    async def answer(self, query: Query, texts: Sequence[str], stop: Sequence[str]) -> Answer:
        """Return the answer.

        Raises:
            QueryTooLongError: The query does not fit what the model reads.
            ModelError: A model of ours failed.
            TargetError: Another server failed.
        """
        # Texts come selected by the mechanism. A pipeline with a retriever of its own would look
        # again without noise, and what it chose would tell of documents that nobody paid for.
        system = copy.copy(self._system)  # measured once, and another database per query
        system.passages = tuple(Passage("", 0, len(text), text) for text in texts)
        system.index = _Chosen(len(texts))
        async with self._free:
            return await in_thread(system.answer, query, stop)


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


def make_generator(spec: str, template: str = "plain") -> Generator:
    """Return the generator ``spec`` names.

    Args:
        spec: As for :func:`~ragwitness.models.model_registry.load_language_model`.
        template: Name of a prompt template, or its file.

    Raises:
        InputError: ``spec`` has no valid form, or there is no such template.
        ModelError: The model cannot be loaded.
        TargetError: The endpoint does not answer.
    """
    from ragwitness.models.model_registry import load_language_model

    shown = load_template(template)
    return Generator(load_language_model(spec), shown)
