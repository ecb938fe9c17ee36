"""What a RAG system of ours is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.rag.index import Metric
from ragwitness.rag.prompts import TEMPLATES, PromptTemplate

__all__ = ["RagConfig"]


@dataclass(frozen=True, slots=True)
class RagConfig:
    """Settings of a :class:`~ragwitness.rag.pipeline.RagSystem`.

    Attributes:
        k: Passages retrieved per query (S-RAG, Sec. 4: "k=4, a common setting").
        chunk_words: Longest passage, in words.
        chunk_overlap: Words that a passage repeats from the one before it.
        template: How passages are shown to the generator.
        retrieval: ``"lexical"``, or the embedder to load, e.g. ``"minilm"``.
        metric: Distance of dense retrieval (S-RAG, Sec. 4: "the default metric [...] is
            L2-norm").
        generator: The language model to load.
        retrieve: False answers without any passage: the control in which nothing of the
            database can show.
        completion_task: What the user is taken to say before a raw completion; the
            completed text itself is the assistant's, so nothing can be copied from the
            user's turn.
    """

    k: int = 4
    chunk_words: int = 200
    chunk_overlap: int = 20
    template: PromptTemplate = TEMPLATES["plain"]
    retrieval: str = "lexical"
    metric: Metric = "l2"
    generator: str = "reader"
    retrieve: bool = True
    completion_task: str = "Complete the paragraph based on the [context]."

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(
                f"k is {self.k}, but at least one passage is retrieved.",
                "Give k of 1 or more; to answer without passages, turn retrieval off.",
            )
