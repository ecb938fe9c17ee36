"""The text side of decoding: collects sampled tokens, and says when to stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import TokenLogprob
from ragwitness.models.base import (
    ChatPrompt,
    Generation,
    PromptTooLongError,
    sample,
    score_rows,
    top_rows,
)

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_LOGIT_ROWS = 256
"""Rows of logits made at once while scoring: 256 x 6,144 float32 are 6 MB."""


@dataclass(slots=True)
class TokenVocabulary:
    """The part of a tokenizer that decoding needs.

    Attributes:
        token_text: Text of one token; U+FFFD where it holds part of a character.
        decode: Text of a sequence of tokens.
        stop_ids: Tokens that end an answer.
    """

    token_text: Callable[[int], str]
    decode: Callable[[Sequence[int]], str]
    stop_ids: frozenset[int]


def _described(
    ids: Int64, logprobs: Float64, logits: Float32, top: int, token_text: Callable[[int], str]
) -> list[TokenLogprob]:
    """Describe tokens ``ids`` (n,) under ``logits`` (n, vocabulary) with ``top`` alternatives."""
    alternatives: list[tuple[tuple[str, float], ...]] = [()] * len(ids)
    if top:
        # log Z = logit - log p of the true token: the alternatives need no second log-sum-exp.
        normaliser = logits[np.arange(len(ids)), ids] - logprobs
        best, best_logprobs = (array.tolist() for array in top_rows(logits, top, normaliser))
        alternatives = [
            tuple(zip(map(token_text, others), values, strict=True))
            for others, values in zip(best, best_logprobs, strict=True)
        ]
    rows = zip(ids.tolist(), logprobs.tolist(), alternatives, strict=True)
    return [TokenLogprob(token_text(token), logprob, others) for token, logprob, others in rows]


def score_tokens(
    logits_of: Callable[[slice], Float32], ids: Int64, top: int, token_text: Callable[[int], str]
) -> tuple[Float64, Int64, tuple[TokenLogprob, ...]]:
    """Score true tokens, some rows of logits at a time.

    Args:
        logits_of: Gives the logits of a slice of positions, (rows, vocabulary).
        ids: True tokens, shape (n,).
        top: Alternatives to describe; 0 describes no token.
        token_text: Text of one token.

    Returns:
        Natural log-probabilities (n,), ranks (n,) and, where ``top`` asks, the tokens.
    """
    logprobs, ranks = np.empty(len(ids)), np.empty(len(ids), np.int64)
    tokens: list[TokenLogprob] = []
    for start in range(0, len(ids), _LOGIT_ROWS):
        # A vocabulary's logits for every position at once would not fit into memory.
        span = slice(start, min(start + _LOGIT_ROWS, len(ids)))
        logits = logits_of(span)
        logprobs[span], ranks[span] = score_rows(logits, ids[span])
        if top:
            tokens += _described(ids[span], logprobs[span], logits, top, token_text)
    return logprobs, ranks, tuple(tokens)


class Decoding:
    """One answer in the making.

    Args:
        vocabulary: Vocabulary of the model.
        prompt_tokens: Length of the prompt.
        room: Largest number of tokens to generate.
        temperature: Sampling temperature; 0 is greedy.
        top: Number of alternatives wanted for each token; log-probabilities of the tokens are
            always given.
        stop: Strings that end the answer; they are left out of it.
        seed: Seed of this answer alone: answers do not depend on what else is decoded.

    Attributes:
        room: Largest number of tokens to generate.
        finish_reason: None while the answer goes on.
    """

    def __init__(
        self,
        vocabulary: TokenVocabulary,
        *,
        prompt_tokens: int,
        room: int,
        temperature: float,
        top: int,
        stop: Sequence[str],
        seed: int | None,
    ) -> None:
        self._vocabulary = vocabulary
        self._prompt_tokens = prompt_tokens
        self.room = room
        self._temperature = temperature
        self._top = top
        self._stop = tuple(text for text in stop if text)
        self._generator = np.random.default_rng(seed)
        self._ids: list[int] = []
        self._tokens: list[TokenLogprob] = []
        self._spent = 0
        self._cut: int | None = None
        self.finish_reason: str | None = "length" if room <= 0 else None

    def push(self, rows: Float32, guessed: Sequence[int] = ()) -> list[int]:
        """Choose the next tokens from their logits.

        Args:
            rows: Shape (1 + n, vocabulary). The first is of the next token; each further one
                holds only where the token before it is the guessed one.
            guessed: The n tokens the model has been given ahead of the answer.

        Returns:
            The tokens chosen, at least one: as long as they are those guessed, and one more.
            The model has yet to read the last of them, unless the answer is complete.
        """
        chosen: list[int] = []
        finished: str | None = None
        for number, row in enumerate(rows):
            # 1. Choose; the answer's own generator makes it independent of what runs beside it.
            token = sample(row, self._temperature, self._generator)
            self._spent += 1
            if token in self._vocabulary.stop_ids:
                finished = "stop"
                break
            chosen.append(token)
            self._ids.append(token)
            # 2. Stop at a stop string, or for want of room.
            if self._stop and self._found_stop():
                finished = "stop"
            elif self._spent >= self.room:
                finished = "length"
            if finished or number == len(guessed) or token != guessed[number]:
                break
        # 3. Describe them as the model saw them, before any temperature.
        if chosen:
            true, rows = np.array(chosen), rows[: len(chosen)]
            logprobs, _ = score_rows(rows, true)
            self._tokens += _described(true, logprobs, rows, self._top, self._vocabulary.token_text)
        # 4. Only now is it complete: another thread may be waiting to take the result.
        self.finish_reason = finished
        return chosen

    def _found_stop(self) -> bool:
        # The whole answer is decoded: a stop string may begin inside a token and end in another.
        text = self._vocabulary.decode(self._ids)
        starts = [start for stop in self._stop if (start := text.find(stop)) >= 0]
        self._cut = min(starts, default=None)
        return bool(starts)

    def _spelled(self, text: str) -> tuple[TokenLogprob, ...]:
        """Return the tokens so that they join to ``text``, the answer or its beginning.

        A character split between tokens belongs to the last of them; the others are empty. A token
        that a stop string cuts keeps its probability, not its end.
        """
        if "".join(token.token for token in self._tokens) == text:
            return tuple(self._tokens)
        spelled, used = [], 0
        for position, token in enumerate(self._tokens):
            if self._cut is not None and used >= len(text):
                break
            # An unfinished character, which later tokens still change, is not yet spelled.
            so_far = self._vocabulary.decode(self._ids[: position + 1])
            end = used
            while end < min(len(so_far), len(text)) and so_far[end] == text[end]:
                end += 1
            spelled.append(TokenLogprob(text[used:end], token.logprob, token.top))
            used = end
        return tuple(spelled)

    def result(self) -> Generation:
        """Return the answer as it stands."""
        text = self._vocabulary.decode(self._ids)[: self._cut]
        return Generation(
            text,
            self._spelled(text),
            self.finish_reason or "length",
            self._prompt_tokens,
            self._spent,
        )


class TokenModel(ABC):
    """The shared part of all models that decode in this process."""

    _vocabulary: TokenVocabulary

    @property
    @abstractmethod
    def name(self) -> str:
        """The model, with a hash of its weights."""

    @property
    @abstractmethod
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""

    @abstractmethod
    def _prompt_ids(self, prompt: ChatPrompt) -> Int64:
        """Return a conversation as token ids, shape (n,)."""

    @abstractmethod
    def _decode(self, encoded: Sequence[Int64], answers: Sequence[Decoding]) -> None:
        """Feed every answer with logits until it is complete."""

    def _check_length(self, tokens: int, what: str) -> None:
        if tokens > self.context_length:
            raise PromptTooLongError(
                f"{what} has {tokens} tokens; {self.name} reads {self.context_length}."
            )

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
        """Continue each conversation; see :class:`~ragwitness.models.base.LanguageModel`.

        Where a prompt leaves less room than ``max_tokens``, the answer ends at the context
        length with ``finish_reason`` ``"length"``.
        """
        encoded = [self._prompt_ids(prompt) for prompt in prompts]
        for ids in encoded:
            self._check_length(len(ids) + 1, "The prompt with room for one token")
        answers = [
            Decoding(
                self._vocabulary,
                prompt_tokens=len(ids),
                room=min(max_tokens, self.context_length - len(ids)),
                temperature=temperature,
                top=top_logprobs,
                stop=stop,
                seed=seed,
            )
            for ids in encoded
        ]
        self._decode(encoded, answers)
        return [answer.result() for answer in answers]
