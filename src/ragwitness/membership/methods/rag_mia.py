"""RAG-MIA (Anderson et al., 2025): ask the system whether a text is in its context."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least, one_of
from ragwitness.core.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
)
from ragwitness.membership.response_parsing.probabilities import read_yes_no
from ragwitness.membership.response_parsing.replies import with_room
from ragwitness.models.base import LanguageModel
from ragwitness.text.words import core, cut_characters, split_words

# Parameters of RAG-MIA, the paper's beside ours.

Access = Literal["text", "gray"]
"""The part of an answer that is read: its text, or the odds of its first word as well."""

TEMPLATES = (
    "Answer with Yes or No. \u201c{s}\u201d Is this part of your context?",
    "Answer with one word. Does this: \u201c{s}\u201d appear in the context?",
    "Does this: \u201c{s}\u201d appear in the context? Answer with Yes or No.",
    "{s} Is this part of your context? Answer with one word.",
    "Does this: \u201c{s}\u201d appear in the context? Answer with one word."
    " Answer No if you are not sure.",
)
"""The paper's five prompts, in its order. MBA (§2) quotes number 2, the best of them."""


@dataclass(frozen=True, slots=True)
class RagMiaConfig:
    """How a document is asked about.

    Attributes:
        template: Number of the prompt, 0 to 4.
        access: ``"text"`` reads yes or no; ``"gray"`` the log-odds of the two, which needs
            log-probabilities.
        max_chars: Longer texts are cut after the last whole word that fits, as the paper cuts
            its e-mails; only the beginning is asked about.
        min_words: Shorter documents are unscorable (ours: a word or two occur in any context).
        max_tokens: Room for the answer. Where it is cut before either word can be read, the
            question is asked again with room for a sentence or a thought (ours).
        top_logprobs: Alternatives asked for in gray access; OpenAI allows 20.
        unreadable: The reading of an answer without either: ``"unscorable"``, or ``"no"`` as
            published. A decline is a No in both.
    """

    stored_name: ClassVar[str] = "RagMiaConfig"
    later: ClassVar[tuple[str, ...]] = ("unreadable",)
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {
            "template": 2,
            "access": "text",
            "unreadable": "no",
            "min_words": 1,
        }
    }

    template: int = 2
    access: Access = "text"
    max_chars: int = 1000
    min_words: int = 8
    max_tokens: int = 16
    top_logprobs: int = 20
    unreadable: Literal["unscorable", "no"] = "unscorable"

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        if self.template not in range(len(TEMPLATES)):
            raise InputError(
                f"template must be 0 to {len(TEMPLATES) - 1}, not {self.template!r}.",
                "The five prompts are listed in ragwitness.membership.methods.rag_mia.TEMPLATES.",
            )
        one_of(self, "access", "text", "gray")
        one_of(self, "unreadable", "unscorable", "no")
        at_least(self, 1, "max_chars", "min_words", "max_tokens", "top_logprobs")


# The RAG-MIA audit of one document: one question, one word of answer.

_ROOM = 64  # tokens of a sentence
_SHOWN = 6  # words of the document shown in the question of the report


class RagMia:
    """RAG-MIA: is this text in your context, yes or no?

    A decline is a No. The paper takes any answer without Yes for one; here an answer without
    either is unscorable unless ``unreadable`` says otherwise, and the paper's rule is always in
    ``details["score/published"]``.

    Args:
        proxy: Counts tokens.
        config: Prompt, access and limits.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.rag_mia.probe.RagMia"
    name = "rag-mia"

    def __init__(self, proxy: LanguageModel, config: RagMiaConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or RagMiaConfig()

    @property
    def requires(self) -> frozenset[Capability]:
        """Text, or log-probabilities in gray access."""
        gray = self.config.access == "gray"
        return frozenset({Capability.TOP_LOGPROBS if gray else Capability.TEXT})

    @property
    def threshold(self) -> float | None:
        """The method's own decision: yes is in, any other answer out."""
        return 0.5 if self.config.access == "text" else None

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "question": TEMPLATES[self.config.template],
            "read": "log-odds of yes" if self.config.access == "gray" else "yes or no",
            "longest text": f"{self.config.max_chars} characters",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config, gray = self.config, self.config.access == "gray"
        # One question about the text; the words cut off are counted.
        text, cut = cut_characters(document.text.strip(), config.max_chars)
        template = TEMPLATES[config.template]
        question = template.replace("{s}", text)
        # A word or two occur in any context.
        words = split_words(text)
        if sum(bool(core(word.text)) for word in words) < config.min_words:
            return Score(None, reason=f"fewer than {config.min_words} words to ask about")
        query = Query(
            question,
            max_tokens=config.max_tokens,
            top_logprobs=config.top_logprobs if gray else 0,
        )

        def readable(answer: Answer) -> bool:
            return read_yes_no(answer, question, gray=False).text is not None

        if config.unreadable == "no":
            (answer,) = yield [query]
        else:
            room = [self.proxy.count_tokens(question) + _ROOM]
            (answer,) = yield from with_room([query], [question], room, readable)
        # Yes or no, and in gray access log p(Yes) - log p(No) of the first word.
        reading = read_yes_no(answer, question, gray=gray)
        value = reading.log_odds if gray else reading.text
        if value is None and config.unreadable == "no":
            value = reading.published
        scores = {"text": reading.text, "gray": reading.log_odds, "published": reading.published}
        details = {f"score/{key}": score for key, score in scores.items() if score is not None}
        details |= {reading.outcome: 1.0, "cut": float(cut)}
        if value is None:
            return Score(None, reason=reading.reason, details=details)
        # The report shows the question with the first words of the text.
        opening = text[: words[_SHOWN - 1].end] + " \u2026" if len(words) > _SHOWN else text
        yes = reading.yes
        if not gray and reading.text is not None:
            yes = Interval(reading.text, reading.text)
        evidence = Evidence("Yes", template.replace("{s}", opening), yes, math.nan)
        return Score(value, evidence=(evidence,), details=details)
