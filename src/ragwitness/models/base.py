"""What every language model and embedder of the auditor offers, whatever runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragwitness.types import Message, TokenLogprob

__all__ = ["ChatPrompt", "Embedder", "Generation", "LanguageModel", "TextScores"]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation that the assistant continues.

    Attributes:
        messages: The turns so far; none leaves a raw text, the prefill, as it stands. Not every
            model reads one.
        prefill: Words the assistant has already said; the model goes on from there.
    """

    messages: tuple[Message, ...]
    prefill: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated answer.

    Attributes:
        text: Decoded answer without special tokens.
        tokens: One entry per generated token, special tokens left out. ``"".join`` of the
            tokens equals ``text``.
        finish_reason: ``"stop"`` at the end token or a stop string, else ``"length"``.
        prompt_tokens: Tokens of the rendered prompt.
        completion_tokens: Tokens generated, the end token included.
    """

    text: str
    tokens: tuple[TokenLogprob, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class TextScores:
    """Teacher-forced scores of a text, one entry per token of it.

    Attributes:
        ids: Token ids, shape (n,).
        offsets: Character range of each token in the text, shape (n, 2); a leading space
            belongs to its token.
        logprobs: Natural log-probability of each token given all before it, shape (n,); NaN for
            the first of a raw text where nothing stands before it.
        ranks: Number of tokens more probable than the true one (0 = the argmax), shape (n,).
        tokens: Each token with its alternatives where they were asked for, else empty.
        prompt_tokens: Tokens of the conversation before the text.
    """

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    logprobs: NDArray[np.float64]
    ranks: NDArray[np.int64]
    tokens: tuple[TokenLogprob, ...] = ()
    prompt_tokens: int = 0


class LanguageModel(Protocol):
    """A causal language model that generates and scores."""

    @property
    def name(self) -> str:
        """Identity with version or weight hash, e.g. ``"reader@3fa1c2"``."""

    @property
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text``."""

    def score(
        self,
        texts: Sequence[str],
        *,
        after: Sequence[ChatPrompt] | None = None,
        top: int = 0,
    ) -> list[TextScores]:
        """Score each text teacher-forced, in one forward pass each.

        Args:
            texts: What is scored.
            after: One conversation per text; the text is scored as the assistant's words
                (after its prefill). None scores plain text without any context, which
                makes the model a proxy for word difficulty.
            top: Alternatives to return per token.

        Raises:
            ModelError: A text does not fit the context length.
        """

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
        """Continue each conversation; greedy where ``temperature`` is 0.

        Log-probabilities are the model's own, before temperature.

        Raises:
            ModelError: A prompt does not fit the context length.
        """


class Embedder(Protocol):
    """Maps texts to vectors."""

    @property
    def name(self) -> str:
        """Identity with version or weight hash."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dim)."""
