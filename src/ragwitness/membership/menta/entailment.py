"""Whether one text entails another: the embedded stand-in, and the claims that are judged.

The stand-in is containment: the share of the hypothesis's content words and numbers that the
premise says. It has no idea of negation or paraphrase; an NLI model does (:mod:`.nli`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeAlias

from ragwitness.text.words import STOP_WORDS, core, split_words

__all__ = ["UNKNOWN_HYPOTHESIS", "Entailment", "claims", "contained", "content"]

Entailment: TypeAlias = Callable[[str, str], float]
"""Probability, in [0, 1], that a premise entails a hypothesis."""

UNKNOWN_HYPOTHESIS = "I don't know the answer."

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def claims(text: str) -> list[str]:
    """Split an answer into its sentences."""
    return [part.strip() for part in _SENTENCE.split(text) if content(part)]


def content(text: str) -> list[str]:
    """Return the words of a text without function words, punctuation, case, signs of numbers."""
    stems = (core(word.text).casefold() for word in split_words(text))
    return [stem.replace(",", "") for stem in stems if stem and stem not in STOP_WORDS]


def contained(premise: str, hypothesis: str, known: Collection[str] = ()) -> float:
    """Return the share of the hypothesis's content words that the premise says.

    Args:
        premise: What should entail.
        hypothesis: What should be entailed; 0 where no content word is left of it.
        known: Words that prove nothing, such as those of the question.
    """
    wanted = set(content(hypothesis)) - set(known)
    return len(wanted & set(content(premise))) / len(wanted) if wanted else 0.0
