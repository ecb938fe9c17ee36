"""The S2MIA audit of one document: first half in, second half out?"""

from __future__ import annotations

import math
import re

import numpy as np

from ragwitness.membership.rag_mia.tokens import answer_tokens
from ragwitness.membership.rag_mia.yes_no import outcome_name, trouble_with
from ragwitness.membership.s2mia.config import S2MiaConfig
from ragwitness.membership.s2mia.halves import Halves, baselines, halve
from ragwitness.membership.s2mia.similarity import (
    bleu,
    embedded_cosine,
    lexical_cosine,
    plain_words,
)
from ragwitness.models import Embedder, LanguageModel
from ragwitness.text.words import STOP_WORDS, core, split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
)

__all__ = ["S2Mia", "response"]

_ROOM = 32  # tokens beyond the second half: the wrapping the prompt asks for
_BEFORE = 4  # words shown before a word of the report
_SHOWN = 20
_WRAP = re.compile(r"^\W*response\W*?:\s*[\"'\u2018\u201c]?", re.IGNORECASE)
_UNWRAP = re.compile(r"[\"'\u2019\u201d]?\s*\}\s*\W*$")


class S2Mia:
    """S2MIA: likeness of the answer to the half of the document that was not shown.

    The value is the similarity alone (S). With log-probabilities the features are similarity
    and perplexity, for :func:`fit_thresholds` (T) and :func:`fit_classifier` (M); without any
    training ``details["score/s&p"]`` puts both on a scale from 0 to 1 (ours).

    Args:
        proxy: Counts tokens, and rates the words shown in the report; never part of the score.
        config: Prompt and parameters.
        embedder: What the cosine is taken of; None compares word counts.
    """

    def __init__(
        self,
        proxy: LanguageModel,
        config: S2MiaConfig | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or S2MiaConfig()
        self.embedder = embedder

    @property
    def name(self) -> str:
        """Registered name."""
        return "s2mia"

    @property
    def requires(self) -> frozenset[Capability]:
        """Text, or log-probabilities in gray access."""
        gray = self.config.access == "gray"
        return frozenset({Capability.TOP_LOGPROBS if gray else Capability.TEXT})

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        of = self.embedder.name if self.embedder else "word counts"
        cosine = self.config.similarity == "cosine"
        return {
            "similarity": f"cosine of {of}" if cosine else f"BLEU-{self.config.bleu_order}",
            "perplexity": "read" if self.config.access == "gray" else "not read",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        halves = halve(document.text, config.max_words, config.min_words)
        if halves is None:
            return Score(None, reason=f"fewer than {config.min_words} words to cut in half")
        answers = yield [
            Query(
                config.prompt.replace("{first_half}", halves.first),
                max_tokens=self.proxy.count_tokens(halves.second) + _ROOM,
                top_logprobs=1 if config.access == "gray" else 0,
            )
        ]
        return self._read(halves, answers[0])

    def _read(self, halves: Halves, answer: Answer) -> Score:
        said = response(answer.text)
        trouble = trouble_with(answer, halves.second_words)
        if trouble is None and not plain_words(said):
            trouble = "the target answered with nothing"
        details = {outcome_name(trouble): 1.0, "cut": float(halves.cut)}
        if trouble:
            return Score(None, reason=trouble, details=details)
        words, true = plain_words(said), plain_words(halves.second)
        details["score/bleu"] = bleu(words, true, self.config.bleu_order)
        details["score/cosine"] = (
            embedded_cosine(self.embedder, said, halves.second)
            if self.embedder
            else lexical_cosine(words, true)
        )
        value = details[f"score/{self.config.similarity}"]
        features: tuple[float, ...] = (value,) if self.config.access == "text" else ()
        surprisal = _surprisal(answer)
        if surprisal is not None:
            perplexity = math.exp(surprisal)
            # 1 - 1/perplexity is 0 for a sure answer and nears 1, as similarity is 0 to 1.
            details |= {"perplexity": perplexity, "score/s&p": value - (1 - 1 / perplexity)}
            if self.config.access == "gray":
                features = (value, perplexity)
        elif self.config.access == "gray":
            details["no_logprobs"] = 1.0
        evidence = self._evidence(halves, set(words))
        return Score(value, features, evidence, details=details)

    def _evidence(self, halves: Halves, said: set[str]) -> tuple[Evidence, ...]:
        """Words of the second half that the answer has without having been shown them."""
        shown = set(plain_words(halves.first)) | STOP_WORDS
        start = len(halves.text) - len(halves.second)
        expected = baselines(self.proxy, halves.text)
        words = split_words(halves.text)
        found: dict[str, Evidence] = {}
        for number, word in enumerate(words):
            plain = core(word.text).casefold()
            if word.start < start or plain not in said - shown or plain in found:
                continue
            if plain and word.start in expected:
                first = words[max(0, number - _BEFORE)].start
                before = halves.text[first : word.start].strip()
                p = expected[word.start]
                found[plain] = Evidence(core(word.text), before, Interval(1.0, 1.0), p)
        return tuple(sorted(found.values(), key=lambda item: item.baseline)[:_SHOWN])


def response(text: str) -> str:
    """Return an answer without the wrapping that the prompt asks for."""
    bare, wrapped = _WRAP.subn("", text)
    return (_UNWRAP.sub("", bare) if wrapped else text).strip()


def _surprisal(answer: Answer) -> float | None:
    """Mean of -log p over the tokens of the answer, its wrapping included, as it was generated."""
    tokens = answer_tokens(answer) if answer.tokens else None
    known = [min(0.0, max(-20.0, t.logprob)) for t in tokens or () if not math.isnan(t.logprob)]
    return -float(np.mean(known)) if known else None
