"""Min-K% and Min-K%++ (Shi et al., 2024; Zhang et al., 2025) on the answer of a RAG system."""

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
from ragwitness.membership.methods.response_parsing.probabilities import probability_at, token_at
from ragwitness.membership.methods.response_parsing.replies import (
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

# Parameters of Min-K% and Min-K%++.


@dataclass(frozen=True, slots=True)
class MinKConfig:
    """How a document is asked about and its answer read.

    Attributes:
        variant: ``"min-k"`` averages log-probabilities, ``"min-k++"`` standardises them first.
        k: Per cent of the tokens that are read, the least probable ones. MBA (§5.4.2) tries 1 to
            20 and reports the best on its test set; here k is fixed beforehand.
        reads: ``"document"`` reads the document's own words as far as the answer came to them
            (ours, and what Min-K% was made for); ``"answer"`` whatever the answer says, as MBA's
            baseline does. A target that declines is then read like any other, as published; else
            it is below every other answer.
        combine: ``"mean"`` of these, or their ``"sum"`` as MBA's baseline (§5.4.2).
        prompt: Must hold ``{prefix}``; S-RAG's, since the method has none for RAG.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        min_tokens: An answer of fewer tokens is unscorable.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
    """

    stored_name: ClassVar[str] = "MinKConfig"
    later: ClassVar[tuple[str, ...]] = ("combine", "reads")
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {"k": 20.0, "combine": "sum", "min_tokens": 1, "reads": "answer"}
    }

    variant: Literal["min-k", "min-k++"] = "min-k"
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
        one_of(self, "variant", "min-k", "min-k++")
        one_of(self, "combine", "mean", "sum")
        one_of(self, "reads", "document", "answer")
        if not 0.0 < self.k <= 100.0:
            raise InputError(f"k is a percentage above 0 and at most 100, not {self.k}.")
        at_least(self, 1, "min_tokens", "top_logprobs")
        at_least(self, 2, "min_words")
        ordered(self, "min_words", "max_words")
        if "{prefix}" not in self.prompt:
            raise InputError("The prompt must hold {prefix}.")


# The two scores, from log-probabilities alone.

_LOWEST = -20.0  # servers write -9999 for what they did not list
_CERTAIN = 1e-6


def log_probabilities(tokens: Sequence[TokenLogprob]) -> NDArray[np.float64]:
    """Return log p of each token, at least -20, shape (n,)."""
    return np.array([_bounded(token.logprob) for token in tokens])


def standardised(token: TokenLogprob) -> float:
    """Return (log p - mu) / sigma of one token.

    mu and sigma are the mean and standard deviation of log p over what could have come instead.
    Of the vocabulary only the listed alternatives are known; they are taken with the mass that
    is not listed as one more outcome, renormalised where rounding makes them exceed 1. So many
    improbable tokens count as one more probable one: sigma comes out too small, most of all
    where the list is short. A token that was certain is where it is expected: 0.
    """
    listed = {text: _bounded(value) for text, value in token.top if value == value}
    logprob = listed.setdefault(token.token, _bounded(token.logprob))
    p = np.exp(list(listed.values()))
    # What the list does not hold is one more outcome of the distribution.
    rest = 1.0 - float(p.sum())
    p = np.append(p, rest) if rest > 0.0 else p / p.sum()
    logs = np.log(np.maximum(p, math.exp(_LOWEST)))
    mu = float((p * logs).sum())
    sigma = math.sqrt(max(0.0, float((p * logs**2).sum()) - mu**2))
    return 0.0 if sigma < _CERTAIN else (logprob - mu) / sigma


def least(values: NDArray[np.float64], k: float) -> NDArray[np.int64]:
    """Return the positions of the lowest k per cent, at least one, lowest first."""
    count = max(1, int(len(values) * k / 100.0))
    return np.argsort(values, kind="stable")[:count]


def document_tokens(halves: Halves, tokens: Sequence[TokenLogprob]) -> list[TokenLogprob]:
    """Return the tokens of the second half's words as far as an answer came to them.

    Where it left the document, the true word stands with the probability that it had there.

    Args:
        halves: The document.
        tokens: What the answer says beyond the first half.
    """
    text = "".join(token.token for token in tokens)
    words, said = split_words(halves.text), split_words(text)
    half = sum(word.start < len(halves.first) for word in words)
    aligned = align(words, half, [word.text for word in said])
    found: list[TokenLogprob] = []
    # Of an answer that has nothing of the document, its first word is where it should go on.
    places = aligned or ({half: 0} if said and half < len(words) else {})
    for index, place in sorted(places.items()):
        first, last = token_at(tokens, said[place].start), token_at(tokens, said[place].end - 1)
        if same_word(said[place].text, words[index].text):
            found += tokens[first : last + 1]
        else:
            p = probability_at(tokens[first:], words[index].text).high
            log_p = math.log(p) if p else _LOWEST
            found.append(TokenLogprob(f" {words[index].text}", log_p, tokens[first].top))
    return found


def _bounded(logprob: float) -> float:
    return min(0.0, max(_LOWEST, logprob))


# The Min-K% audit of one document: how sure the target is of what it says next.

_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more
_MOST = 1_000  # tokens that are summed


class MinK:
    """Min-K% and Min-K%++: mean over the least probable k per cent of the document's tokens.

    A chat interface only gives the log-probabilities of what the target says itself, given the
    first half of the document: they are those of the document's words as far as it says them. As
    published in MBA's baseline (§5.4.2) all that it says is read, whatever it is.

    Args:
        proxy: Counts tokens.
        config: Variant and parameters.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.min_k.probe.MinK"
    requires = frozenset({Capability.TOP_LOGPROBS})

    def __init__(self, proxy: LanguageModel, config: MinKConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or MinKConfig()

    @property
    def name(self) -> str:
        """Registered name, which is the variant's."""
        return self.config.variant

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "tokens read": f"least probable {self.config.k:g} %"
            + (", summed" if self.config.combine == "sum" else ""),
            "alternatives per token": str(self.config.top_logprobs),
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        halves = halve(document.text, config.max_words, config.min_words)
        if halves is None:
            return Score(None, reason=f"fewer than {config.min_words} words to cut in half")
        prompt, once = config.prompt.replace("{prefix}", halves.first), config.reads == "answer"
        asked = ask_on(halves, prompt, self.proxy, _ROOM, config.top_logprobs, once=once)
        return self._read(halves, (yield from asked))

    def _read(self, halves: Halves, answer: Answer) -> Score:
        reading, tokens = self._tokens(halves, answer)
        details = {reading.outcome.value: 1.0, "cut": float(halves.cut)}
        if reading.outcome is AnswerOutcome.DECLINED and self.config.reads == "document":
            return Score(self._lowest, details=details)
        if reading.reason and reading.outcome is AnswerOutcome.FAILED:
            return Score(None, reason=reading.reason, details=details)
        known = [token for token in tokens if not math.isnan(token.logprob)]
        details |= {"tokens": float(len(known)), "unread": float(len(tokens) - len(known))}
        if not known and "echo" in reading.removed:  # it left the first half before its end
            return Score(self._lowest, details=details)
        if (
            len(answer.tokens or ()) - len(tokens) + len(known) < self.config.min_tokens
            or not known
        ):
            return Score(
                None,
                reason=f"the answer has {len(known)} tokens; {self.config.min_tokens} are needed",
                details=details,
            )
        return self._score(known, details)

    def _tokens(
        self, halves: Halves, answer: Answer
    ) -> tuple[AnswerReading, Sequence[TokenLogprob]]:
        """What the answer is, and the tokens of it that are read."""
        own = answer_tokens(answer.text, answer.tokens or ())
        reading = read_answer(answer, expected=halves.second)
        if reading.outcome is AnswerOutcome.FAILED:
            return reading, ()
        if not own:
            trouble = UNSPELT if answer.tokens else NO_LOGPROBS
            return replace(reading, outcome=AnswerOutcome.FAILED, reason=trouble), ()
        if self.config.reads == "answer":
            return reading, own
        reading = read_continuation(answer, halves.first, halves.second)
        return reading, document_tokens(halves, reading.tokens)

    @property
    def _lowest(self) -> float:
        """Below the value of whatever can be answered."""
        return 2 * _LOWEST * (_MOST if self.config.combine == "sum" else 1)

    def _score(self, known: Sequence[TokenLogprob], details: dict[str, float]) -> Score:
        # Min-K% reads log p, Min-K%++ (log p - mu) / sigma; both look at the lowest k per cent.
        plain = log_probabilities(known)
        scaled = np.array([max(_LOWEST, standardised(token)) for token in known])
        chosen = scaled if self.config.variant == "min-k++" else plain
        lowest = least(chosen, self.config.k)
        sums = self.config.combine == "sum"
        details |= {
            "score/min-k": float(plain[least(plain, self.config.k)].mean()),
            "score/min-k++": float(scaled[least(scaled, self.config.k)].mean()),
            # MBA §5.4.2 sums instead of averaging; a sum falls with the answer's length.
            "score/sum": float(plain[least(plain, self.config.k)].sum()),
            "score/mean": float(plain.mean()),
        }
        value = chosen[lowest].sum() if sums else chosen[lowest].mean()
        return Score(float(value), details=details)
