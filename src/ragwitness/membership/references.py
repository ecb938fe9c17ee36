"""Reference models: chat models that have not read a document, and guess its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ragwitness.core.bet import Bet
from ragwitness.core.errors import CapabilityError
from ragwitness.core.types import Message, Role
from ragwitness.membership.e_values import Guesses
from ragwitness.models.base import ChatPrompt, LanguageModel, TextScores

_CONTEXT = "Context: {gap}\n\n{question}"


class References:
    """Reference models; the largest of their guesses counts.

    Args:
        models: Chat models that score given words. The first is also shown the document without
            the words: a neighbour in the index may say them.

    Raises:
        CapabilityError: One of them scores no words.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        self.models = tuple(models)
        self.names = tuple(model.name for model in models)
        for model in models:
            if not getattr(model, "can_score", True):
                raise CapabilityError(
                    f"{model.name} writes texts and cannot rate given words, as a reference model"
                    " must.",
                    "Name smollm2, gguf:FILE or hf:NAME_OR_FOLDER.",
                )

    def __call__(self, bets: Iterable[Bet]) -> tuple[tuple[str, ...], Guesses]:
        """Return the names of the models, and the nats of each word of each won bet."""
        return self.names, {bet: self._nats(bet) for bet in dict.fromkeys(bets) if bet.words}

    def _nats(self, bet: Bet) -> tuple[float, ...]:
        prompts = [(model, bet.question) for model in self.models]
        if bet.gap:
            shown_text = _CONTEXT.replace("{gap}", bet.gap, 1).replace(
                "{question}", bet.question, 1
            )
            prompts.append((self.models[0], shown_text))
        text = "".join(bet.words)
        rows = []
        for model, prompt in prompts:
            after = ChatPrompt((Message(Role.USER, prompt),), bet.before)
            (scores,) = model.score([text], after=[after])
            rows.append(word_nats(scores, bet.words))
        return tuple(round(min(nats), 3) for nats in zip(*rows, strict=True))


def references_of(addresses: Sequence[str]) -> References:
    """Load reference models by their addresses.

    Raises:
        RagwitnessError: One of them cannot be had, or scores no words.
    """
    from ragwitness.models.model_registry import load_language_model

    return References([load_language_model(address) for address in addresses])


def word_nats(scores: TextScores, words: Sequence[str]) -> list[float]:
    """Return minus the log-probability of each word; a token belongs to the word it ends in."""
    ends, totals = np.cumsum([len(word) for word in words]), [0.0] * len(words)
    for (_, stop), logprob in zip(scores.offsets.tolist(), scores.logprobs.tolist(), strict=True):
        if logprob == logprob:  # the first of a raw text has none
            totals[min(int(np.searchsorted(ends, stop)), len(words) - 1)] -= logprob
    return totals
