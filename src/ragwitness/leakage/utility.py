"""How good answers are, against reference answers: what a defence costs (SAGE §4.2, App. A.8).

The published measures stand beside others under names of their own: SAGE calls *containment*
exact match, and its BLEU-1 splits at white space, so that punctuation sticks to words. Where a
question has several reference answers, the best counts. All are within [0, 1].
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.text.overlap import Vocabulary, lcs_length

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """ROUGE-L F1, tokens of any script without regard to case, not stemmed."""
    vocabulary = Vocabulary()
    texts = vocabulary.tokenize([answer, *references])
    said = texts[0]

    def f1(place: int) -> float:
        sizes = len(said) + len(texts[place])
        # F1 = 2 LCS / (|answer| + |reference|).
        return 2 * lcs_length(said, texts[place]) / sizes if sizes else 0.0

    return max(f1(place) for place in range(1, len(texts)))


def bleu_1(answer: str, references: Sequence[str]) -> float:
    """BLEU-1 as published: NLTK's ``sentence_bleu``, lower case, split at white space.

    Weights (1, 0, 0, 0), no smoothing; all references count together.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    return _sacrebleu(answer, references, tokenize="none", lowercase=True)


def bleu_1_sacre(answer: str, references: Sequence[str]) -> float:
    """BLEU-1 by sacrebleu's own settings: its 13a tokens, case kept.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    return _sacrebleu(answer, references)


def _sacrebleu(answer: str, references: Sequence[str], **settings: Any) -> float:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise MissingExtraError("BLEU-1", "leak") from error
    # Order 1 with brevity penalty; sacrebleu counts in percent.
    scorer = BLEU(max_ngram_order=1, effective_order=True, **settings)
    return float(scorer.sentence_score(answer, list(references)).score) / 100


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Whether it equals a reference once case, punctuation and articles are gone (SQuAD)."""
    said = _normal(answer)
    return float(any(said == _normal(truth) for truth in references))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the words shared in any order, normalised as for :func:`exact_match` (SQuAD)."""
    said = _normal(answer).split()

    def f1(truth: list[str]) -> float:
        if not said or not truth:
            return float(said == truth)
        return 2 * (Counter(said) & Counter(truth)).total() / (len(said) + len(truth))

    return max(f1(_normal(truth).split()) for truth in references)


def contains_verbatim(answer: str, references: Sequence[str]) -> float:
    """Whether a reference stands in it character by character: SAGE's "exact match"."""
    return float(any(truth in answer for truth in references))


def contains(answer: str, references: Sequence[str]) -> float:
    """Whether a reference stands in it in whole words, normalised as for :func:`exact_match`."""
    said = f" {_normal(answer)} "
    return float(any(f" {_normal(truth)} " in said for truth in references if _normal(truth)))


MEASURES: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "ROUGE-L": rouge_l,
    "BLEU-1 (as published)": bleu_1,
    "BLEU-1 (sacrebleu)": bleu_1_sacre,
    "exact match": exact_match,
    "token F1": token_f1,
    "containment (published as exact match)": contains_verbatim,
    "containment": contains,
}
"""The measures by name; each takes an answer and its reference answers."""


def measure_utility(
    answers: Sequence[str],
    references: Sequence[Sequence[str]],
    names: Sequence[str] = tuple(MEASURES),
) -> dict[str, NDArray[np.float64]]:
    """Score every answer by every measure.

    Args:
        answers: What a system said; an empty one scores 0.
        references: The reference answers of each, at least one that is not blank.
        names: The measures to apply, keys of :data:`MEASURES`.

    Returns:
        By name, shape (answers,).

    Raises:
        InputError: Numbers differ, an answer has no reference, or a name is unknown.
        MissingExtraError: A measure needs a package that is not installed.
    """
    if len(answers) != len(references):
        raise InputError(f"{len(answers)} answers have {len(references)} lists of references.")
    if unknown := [name for name in names if name not in MEASURES]:
        raise InputError(f"There is no measure {unknown[0]!r}.", f"Known: {', '.join(MEASURES)}.")
    # A blank reference would stand in every answer.
    given = [[truth for truth in truths if truth.strip()] for truths in references]
    if bare := sum(not truths for truths in given):
        raise InputError(f"{bare} answers have no reference answer.", "Leave them out.")
    pairs = list(zip(answers, given, strict=True))
    return {name: np.array([MEASURES[name](*pair) for pair in pairs], np.float64) for name in names}


def answer_lengths(answers: Sequence[str]) -> NDArray[np.float64]:
    """Return the words of each answer, shape (answers,), to hold lengths equal."""
    return np.array([len(answer.split()) for answer in answers], np.float64)


def _normal(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
