"""A generator that repeats its passages: what a model that obeys every order would give away.

It is no language model. Whatever another generator copies of a passage, this one copies, too, so
that its leaks bound theirs from above, at the cost of no computation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ragwitness.models.base import ChatPrompt, Generation, TextScores

# What stands before the passages in the templates of rag/config.py.
_MARK = re.compile(r"\[context\]:\n|\bcontext:\s|-{5,}\n", re.IGNORECASE)


class EchoModel:
    """Says the passages of its prompt, up to the limit of its answer, and nothing without any."""

    name = "repeat"
    context_length = 100_000

    def count_tokens(self, text: str) -> int:
        """Words of a text."""
        return len(text.split())

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Return no score: it has no probabilities."""
        del after, top
        none = np.empty(0, np.int64)
        empty = TextScores(none, np.empty((0, 2), np.int64), np.empty(0), none)
        return [empty for _ in texts]

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
        """Repeat each prompt's passages; the limit counts words."""
        del temperature, top_logprobs, stop, seed
        return [_said(prompt, max_tokens) for prompt in prompts]


def _said(prompt: ChatPrompt, limit: int) -> Generation:
    read = sum(len(one.content.split()) for one in prompt.messages)
    # The passages are behind the first mark; what else that message holds is said, too.
    parts = (_MARK.split(one.content, maxsplit=1) for one in prompt.messages)
    words = next((part[1] for part in parts if len(part) > 1), "").split(" ")
    said = " ".join(words[:limit]).strip() or "Nothing was found."
    return Generation(
        said, (), "length" if len(words) > limit else "stop", read, len(words[:limit])
    )
