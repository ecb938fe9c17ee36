"""A language model that repeats its passages, and says "nothing known" without any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragwitness.core.types import Role
from ragwitness.models.base import ChatPrompt, Generation, TextScores

_MARK = "[context]:\n"


class Parrot:
    """Implements ``ragwitness.models.base.LanguageModel``."""

    name = "parrot"
    context_length = 10_000

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        none = np.empty(0)
        return [TextScores(none, np.empty((0, 2)), none, none, prompt_tokens=2) for _ in texts]

    def generate(
        self,
        prompts: Sequence[ChatPrompt],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> list[Generation]:
        return [_said(prompt, max_tokens) for prompt in prompts]


def _said(prompt: ChatPrompt, max_tokens: int) -> Generation:
    system = next(one.content for one in prompt.messages if one.role is Role.SYSTEM)
    words = (system.partition(_MARK)[2] or "nothing known").split(" ")[:max_tokens]
    return Generation(" ".join(words), (), "stop", 9, len(words))


def parrot_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a parrot in the place of every generator that a lab system loads."""
    monkeypatch.setattr("ragwitness.rag.pipeline._load_generator", lambda _spec: Parrot())
