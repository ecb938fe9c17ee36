"""The masked text and its answers (§4.3.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.membership.mba.fragments import Unit
from ragwitness.text.words import split_words

__all__ = ["MASK_LABEL", "Mask", "Masked", "integrate"]

MASK_LABEL = re.compile(r"\[\s*mask[\s_\-#]*\d*\s*\]", re.IGNORECASE)
"""A mask as it stands in a text."""

_BEFORE = 4  # words shown before a masked word


@dataclass(frozen=True, slots=True)
class Mask:
    """One masked word.

    Attributes:
        number: i of ``[Mask_i]``, from 1 in reading order.
        unit: The word and its scores under the proxy.
        answers: What counts as right: the word, and its correction where it is misspelt.
        probability: Of the word under the proxy, or of its correction where that is higher.
        before: The few words that precede it.
    """

    number: int
    unit: Unit
    answers: tuple[str, ...]
    probability: float
    before: str


@dataclass(frozen=True, slots=True)
class Masked:
    """A document with its masks.

    Attributes:
        original: The text that was masked, cut at ``max_chars``.
        text: The same with ``[Mask_1]`` to ``[Mask_n]``.
        masks: In reading order.
        fallback: Masks chosen by the proxy because the LLM's did not align with the document.
    """

    original: str
    text: str
    masks: tuple[Mask, ...]
    fallback: int = 0


def integrate(
    text: str,
    chosen: Sequence[Unit],
    meant: dict[int, tuple[str, float]],
    fallback: int = 0,
) -> Masked:
    """Put numbered masks in place of words (Alg. 4, lines 27-36).

    Punctuation at a word's ends stays in the text. The published pseudocode appends the word as
    an answer of its own after it was appended with its correction (line 32): a slip.

    Args:
        text: The document.
        chosen: The words to mask, in any order.
        meant: Correction and its probability, by the number of the misspelt word.
        fallback: Carried into the result.
    """
    words = split_words(text)
    masks, pieces, position = [], [], 0
    for number, unit in enumerate(sorted(chosen, key=lambda unit: unit.start), start=1):
        pieces += [text[position : unit.start], f"[Mask_{number}]"]
        position = unit.end
        start = words[max(0, unit.index - _BEFORE)].start
        correction, probability = meant.get(unit.index, (None, 0.0))
        masks.append(
            Mask(
                number,
                unit,
                (unit.text,) if correction is None else (unit.text, correction),
                max(probability, _probability(unit.logprob)),
                text[start : unit.start].strip(),
            )
        )
    return Masked(text, "".join([*pieces, text[position:]]), tuple(masks), fallback)


def _probability(logprob: float) -> float:
    return math.exp(min(0.0, logprob))
