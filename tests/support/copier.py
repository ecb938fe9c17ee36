"""A language model small enough to check by hand: it copies what its context shows.

Tokens are words with the space before them. If the last two words stand in the conversation's
system message, the word that follows them there has probability .9; otherwise each word of the
vocabulary has a fixed one that falls with its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from ragwitness.core.types import Role, TokenLogprob
from ragwitness.models.base import ChatPrompt, Generation, TextScores

_TOKEN = re.compile(r"\s*\S+")
_END = "\n\n"


class Copier:
    """Implements ``ragwitness.models.base.LanguageModel``."""

    name = "copier"
    context_length = 10_000

    def count_tokens(self, text: str) -> int:
        return len(_TOKEN.findall(text))

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        prompts = after or [ChatPrompt(())] * len(texts)
        return [self._score(text, prompt, top) for text, prompt in zip(texts, prompts, strict=True)]

    def _score(self, text: str, prompt: ChatPrompt, top: int) -> TextScores:
        matches = list(_TOKEN.finditer(text))
        said = _last_words(prompt)
        tokens, logprobs, ranks = [], [], []
        for match in matches:
            word = match.group().strip()
            table = self._next(said, prompt, extra=word)
            ordered = sorted(table.items(), key=lambda item: (-item[1], item[0]))
            logprobs.append(math.log(table[word]))
            ranks.append([name for name, _ in ordered].index(word))
            tokens.append(_token(word, table, ordered, top))
            said = [*said, word]
        return TextScores(
            np.arange(len(matches)),
            np.array([[m.start(), m.end()] for m in matches]).reshape(-1, 2),
            np.array(logprobs),
            np.array(ranks),
            tuple(tokens) if top else (),
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
        return [self._generate(prompt, max_tokens, top_logprobs) for prompt in prompts]

    def _generate(self, prompt: ChatPrompt, max_tokens: int, top: int) -> Generation:
        said, tokens, reason = _last_words(prompt), [], "length"
        for _ in range(max_tokens):
            table = self._next(said, prompt)
            ordered = sorted(table.items(), key=lambda item: (-item[1], item[0]))
            word = ordered[0][0]
            if word == _END:
                reason = "stop"
                break
            tokens.append(_token(word, table, ordered, top))
            said = [*said, word]
        text = "".join(token.token for token in tokens)
        return Generation(text, tuple(tokens), reason, self.count_tokens(str(prompt)), len(tokens))

    @staticmethod
    def _next(said: list[str], prompt: ChatPrompt, extra: str | None = None) -> dict[str, float]:
        """Distribution over the next word; a rest of the mass is left to unseen words."""
        context = next((m.content for m in prompt.messages if m.role is Role.SYSTEM), "")
        words = context.split()
        following = [
            after
            for one, two, after in zip(words, words[1:], words[2:], strict=False)
            if said[-2:] == [one, two]
        ]
        vocabulary = {"the", "of", "and", "was", _END} | set(said[-30:]) | ({extra} - {None})
        weights = {word: 0.5 ** len(word.strip()) for word in sorted(vocabulary)}
        weights[_END] = 0.01
        total = sum(weights.values()) * (1.25 if not following else 12.5)
        table = {word: weight / total for word, weight in weights.items()}
        if following:
            table[following[0]] = table.get(following[0], 0.0) + 0.9
        return table


def _token(word, table, ordered, top) -> TokenLogprob:
    listed = tuple((f" {name}", math.log(p)) for name, p in ordered[:top])
    return TokenLogprob(f" {word}", math.log(table[word]), listed)


def _last_words(prompt: ChatPrompt) -> list[str]:
    users = [m.content for m in prompt.messages if m.role is Role.USER]
    return (users[-1].split() if users else []) + prompt.prefill.split()
