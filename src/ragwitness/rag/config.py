"""What a RAG system of ours is made of."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ragwitness.errors import InputError
from ragwitness.rag.index import Metric, check_store
from ragwitness.rag.prompts import TEMPLATES, PromptTemplate

__all__ = ["DefendedConfig", "RagConfig"]


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
        index: What searches the vectors of dense retrieval, one of
            :data:`~ragwitness.rag.index.STORES`.
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
    index: str = "exact"
    generator: str = "reader"
    retrieve: bool = True
    completion_task: str = "Complete the paragraph based on the [context]."

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(
                f"k is {self.k}, but at least one passage is retrieved.",
                "Give k of 1 or more; to answer without passages, turn retrieval off.",
            )
        check_store(self.index)
        if self.retrieval == "lexical" and self.index != "exact":
            raise InputError(
                f"The index {self.index!r} holds vectors, but lexical retrieval has none.",
                "Name an embedder for retrieval, e.g. minilm.",
            )


@dataclass(frozen=True, slots=True)
class DefendedConfig(RagConfig):
    """Settings of a system behind a defense; an undefended one's stay as they are.

    Attributes:
        defense: The defense's name with its parameters; part of a target's identity.
    """

    defense: str = ""

    @classmethod
    def of(cls, config: RagConfig, defense: str) -> DefendedConfig:
        """Return the settings with a defense's name added.

        Raises:
            InputError: They are those of a system behind another defense.
        """
        values = {field.name: getattr(config, field.name) for field in fields(config)}
        if values.pop("defense", defense) != defense:
            raise InputError(
                f"The settings are those of a system behind {getattr(config, 'defense', '')!r}.",
                "Chain the two defenses, or take the undefended system's settings.",
            )
        return cls(**values, defense=defense)
