"""The embedded reader: a language model that needs numpy and nothing else."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.core.threads import one_blas_thread
from ragwitness.models.base import ChatPrompt, Generation, TextScores
from ragwitness.models.decoding import Decoding, TokenModel, TokenVocabulary, score_tokens
from ragwitness.models.reader.cache import DEFAULT_BYTES, PrefixStore
from ragwitness.models.reader.checkpoint import read_config, read_weights, weights_digest
from ragwitness.models.reader.forward import Network
from ragwitness.models.reader.tokens import ReaderTokenizer

PACKAGED_WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the weights that come with the package."""

LADDER = Path(__file__).parents[4] / "experiments" / "readers"
"""Other readers, by the names of their folders: in a checkout of the repository, not in a wheel."""

NAMED = "RAGWITNESS_READER"
"""Environment variable: what "the packaged reader" means instead, such as ``reader-1``."""

_AT_ONCE = min(4, os.cpu_count() or 1)
"""Threads that compute at once; more would share the same cores and take more memory."""

_MOST_GUESSES = 15
"""Tokens guessed ahead: with the one that is known they fill the smallest product."""

_FEW_GUESSES = 3
"""Tokens guessed ahead of an answer that was guessed wrong the last time."""

_LONGEST_MATCH = 8
"""Tokens by which the longest match is looked for."""

Int64 = NDArray[np.int64]


def guess(tokens: Int64, most: int) -> Int64:
    """Return what followed where the last tokens stood before: answers quote their prompts.

    Args:
        tokens: Prompt and answer so far, shape (n,).
        most: Largest number of tokens returned.

    Returns:
        The tokens after the place that shares most of the last ones, the latest of several; empty
        where the last token is new.
    """
    ends = np.flatnonzero(tokens[:-1] == tokens[-1])
    for back in range(1, min(_LONGEST_MATCH, len(tokens))):
        longer = ends[ends >= back]
        longer = longer[tokens[longer - back] == tokens[-1 - back]]
        if not len(longer):
            break
        ends = longer
    return tokens[ends[-1] + 1 :][:most] if len(ends) else tokens[:0]


_TEMPERATURE = re.compile(r"@(\d+(?:\.\d+)?)$")


def _named(path: str | Path | None) -> tuple[Path, float]:
    """The folder and the temperature that a reader's name or path stands for."""
    spec = os.environ.get(NAMED, "") if path is None else str(path)
    heat = None if Path(spec).is_dir() else _TEMPERATURE.search(spec)
    temperature = float(heat.group(1)) if heat else 0.0
    name = spec[: heat.start()] if heat else spec
    if not name:
        return PACKAGED_WEIGHTS, temperature
    # A name without a folder before it may be a reader's of the ladder.
    folder, named = Path(name), LADDER / name
    ladder = len(folder.parts) == 1 and not folder.is_dir() and named.is_dir()
    return (named if ladder else folder), temperature


class Reader(TokenModel):
    """A :class:`~ragwitness.models.base.LanguageModel` run in numpy; threads may share it.

    Build it with :meth:`load`. While it computes, numpy's matrix products take one thread each in
    this process.

    Args:
        network: The decoder.
        tokenizer: Its tokenizer and chat layout.
        digest: Hash of the weights, for the name.
        cache_bytes: Memory for prefix reuse; 0 turns it off.
        temperature: Least temperature of an answer: a greedy question is sampled too, the same way
            each time it is asked.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: ReaderTokenizer,
        digest: str,
        cache_bytes: int = DEFAULT_BYTES,
        temperature: float = 0.0,
    ) -> None:
        self._network = network
        self._temperature = temperature
        self.tokenizer = tokenizer
        self._digest = digest
        self.prefixes = PrefixStore(network, cache_bytes)
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._vocabulary = TokenVocabulary(
            tokenizer.token_text, tokenizer.decode, tokenizer.stop_ids
        )

    @classmethod
    def load(cls, path: str | Path | None = None, *, cache_bytes: int = DEFAULT_BYTES) -> Reader:
        """Load a model folder in Hugging Face's Qwen3 layout.

        Args:
            path: The folder, or the name of a reader in :data:`LADDER`. A suffix such as ``@0.7``
                sets its temperature. None is the packaged model, or the one that
                ``RAGWITNESS_READER`` names.
            cache_bytes: Memory for prefix reuse; 0 turns it off.

        Raises:
            ModelError: The folder or one of its files cannot be used.
        """
        folder, temperature = _named(path)
        if not folder.is_dir():
            raise ModelError(
                f"There is no model folder {folder}, and no reader of that name here.",
                "Give an existing folder; readers by name lie in experiments/readers of the"
                " repository, whose README says where weaker ones are; a package has one alone.",
            )
        config, weights = read_config(folder), read_weights(folder)
        try:
            network = Network(config, weights)
        except ModelError as error:
            raise ModelError(f"{folder}: {error.message}", error.hint) from None
        tokenizer = ReaderTokenizer(folder)
        if tokenizer.size > network.config.vocabulary:
            raise ModelError(
                f"The tokenizer in {folder} has {tokenizer.size} tokens, "
                f"the network {network.config.vocabulary}.",
                "Copy tokenizer and weights from one model.",
            )
        return cls(network, tokenizer, weights_digest(folder), cache_bytes, temperature)

    @property
    def name(self) -> str:
        """``reader@`` and the first six digits of the weights' sha256, with its temperature."""
        heat = f" T={self._temperature:g}" if self._temperature else ""
        return f"reader@{self._digest[:6]}{heat}"

    @property
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""
        return self._network.config.positions

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` as the assistant would say it."""
        return len(self.tokenizer.encode_spoken(text)[0])

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Score each text teacher-forced; see :class:`~ragwitness.models.base.LanguageModel`."""
        if after is None:
            # Plain text is scored after one end token: its first word needs one before it.
            start = np.array([self.tokenizer.end_id], np.int64)
            return [self._score_one(text, start, top) for text in texts]
        if len(after) != len(texts):
            raise ValueError("after must hold one conversation per text")
        return [
            self._score_one(text, self._prompt_ids(prompt), top)
            for text, prompt in zip(texts, after, strict=True)
        ]

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
        """Continue each conversation, at the reader's own temperature at least."""
        if self._temperature > temperature:
            temperature, seed = self._temperature, seed or 0
        return super().generate(
            prompts,
            max_tokens=max_tokens,
            temperature=temperature,
            top_logprobs=top_logprobs,
            stop=stop,
            seed=seed,
        )

    def _prompt_ids(self, prompt: ChatPrompt) -> Int64:
        return self.tokenizer.encode_prompt(prompt.messages, prompt.prefill)

    def _score_one(self, text: str, prompt: Int64, top: int) -> TextScores:
        ids, offsets = self.tokenizer.encode_spoken(text)
        sequence = np.concatenate((prompt, ids))
        self._check_length(len(sequence), "The text with what precedes it")
        if len(ids) == 0:
            nothing = np.empty(0, np.int64)
            return TextScores(nothing, offsets, np.empty(0), nothing, (), len(prompt))
        # Teacher forcing: position i predicts token i + 1, so the last token is never read.
        read = sequence[:-1]
        with self._turns, one_blas_thread():
            # Prompts that begin alike share their keys and values: computed once.
            _, hidden = self.prefixes.read(read, capacity=len(read), keep=len(ids))
            logprobs, ranks, tokens = score_tokens(
                lambda part: self._network.logits(hidden[part]), ids, top, self.tokenizer.token_text
            )
        return TextScores(ids, offsets, logprobs, ranks, tokens, len(prompt))

    def _decode(self, encoded: Sequence[Int64], answers: Sequence[Decoding]) -> None:
        with one_blas_thread():
            for ids, answer in zip(encoded, answers, strict=True):
                with self._turns:
                    self._complete(ids, answer)

    def _complete(self, ids: Int64, answer: Decoding) -> None:
        """Decode one answer; several tokens a step where they were guessed right.

        An answer repeats its prompt, so the tokens that followed its last words there are read
        along with them. Wrong ones are forgotten. Guesses follow from the answer alone.
        """
        if answer.finish_reason is not None:
            return
        # 1. Read the prompt, with room for guesses that turn out wrong.
        capacity = min(len(ids) + answer.room + _MOST_GUESSES, self.context_length)
        cache, hidden = self.prefixes.read(ids, capacity=capacity, keep=1)
        chosen = answer.push(self._network.logits(hidden))
        # A prompt's last control tokens part its words from the answer's; guesses look past them.
        words = len(ids)
        while words and int(ids[words - 1]) in self.tokenizer.stop_ids:
            words -= 1
        tokens, ahead = ids[:words], _FEW_GUESSES
        while answer.finish_reason is None:
            # 2. Read the last token with the guesses after it.
            tokens = np.concatenate((tokens, np.array(chosen, np.int64)))
            guesses = guess(tokens, min(ahead, capacity - cache.length - 1))
            hidden = self._network.run(
                cache, np.concatenate((tokens[-1:], guesses)), len(guesses) + 1
            )
            # 3. Choose the next tokens, up to the first wrong guess.
            chosen = answer.push(self._network.logits(hidden), guesses.tolist())
            right = max(0, len(chosen) - 1)
            cache.length -= len(guesses) - right
            # Bolder where all was right, more careful where not.
            bold = right == len(guesses)
            ahead = min(2 * ahead + 1 if bold else right + _FEW_GUESSES, _MOST_GUESSES)
