"""A tiny corpus, systems over it, and language models that rewrite and score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Document
from ragwitness.models.base import ChatPrompt, Generation
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import RagSystem, build_system
from tests.support.copier import Copier

CORPUS = [
    Document("keller", "Maria Keller came in March with a fever and a red rash on her left arm."),
    Document("router", "My router loses its connection whenever the microwave oven is running."),
    Document("krill", "Penguins of the southern coast hunt krill in small and noisy groups."),
    Document("knee", "The knee was rested and cooled for three weeks after the fall in March."),
    Document("lease", "The lease of the mill ends in winter and pays forty crowns every month."),
]


def lexical(**config: Any) -> RagSystem:
    config.setdefault("k", 2)
    return build_system(CORPUS, RagConfig(**config), generator=Copier())


class Angles:
    """Embeds a text that is a number as the unit vector at that angle, in radians."""

    name = "angles"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.array([float(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def dense(angles: Sequence[float], **config: Any) -> RagSystem:
    """A system whose passages lie on the unit circle."""
    config.setdefault("k", 2)
    documents = [Document(f"at{i}", str(angle)) for i, angle in enumerate(angles)]
    settings = RagConfig(retrieval="given", **config)
    return build_system(documents, settings, generator=Copier(), embedder=Angles())


class Writer(Copier):
    """Answers every prompt with the same text and remembers what it was asked."""

    def __init__(self, says: str, context_length: int = 10_000) -> None:
        self.says = says
        self.context_length = context_length
        self.asked: list[str] = []

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"writer({self.says})"

    def generate(self, prompts: Sequence[ChatPrompt], **_options: Any) -> list[Generation]:
        self.asked += [prompt.messages[-1].content for prompt in prompts]
        return [Generation(self.says, (), "stop", 1, 1) for _ in prompts]
