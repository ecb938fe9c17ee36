"""Correctness of an answer as judged by the auditor's own chat model (the formula of Ragas).

.75 times the F1 of statements plus .25 times the cosine of both texts: statements of the answer
that the reference supports are true positives, the others false positives, statements of the
reference that the answer leaves out false negatives. No I/O: the judge is asked by a worker like
any target, so caps, journal and resuming hold for it too.

What cannot be judged has no score and its reason, where Ragas gives NaN; so have two texts that
state nothing, which Ragas gives an F1 of 1.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score
from ragwitness.models.base import Embedder
from ragwitness.text.overlap import Vocabulary, lcs_length
from ragwitness.text.words import unquoted

BOTH_EMPTY = "neither the answer nor the reference states anything"
"""Reason of two texts without a statement."""

_WEIGHT = 0.75  # of the statements
_JUDGEMENT = 1024  # most tokens
_ARRAY = re.compile(r"\[.*\]", re.DOTALL)
_SPLIT = (
    "Break the answer below into single statements that can each be checked on its own. Write"
    " every statement as one full sentence without pronouns. Reply with nothing but a JSON list"
    " of strings; an answer that states nothing gives [].\n\nQuestion: {question}\n\nAnswer:"
    " {text}"
)
_CHECK = (
    "For each numbered statement, decide whether the text supports it. Reply with nothing but a"
    " JSON list of {count} values, true or false, in the order of the statements.\n\nQuestion:"
    " {question}\n\nText: {text}\n\nStatements:\n{statements}"
)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer to judge.

    Attributes:
        question: What was asked.
        answer: What a system said.
        reference: What is right.
    """

    question: str
    answer: str
    reference: str


class Correctness:
    """Judges cases; an audit whose documents are named like the cases.

    Args:
        cases: The cases to judge, by id.
        embedder: Measures the likeness of answer and reference.
    """

    name = "correctness"
    requires = frozenset({Capability.TEXT})

    def __init__(self, cases: Mapping[str, JudgedAnswer], embedder: Embedder) -> None:
        self._cases = dict(cases)
        self._embedder = embedder

    def documents(self) -> list[Document]:
        """Return what a worker is given, one per case."""
        return [Document(name, case.answer) for name, case in self._cases.items()]

    def probe(self, document: Document) -> Probe:
        """Judge one case.

        Raises:
            InputError: There is no case of that name.
        """
        case = self._cases.get(document.id)
        if case is None:
            raise InputError(f"There is no case {document.id!r} to judge.")
        # 1. Split both texts into statements.
        texts = (case.answer, case.reference)
        splitting = [self._query(_SPLIT, question=case.question, text=text) for text in texts]
        split = yield splitting
        statements = [_strings(answer) for answer in split]
        if reason := _unread(splitting, split, statements):
            return Score(None, reason=reason)
        ours, theirs = (found or [] for found in statements)
        if not ours and not theirs:
            return Score(None, reason=BOTH_EMPTY)
        # 2. Check.
        # Each side's statements are held against the other text.
        asked = [
            self._query(
                _CHECK,
                question=case.question,
                text=text,
                count=len(stated),
                statements="\n".join(f"{n}. {one}" for n, one in enumerate(stated, 1)),
            )
            for stated, text in ((ours, case.reference), (theirs, case.answer))
            if stated
        ]
        checked = yield asked
        held = iter(checked)
        verdicts = [_truths(next(held), len(stated)) if stated else [] for stated in (ours, theirs)]
        if reason := _unread(asked, checked, verdicts):
            return Score(None, reason=reason)
        # 3. Score.
        supported, covered = (found or [] for found in verdicts)
        return self._score(case, supported, covered)

    def _score(self, case: JudgedAnswer, supported: list[bool], covered: list[bool]) -> Score:
        """Weigh the F1 of statements with the cosine of the texts."""
        true = sum(supported)
        wrong, missing = len(supported) - true, len(covered) - sum(covered)
        # Ragas: F1 = TP / (TP + (FP + FN) / 2).
        f1 = true / (true + (wrong + missing) / 2) if true else 0.0
        first, second = self._embedder.embed([case.answer, case.reference])
        cosine = max(0.0, float(first @ second)) if case.answer.strip() else 0.0
        details = {
            "true positives": float(true),
            "false positives": float(wrong),
            "false negatives": float(missing),
            "statements F1": f1,
            "cosine": cosine,
        }
        return Score(_WEIGHT * f1 + (1 - _WEIGHT) * cosine, details=details)

    def _query(self, form: str, **values: object) -> Query:
        # Not str.format on texts: braces in them are text.
        return Query(form.format(**values), max_tokens=_JUDGEMENT)


def _unread(
    asked: list[Query],
    answers: list[Answer],
    read: list[list[str] | None] | list[list[bool] | None],
) -> str:
    """Why an answer of the judge could not be read; empty where all could."""
    for query, one in zip(asked, answers, strict=True):
        if one.error:  # some servers repeat the prompt, and in it what leaked
            return f"the judge did not answer: {unquoted(one.error, query.prompt)}"
    if any(one is None for one in read):
        if any(one.finish_reason == "length" for one in answers):
            return "the judge's answer was cut off at its token limit"
        return "the judge's answer is not the JSON list asked for"
    return ""


def _strings(answer: Answer) -> list[str] | None:
    found = _list(answer) or []
    texts = [one.strip() for one in found if isinstance(one, str)]
    readable = _list(answer) is not None and len(texts) == len(found)
    return [text for text in texts if text] if readable else None


def _truths(answer: Answer, count: int) -> list[bool] | None:
    truths = [one for one in _list(answer) or [] if isinstance(one, bool)]
    return truths if len(truths) == len(_list(answer) or []) == count else None


def _list(answer: Answer) -> list[object] | None:
    """The JSON list in an answer, whatever stands around it."""
    match = _ARRAY.search(answer.text)
    try:
        found = json.loads(match.group()) if match else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


# How good answers are, against reference answers: what a defence costs (SAGE §4.2, App. A.8).
#
# The published measures stand beside others under names of their own: SAGE calls *containment*
# exact match, and its BLEU-1 splits at white space, so that punctuation sticks to words. Where a
# question has several reference answers, the best counts. All are within [0, 1].


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
