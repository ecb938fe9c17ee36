"""The interfaces of language models and embedders, and their shared computations."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Message, TokenLogprob
from ragwitness.text.words import split_words


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
            the first of a raw text without a start token.
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


class PromptTooLongError(ModelError):
    """A prompt does not fit what a model reads.

    Args:
        message: Length of the prompt, and what the model reads.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "Shorten it, or retrieve fewer or shorter passages.")

    def __reduce__(self) -> tuple[type[PromptTooLongError], tuple[str]]:
        """Travel between processes: what it was made from."""
        return type(self), (self.message,)


class LanguageModel(Protocol):
    """A causal language model that generates and scores.

    One that only generates says so by an attribute ``can_score`` that is False.
    """

    @property
    def name(self) -> str:
        """Identity with version or weight hash, e.g. ``"reader@3fa1c2"``."""

    @property
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text``."""

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Score each text teacher-forced, in one forward pass each.

        Args:
            texts: The texts to score.
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


# Readings of a row of logits: log-probability, rank, alternatives, a sample.
#
# Shared by the numpy reader and by transformers, so both mean the same by each word.

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


_ROWS = 32
"""Rows treated at once: what is made along the way then stays in the processor's cache."""


def log_normaliser(logits: Float32) -> Float64:
    """Return ``log(sum(exp(row)))`` of each row, shape (n,), from logits (n, vocabulary)."""
    normalisers = np.empty(len(logits))
    for start in range(0, len(logits), _ROWS):
        rows = logits[start : start + _ROWS]
        peak = rows.max(-1, keepdims=True)
        shifted = rows - peak
        np.exp(shifted, out=shifted)
        total = shifted.sum(-1).astype(np.float64)
        normalisers[start : start + _ROWS] = np.log(total) + peak[:, 0]
    return normalisers


def score_rows(logits: Float32, ids: Int64) -> tuple[Float64, Int64]:
    """Score the true token of each row.

    Args:
        logits: Shape (n, vocabulary).
        ids: True tokens, shape (n,).

    Returns:
        Natural log-probabilities (n,) and ranks (n,): tokens strictly more probable than the
        true one.
    """
    true = logits[np.arange(len(ids)), ids]
    ranks = np.count_nonzero(logits > true[:, None], axis=-1)
    # Rounding may put a sure token above probability 1.
    logprobs = np.minimum(true - log_normaliser(logits), 0.0)
    return logprobs, np.asarray(ranks, np.int64)


def top_rows(
    logits: Float32, count: int, normaliser: Float64 | None = None
) -> tuple[Int64, Float64]:
    """Return the ``count`` most probable tokens of each row, most probable first.

    Equal logits are listed in order of their ids; which of several equal ones take the last
    places is not defined.

    Args:
        logits: Shape (n, vocabulary).
        count: Tokens wanted per row.
        normaliser: The rows' :func:`log_normaliser`, where it is known already.

    Returns:
        Ids and natural log-probabilities, each (n, min(count, vocabulary)).
    """
    count = min(count, logits.shape[-1])
    # Only the chosen few are sorted: by id first, then stably by logit, so that ties are ordered.
    chosen = np.argpartition(-logits, count - 1, axis=-1)[:, :count]
    chosen.sort(axis=-1)
    values = np.take_along_axis(logits, chosen, axis=-1)
    order = np.argsort(-values, axis=-1, kind="stable")
    ids = np.take_along_axis(chosen, order, axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    log_z = log_normaliser(logits) if normaliser is None else normaliser
    return ids, np.minimum(values - log_z[:, None], 0.0)


def sample(row: Float32, temperature: float, generator: np.random.Generator) -> int:
    """Draw a token from one row of logits (vocabulary,); the argmax where temperature is 0.

    One uniform number is used per token, so a generator's stream stays aligned with the text.
    """
    if temperature <= 0:
        return int(row.argmax())
    scaled = row.astype(np.float64) / temperature
    # Inverse of the cumulative distribution at one uniform number.
    weights = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = np.searchsorted(weights, generator.random() * weights[-1], side="right")
    return int(min(drawn, len(row) - 1))


# Character offsets of tokens, brought to one convention: a space belongs to the token after it.

OffsetsInt64 = NDArray[np.int64]


def close_gaps(offsets: OffsetsInt64) -> OffsetsInt64:
    """Give characters between two tokens (a trimmed space) to the later token; (n, 2) to (n, 2)."""
    if not len(offsets):
        return offsets
    ends = np.concatenate(([0], np.maximum.accumulate(offsets[:, 1])[:-1]))
    return np.stack((np.minimum(offsets[:, 0], ends), offsets[:, 1]), axis=1)


# From token scores to word scores, whatever the tokenizer.


@dataclass(frozen=True, slots=True)
class WordScore:
    """How probable one word was, given all before it.

    Attributes:
        word: The word as it stands, with its punctuation.
        start: First character in the text.
        end: One past the last character.
        logprob: Natural log-probability: the sum over the word's tokens.
        rank: Largest rank among its tokens (0: every token was the most probable one).
        tokens: Number of tokens of the word.
    """

    word: str
    start: int
    end: int
    logprob: float
    rank: int
    tokens: int


def counted_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """The characters a token counts for.

    A lone space counts for the character after it: where a tokenizer splits " 500" into a space
    and digits, the space is what first says that no ordinary word comes. Some tokenizers give
    an empty range to the later bytes of a character; they count for the one that ends there.
    """
    if text[start:end] == " ":
        return end, end + 1
    return (start, end) if start < end else (max(start - 1, 0), max(start, 1))


def map_to_words(text: str, scores: TextScores) -> list[WordScore]:
    """Give every word of ``text`` (see ``text.words``) the tokens that touch it.

    Line breaks and runs of spaces touch no word and are left out; one space belongs to the word
    after it. A token across two words counts for both, since neither was certain before it; so
    a word's log-probability is never flattered.

    Args:
        text: The scored text.
        scores: Token scores of the text.

    Returns:
        One entry per word, in order. A word that no token touches (only where a tokenizer
        drops characters) is left out.
    """
    words = split_words(text)
    ends = [word.end for word in words]
    logprobs, ranks, counts = [0.0] * len(words), [0] * len(words), [0] * len(words)
    for index, (first, last) in enumerate(scores.offsets.tolist()):
        start, end = counted_characters(text, first, last)
        # Every word that the token touches, from the first that does not end before it.
        number = bisect.bisect_right(ends, start)
        while number < len(words) and words[number].start < end:
            # log p(word) = sum of log p(token | all before) over its tokens (chain rule).
            logprobs[number] += float(scores.logprobs[index])
            ranks[number] = max(ranks[number], int(scores.ranks[index]))
            counts[number] += 1
            number += 1
    return [
        WordScore(word.text, word.start, word.end, logprob, rank, count)
        for word, logprob, rank, count in zip(words, logprobs, ranks, counts, strict=True)
        if count
    ]


def word_scores(model: LanguageModel, text: str) -> list[WordScore]:
    """Score the words of plain ``text`` in one forward pass: how hard each is to guess.

    Raises:
        ModelError: The text does not fit the model's context length.
    """
    return map_to_words(text, model.score([text])[0])


# A generator that repeats its passages. It copies whatever another generator copies, so its leaks
# bound theirs from above, without any computation.


# The text before the passages in the templates of rag/config.py.
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
        return [_repeated(prompt, max_tokens) for prompt in prompts]


def _repeated(prompt: ChatPrompt, limit: int) -> Generation:
    read = sum(len(message.content.split()) for message in prompt.messages)
    # The passages are behind the first mark; what else that message holds is said, too.
    splits = (_MARK.split(message.content, maxsplit=1) for message in prompt.messages)
    words = next((halves[1] for halves in splits if len(halves) > 1), "").split(" ")
    text = " ".join(words[:limit]).strip() or "Nothing was found."
    return Generation(
        text, (), "length" if len(words) > limit else "stop", read, len(words[:limit])
    )
