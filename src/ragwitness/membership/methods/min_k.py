"""Min-K% (Shi et al., 2024) on the answer of a RAG system, as MBA's baseline and as ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least, one_of, ordered
from ragwitness.core.types import Answer, Capability, Document, Probe, Score, TokenLogprob
from ragwitness.membership.response_parsing.probabilities import probability_at, token_at
from ragwitness.membership.response_parsing.replies import (
    AUDIT_PROMPT,
    NO_LOGPROBS,
    UNSPELT,
    AnswerOutcome,
    AnswerReading,
    Halves,
    align,
    answer_tokens,
    ask_on,
    halve,
    read_answer,
    read_continuation,
)
from ragwitness.models.base import LanguageModel
from ragwitness.text.replies import same_word
from ragwitness.text.words import split_words


@dataclass(frozen=True, slots=True)
class MinKConfig:
    """How a document is asked about and its answer read.

    Attributes:
        k: Per cent of the tokens that are read, the least probable ones. MBA (§5.4.2) tries 1 to
            20 and reports the best on its test set; here k is fixed beforehand.
        reads: ``"document"`` reads the document's own words, as far as the answer came to them
            (ours, and the purpose of Min-K%); a target that declines scores lowest.
            ``"answer"`` reads any words of the answer, a decline too, as MBA's baseline does.
        combine: ``"mean"`` of these, or their ``"sum"`` as MBA's baseline (§5.4.2).
        prompt: Must hold ``{prefix}``; S-RAG's, since the method has none for RAG.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        min_tokens: An answer of fewer tokens is unscorable.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
    """

    stored_name: ClassVar[str] = "MinKConfig"
    later: ClassVar[tuple[str, ...]] = ("combine", "reads")
    removed: ClassVar[Mapping[str, tuple[str, str]]] = {"k": ("variant", "min-k")}
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {"k": 20.0, "combine": "sum", "min_tokens": 1, "reads": "answer"}
    }

    k: float = 20.0
    combine: Literal["mean", "sum"] = "mean"
    prompt: str = AUDIT_PROMPT
    max_words: int = 400
    min_words: int = 8
    min_tokens: int = 3
    top_logprobs: int = 20
    reads: Literal["document", "answer"] = "document"

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "combine", "mean", "sum")
        one_of(self, "reads", "document", "answer")
        if not 0.0 < self.k <= 100.0:
            raise InputError(f"k is a percentage above 0 and at most 100, not {self.k}.")
        at_least(self, 1, "min_tokens", "top_logprobs")
        at_least(self, 2, "min_words")
        ordered(self, "min_words", "max_words")
        if "{prefix}" not in self.prompt:
            raise InputError("The prompt must hold {prefix}.")


# The score, from log-probabilities alone.

_LOWEST = -20.0  # servers write -9999 for a token outside their list


def log_probabilities(tokens: Sequence[TokenLogprob]) -> NDArray[np.float64]:
    """Return log p of each token, from -20 to 0, shape (n,)."""
    return np.array([min(0.0, max(_LOWEST, token.logprob)) for token in tokens])


def least(values: NDArray[np.float64], k: float) -> NDArray[np.int64]:
    """Return the positions of the lowest k per cent, at least one, lowest first."""
    count = max(1, int(len(values) * k / 100.0))
    return np.argsort(values, kind="stable")[:count]


def document_tokens(halves: Halves, tokens: Sequence[TokenLogprob]) -> list[TokenLogprob]:
    """Return the tokens of the second half's words as far as an answer came to them.

    Where it left the document, the true word has the probability that it had there.

    Args:
        halves: The document.
        tokens: Those of the answer beyond the first half.
    """
    words, reply = split_words(halves.text), split_words("".join(token.token for token in tokens))
    half = sum(word.start < len(halves.first) for word in words)
    aligned = align(words, half, [word.text for word in reply])
    # Of an answer without a word of the document, the first word is where it should continue.
    fallback = {half: 0} if reply and half < len(words) else {}
    result: list[TokenLogprob] = []
    for index, number in sorted((aligned or fallback).items()):
        word, true = reply[number], words[index].text
        first, last = token_at(tokens, word.start), token_at(tokens, word.end - 1)
        if same_word(word.text, true):
            result += tokens[first : last + 1]
        else:
            p = probability_at(tokens[first:], true).high
            log_p = math.log(p) if p else _LOWEST
            result.append(TokenLogprob(f" {true}", log_p, tokens[first].top))
    return result


# The Min-K% audit of one document: how sure the target is of its next words.

_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more
_MOST = 1_000  # tokens of a sum


class MinK:
    """Min-K%: mean log-probability of the least probable k per cent of the document's tokens.

    A chat interface gives log-probabilities of the target's own answer alone, here to the first
    half of the document. They are those of the document's words as far as the answer repeats
    them. As published in MBA's baseline (§5.4.2), the whole answer is read.

    Args:
        proxy: Counts tokens.
        config: Parameters.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.min_k.probe.MinK"
    name = "min-k"
    requires = frozenset({Capability.TOP_LOGPROBS})

    def __init__(self, proxy: LanguageModel, config: MinKConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or MinKConfig()

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "tokens read": f"least probable {self.config.k:g} %"
            + (", summed" if self.config.combine == "sum" else ""),
            "alternatives per token": str(self.config.top_logprobs),
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config, once = self.config, self.config.reads == "answer"
        halves = halve(document.text, config.max_words, config.min_words)
        if halves is None:
            return Score(None, reason=f"fewer than {config.min_words} words to cut in half")
        prompt = config.prompt.replace("{prefix}", halves.first)
        answer = yield from ask_on(
            halves, prompt, self.proxy, _ROOM, config.top_logprobs, once=once
        )
        reading, tokens = self._tokens(halves, answer)
        details = {reading.outcome.value: 1.0, "cut": float(halves.cut)}
        # 1. The outcome of the answer.
        # Below the value of every answer.
        lowest = 2 * _LOWEST * (_MOST if config.combine == "sum" else 1)
        if reading.outcome is AnswerOutcome.DECLINED and not once:
            return Score(lowest, details=details)
        if reading.reason and reading.outcome is AnswerOutcome.FAILED:
            return Score(None, reason=reading.reason, details=details)
        # 2. The readable tokens.
        # Servers list some tokens without a probability.
        readable = [token for token in tokens if not math.isnan(token.logprob)]
        unread = len(tokens) - len(readable)
        details |= {"tokens": float(len(readable)), "unread": float(unread)}
        if not readable and "echo" in reading.removed:  # it left the first half before its end
            return Score(lowest, details=details)
        if not readable or len(answer.tokens or ()) - unread < config.min_tokens:
            needed = f"{config.min_tokens} are needed"
            reason = f"the answer has {len(readable)} tokens; {needed}"
            return Score(None, reason=reason, details=details)
        # 3. The score.
        # MBA §5.4.2 sums instead of averaging; a sum falls with the answer's length.
        values = log_probabilities(readable)
        lowest_k = values[least(values, config.k)]
        further = {"min-k": lowest_k.mean(), "sum": lowest_k.sum(), "mean": values.mean()}
        details |= {f"score/{name}": float(value) for name, value in further.items()}
        value = details["score/sum" if config.combine == "sum" else "score/min-k"]
        return Score(value, details=details)

    def _tokens(
        self, halves: Halves, answer: Answer
    ) -> tuple[AnswerReading, Sequence[TokenLogprob]]:
        """The outcome of an answer, and the tokens of it that are read."""
        spelling = answer_tokens(answer.text, answer.tokens or ())
        reading = read_answer(answer, expected=halves.second)
        if reading.outcome is AnswerOutcome.FAILED:
            return reading, ()
        if not spelling:
            trouble = UNSPELT if answer.tokens else NO_LOGPROBS
            return replace(reading, outcome=AnswerOutcome.FAILED, reason=trouble), ()
        if self.config.reads == "answer":
            return reading, spelling
        reading = read_continuation(answer, halves.first, halves.second)
        return reading, document_tokens(halves, reading.tokens)
