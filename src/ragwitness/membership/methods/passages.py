"""Find a document in the passages that a system shows as its sources: one query, no model.

Ours, in no paper. A system that retrieves with a document's own text and shows the results shows
that text, word for word, if it has it. Text that documents outside share with the passages (a
template, a phrase, another version) counts for those known to be outside too, and each score is
ranked among theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ragwitness.core.registry import at_least
from ragwitness.core.types import Capability, Document, Evidence, Interval, Probe, Query, Score
from ragwitness.models.base import LanguageModel
from ragwitness.text.overlap import Vocabulary, shared_runs
from ragwitness.text.words import cut_characters, plain_tokens

_SHOWN = 6  # words of the document shown in the report


@dataclass(frozen=True, slots=True)
class PassagesConfig:
    """How a document is looked for.

    Attributes:
        max_chars: Longer texts are cut after the last whole word that fits; only the beginning is
            asked about, so that one passage can hold it.
        run: Words in a row that must agree for them to count.
        min_words: Shorter documents are unscorable: many texts have a few words in common.
        max_tokens: Room for the answer, which is not read.
    """

    stored_name: ClassVar[str] = "PassagesConfig"

    max_chars: int = 600
    run: int = 4
    min_words: int = 8
    max_tokens: int = 8

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, "max_chars", "run", "min_words", "max_tokens")


class Passages:
    """Share of a document's words in the passages shown, in runs of several.

    Args:
        proxy: Not asked; every audit is given one.
        config: How much of the document is sent, and which words count.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.passages.Passages"
    name = "passages"
    requires = frozenset({Capability.CONTEXTS})  # the text of the answer is not read

    def __init__(self, proxy: LanguageModel, config: PassagesConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or PassagesConfig()

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "question": "the document's own text",
            "read": f"words in shown passages, in runs of at least {self.config.run}",
            "longest text": f"{self.config.max_chars} characters",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        # 1. Query with the document's own text; the words cut off are counted.
        text, cut = cut_characters(document.text.strip(), config.max_chars)
        words = plain_tokens(text)
        if len(words) < max(config.min_words, config.run):
            return Score(None, reason=f"fewer than {config.min_words} words to look for")
        # The answer is not read, so it gets little room.
        (answer,) = yield [Query(text, max_tokens=config.max_tokens)]
        if answer.error:
            return Score(None, reason=answer.error, details={"error": 1.0})
        if answer.contexts is None:
            return Score(None, reason="the target showed no passages", details={"hidden": 1.0})
        # 2. Its words in the passages, in the document's order.
        vocabulary = Vocabulary()
        contexts, document_text = vocabulary.tokenize(answer.contexts), vocabulary.tokenize([text])
        runs = shared_runs(contexts, document_text, config.run)
        share = float(runs.recovered[0]) / len(words)
        opening = " ".join(text.split()[:_SHOWN])
        evidence = Evidence(opening, "", Interval(share, share), math.nan)
        details = {"cut": float(cut), "passages": float(len(answer.contexts))}
        return Score(share, evidence=(evidence,), details=details)
