"""The DCMI audit of one document: its answer less that of a perturbed copy."""

from __future__ import annotations

import random

from ragwitness.membership.dcmi.config import PERTURB_PROMPT, DcmiConfig
from ragwitness.membership.dcmi.perturb import Perturbed, changed_words, perturb, quota
from ragwitness.membership.rag_mia.yes_no import YesNo, proxy_yes, read_yes_no
from ragwitness.membership.s2mia.halves import cut_words
from ragwitness.models import ChatPrompt, LanguageModel
from ragwitness.text.words import core, split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Message,
    Probe,
    Query,
    Role,
    Score,
)

__all__ = ["Dcmi"]

_ROOM = 32  # tokens a chat template adds, and a copy may be longer by


class Dcmi:
    """DCMI: f(document) - f(copy), where the copy has some words turned into their opposites.

    A target that holds the document affirms it and denies the copy; one that does not treats
    both alike, and what it says of such texts anyway cancels out.

    Args:
        proxy: Makes the copy where ``config.perturb`` says so, and answers the same questions
            without any database for the report; its answers are no part of the score.
        config: Access, share of words and limits.
    """

    def __init__(self, proxy: LanguageModel, config: DcmiConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or DcmiConfig()

    @property
    def name(self) -> str:
        """Registered name."""
        return "dcmi"

    @property
    def requires(self) -> frozenset[Capability]:
        """Text, or log-probabilities in gray access."""
        gray = self.config.access == "gray"
        return frozenset({Capability.TOP_LOGPROBS if gray else Capability.TEXT})

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        by = "the proxy model" if self.config.perturb == "llm" else "a table of antonyms"
        return {
            "copy": f"{self.config.share:.0%} of the words turned round by {by}",
            "read": "log-odds of yes" if self.config.access == "gray" else "yes or no",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config, gray = self.config, self.config.access == "gray"
        text, cut = cut_words(document.text, config.max_words)
        words = [word for word in split_words(text) if core(word.text)]
        details = {"cut": float(cut)}
        if len(words) < config.min_words:
            return Score(None, reason=f"fewer than {config.min_words} words to ask about")
        copy, fell_back = self._copy(text, len(words), document.id)
        if copy is None:
            return Score(None, reason="no word of it can be turned round", details=details)
        details |= {"perturbed": float(len(copy.changes)), copy.kind: float(len(copy.changes))}
        details |= {"fallback": 1.0} if fell_back else {}
        questions = [config.prompt.replace("{doc}", said) for said in (text, copy.text)]
        top = config.top_logprobs if gray else 0
        answers = yield [
            Query(q, max_tokens=config.max_tokens, top_logprobs=top) for q in questions
        ]
        return self._score(questions, copy, answers, details)

    def _copy(self, text: str, words: int, identity: str) -> tuple[Perturbed | None, bool]:
        n = quota(words, self.config.share, self.config.most)
        if self.config.perturb == "llm":
            made = self._by_model(text, n)
            if made:
                return made, False
        rng = random.Random(f"{self.config.seed}/{identity}")
        return perturb(text, n, rng), self.config.perturb == "llm"

    def _by_model(self, text: str, n: int) -> Perturbed | None:
        """Ask the proxy for the copy; None where it made something else of the text."""
        told = PERTURB_PROMPT.replace("{n}", str(n)).replace("{doc}", text)
        room = self.proxy.count_tokens(text) + _ROOM
        if self.proxy.count_tokens(told) + room + _ROOM > self.proxy.context_length:
            return None
        prompt = ChatPrompt((Message(Role.USER, told),))
        made = self.proxy.generate([prompt], max_tokens=room)[0].text.strip().strip('"')
        changes = changed_words(text, made)
        return Perturbed(made, changes, "llm") if changes and len(changes) <= 2 * n else None

    def _score(
        self,
        questions: list[str],
        copy: Perturbed,
        answers: list[Answer],
        details: dict[str, float],
    ) -> Score:
        gray = self.config.access == "gray"
        one, other = (read_yes_no(answer, gray=gray) for answer in answers)
        for reading in (one, other):
            details[reading.outcome] = details.get(reading.outcome, 0.0) + 1.0
        details |= _differences(one, other)
        values = [reading.value(gray=gray) for reading in (one, other)]
        if values[0] is None or values[1] is None:
            reason = one.reason if values[0] is None else f"of the copy: {other.reason}"
            return Score(None, reason=reason, details=details)
        details["score/uncalibrated"] = values[0]
        return Score(
            values[0] - values[1],
            evidence=self._evidence(questions, copy, (one, other)),
            details=details,
        )

    def _evidence(
        self, questions: list[str], copy: Perturbed, readings: tuple[YesNo, YesNo]
    ) -> tuple[Evidence, ...]:
        """Both questions, told by the words in which they differ."""
        olds = ", ".join(old for old, _ in copy.changes)
        news = ", ".join(new for _, new in copy.changes)
        labels = (f"right? (as it stands: {olds})", f"right? (turned round: {news})")
        found = []
        for label, question, reading in zip(labels, questions, readings, strict=True):
            said = reading.yes
            if self.config.access == "text" and reading.text is not None:
                said = Interval(reading.text, reading.text)
            found.append(Evidence("Yes", label, said, proxy_yes(self.proxy, question)))
        return tuple(found)


def _differences(one: YesNo, other: YesNo) -> dict[str, float]:
    """Every score that both answers allow, whatever the access."""
    pairs = {
        "score/text": (one.text, other.text),
        "score/gray": (one.log_odds, other.log_odds),
        "score/published": (one.published, other.published),
    }
    return {
        key: first - second
        for key, (first, second) in pairs.items()
        if first is not None and second is not None
    }
