"""The Min-K% audit of one document: how sure the target is of what it says next."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ragwitness.membership.min_k.config import MinKConfig
from ragwitness.membership.min_k.scores import least, log_probabilities, standardised
from ragwitness.membership.rag_mia.tokens import answer_tokens
from ragwitness.membership.rag_mia.yes_no import outcome_name, trouble_with
from ragwitness.membership.s2mia.halves import Halves, baselines, halve
from ragwitness.models import LanguageModel
from ragwitness.text.words import core, split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
    TokenLogprob,
)

__all__ = ["MinK"]

_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more
_BEFORE = 4  # words shown before a deciding word
_LONGEST = 40  # characters shown of a word; a target that stammers makes endless ones


class MinK:
    """Min-K% and Min-K%++: mean over the least probable k per cent of the answer's tokens.

    The method was made for texts that a model was trained on, and reads the true tokens of a
    document. A chat interface only gives the log-probabilities of what the target says itself,
    given the first half of the document; these are read, as in MBA's baseline (§5.4.2). The
    other reading needs the log-probabilities of a prompt, which no query can ask for.

    Args:
        proxy: Counts tokens, and rates the words shown in the report; never part of the score.
        config: Variant and parameters.
    """

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
            "tokens read": f"least probable {self.config.k:g} %",
            "alternatives per token": str(self.config.top_logprobs),
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        halves = halve(document.text, config.max_words, config.min_words)
        if halves is None:
            return Score(None, reason=f"fewer than {config.min_words} words to cut in half")
        answers = yield [
            Query(
                config.prompt.replace("{prefix}", halves.first),
                max_tokens=self.proxy.count_tokens(halves.second) + _ROOM,
                top_logprobs=config.top_logprobs,
            )
        ]
        return self._read(halves, answers[0])

    def _read(self, halves: Halves, answer: Answer) -> Score:
        trouble = trouble_with(answer, halves.second_words, logprobs=True)
        details = {outcome_name(trouble): 1.0, "cut": float(halves.cut)}
        if trouble:
            return Score(None, reason=trouble, details=details)
        tokens = answer_tokens(answer)
        if tokens is None:
            details["mismatch"] = 1.0
            return Score(
                None, reason="the log-probabilities do not spell the answer", details=details
            )
        known = [token for token in tokens if not math.isnan(token.logprob)]
        details |= {"tokens": float(len(known)), "unread": float(len(tokens) - len(known))}
        if len(known) < self.config.min_tokens:
            return Score(
                None,
                reason=f"the answer has {len(known)} tokens; {self.config.min_tokens} are needed",
                details=details,
            )
        return self._score(halves, tokens, known, details)

    def _score(
        self,
        halves: Halves,
        tokens: Sequence[TokenLogprob],
        known: Sequence[TokenLogprob],
        details: dict[str, float],
    ) -> Score:
        plain = log_probabilities(known)
        scaled = np.array([standardised(token) for token in known])
        chosen = scaled if self.config.variant == "min-k++" else plain
        lowest = least(chosen, self.config.k)
        details |= {
            "score/min-k": float(plain[least(plain, self.config.k)].mean()),
            "score/min-k++": float(scaled[least(scaled, self.config.k)].mean()),
            # MBA §5.4.2 sums instead of averaging; a sum falls with the answer's length.
            "score/sum": float(plain[least(plain, self.config.k)].sum()),
            "score/mean": float(plain.mean()),
        }
        places = [place for place, token in enumerate(tokens) if not math.isnan(token.logprob)]
        return Score(
            value=float(chosen[lowest].mean()),
            evidence=self._evidence(halves.first, tokens, [places[i] for i in lowest]),
            details=details,
        )

    def _evidence(
        self,
        prefix: str,
        tokens: Sequence[TokenLogprob],
        places: Sequence[int],
    ) -> tuple[Evidence, ...]:
        """The words that hold the chosen tokens, with what the proxy makes of each."""
        text = f"{prefix} " + "".join(token.token for token in tokens)
        expected = baselines(self.proxy, text)
        words = split_words(text)
        ends = np.cumsum([len(prefix) + 1, *(len(token.token) for token in tokens)])
        found: dict[int, Evidence] = {}
        for place in places:
            number = next((i for i, word in enumerate(words) if word.end >= ends[place + 1]), None)
            if number is None or number in found or words[number].start not in expected:
                continue
            word = words[number]
            if core(word.text) and word.start > len(prefix):
                start = words[max(0, number - _BEFORE)].start
                p = math.exp(min(0.0, tokens[place].logprob))
                found[number] = Evidence(
                    core(word.text)[:_LONGEST],
                    text[start : word.start].strip(),
                    Interval(p, p),
                    expected[word.start],
                )
        return tuple(found.values())
