"""Usefulness of answers: measures against references, a judge, and differences (SAGE §4.2, A.8).

The published measures have names that say so: SAGE calls *containment* exact match, its BLEU-1
splits at white space, so that punctuation sticks to words, and its ROUGE-L reads stems. With
several reference answers the best one counts. All values are within [0, 1].
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.comparison.differences import at_equal_length, paired_difference
from ragwitness.comparison.result import CORRECTNESS, Usefulness
from ragwitness.comparison.variants import Judge, UsefulnessQuestion
from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score, Target
from ragwitness.models.base import Embedder
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, Worker
from ragwitness.stats.rates import mean_rate
from ragwitness.text.overlap import Vocabulary, lcs_length
from ragwitness.text.words import unquoted

Values = NDArray[np.float64]

_ROUGE_TOKENS = re.compile("[a-z0-9]+")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def rouge_l_stemmed(answer: str, references: Sequence[str]) -> float:
    """ROUGE-L F1 as published: rouge-score's tokens, stemmed.

    Raises:
        MissingExtraError: NLTK is not installed.
    """
    return rouge_l(answer, references, rouge_vocabulary)


def rouge_vocabulary() -> Vocabulary:
    """Return rouge-score's tokens: ASCII letters and digits, stemmed from four characters on.

    Raises:
        MissingExtraError: NLTK is not installed.
    """
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise MissingExtraError("ROUGE as published", "leak") from error
    stem = cache(PorterStemmer().stem)

    def tokens(text: str) -> list[str]:
        words = _ROUGE_TOKENS.findall(text.lower())
        return [str(stem(word)) if len(word) >= 4 else word for word in words]

    return Vocabulary(tokens)


def rouge_l(
    answer: str, references: Sequence[str], vocabulary: Callable[[], Vocabulary] = Vocabulary
) -> float:
    """ROUGE-L F1; by default tokens of any script without regard to case, not stemmed."""
    tokens = vocabulary().tokenize([answer, *references])
    first, others = tokens[0], [tokens[n] for n in range(1, len(tokens))]

    def f1(other: NDArray[np.int32]) -> float:
        sizes = len(first) + len(other)
        # F1 = 2 LCS / (|answer| + |reference|).
        return 2 * lcs_length(first, other) / sizes if sizes else 0.0

    return max(map(f1, others))


def bleu_1(answer: str, references: Sequence[str]) -> float:
    """BLEU-1 as published: NLTK's ``sentence_bleu``, lower case, split at white space.

    Weights (1, 0, 0, 0), no smoothing; all references count together.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise MissingExtraError("BLEU-1", "leak") from error
    # Order 1 with brevity penalty; sacrebleu counts in percent.
    scorer = BLEU(max_ngram_order=1, effective_order=True, tokenize="none", lowercase=True)
    return float(scorer.sentence_score(answer, list(references)).score) / 100


def token_f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the words shared in any order, without case, punctuation and articles (SQuAD)."""
    words = _normal(answer).split()

    def f1(truth: list[str]) -> float:
        if not words or not truth:
            return float(words == truth)
        return 2 * (Counter(words) & Counter(truth)).total() / (len(words) + len(truth))

    return max(f1(_normal(truth).split()) for truth in references)


def contains_verbatim(answer: str, references: Sequence[str]) -> float:
    """Whether it holds a reference in any case of letters: SAGE's "exact match"."""
    return float(any(truth.lower().strip() in answer.lower() for truth in references))


MEASURES: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "ROUGE-L": rouge_l,
    "ROUGE-L (as published)": rouge_l_stemmed,
    "BLEU-1 (as published)": bleu_1,
    "token F1": token_f1,
    "containment (published as exact match)": contains_verbatim,
}
"""The measures by name; each takes an answer and its reference answers."""


def measure_utility(
    answers: Sequence[str],
    references: Sequence[Sequence[str]],
    names: Sequence[str] = tuple(MEASURES),
) -> dict[str, Values]:
    """Score every answer by every measure.

    Args:
        answers: Answers of a system; an empty one scores 0.
        references: The reference answers of each, at least one that is not blank.
        names: The measures to apply, keys of :data:`MEASURES`.

    Returns:
        By name, shape (answers,).

    Raises:
        InputError: Numbers differ, or an answer has no reference.
        MissingExtraError: A measure needs a package that is not installed.
    """
    if len(answers) != len(references):
        raise InputError(f"{len(answers)} answers have {len(references)} lists of references.")
    # Every answer holds a blank reference.
    usable = [[truth for truth in truths if truth.strip()] for truths in references]
    if bare := sum(not truths for truths in usable):
        raise InputError(f"{bare} answers have no reference answer.", "Leave them out.")
    pairs = list(zip(answers, usable, strict=True))
    return {name: np.array([MEASURES[name](*pair) for pair in pairs], np.float64) for name in names}


def answer_lengths(answers: Sequence[str]) -> NDArray[np.float64]:
    """Return the words of each answer, shape (answers,), to hold lengths equal."""
    return np.array([len(answer.split()) for answer in answers], np.float64)


def _normal(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


# Correctness of an answer as judged by the auditor's own chat model (the formula of Ragas).
#
# .75 times the F1 of statements plus .25 times the cosine of both texts. Statements of the answer
# that the reference supports are true positives, the others false positives; statements of the
# reference that the answer lacks are false negatives. No I/O: a worker asks the judge like any
# target, so caps, response store and resuming apply. Ragas gives NaN where it cannot judge, and an
# F1 of 1 to two texts without statements; here both have no score and a reason.

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
        question: The question.
        answer: The answer of a system.
        reference: The right answer.
    """

    question: str
    answer: str
    reference: str


class Correctness:
    """Judges cases; an audit with one document per case, of the same name.

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
        """Return the documents for a worker, one per case."""
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
        queries = [self._query(_SPLIT, question=case.question, text=text) for text in texts]
        split = yield queries
        statements = [_strings(answer) for answer in split]
        if reason := _unread(queries, split, statements):
            return Score(None, reason=reason)
        of_answer, of_reference = (stated or [] for stated in statements)
        if not of_answer and not of_reference:
            return Score(None, reason=BOTH_EMPTY)
        # 2. Check the statements of each text against the other text.
        sides = ((of_answer, case.reference), (of_reference, case.answer))
        queries = [
            self._query(
                _CHECK,
                question=case.question,
                text=text,
                count=len(stated),
                statements="\n".join(f"{n}. {line}" for n, line in enumerate(stated, 1)),
            )
            for stated, text in sides
            if stated
        ]
        checked = yield queries
        remaining = iter(checked)
        verdicts = [_truths(next(remaining), len(stated)) if stated else [] for stated, _ in sides]
        if reason := _unread(queries, checked, verdicts):
            return Score(None, reason=reason)
        # 3. Score.
        supported, covered = (verdict or [] for verdict in verdicts)
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
    queries: list[Query],
    answers: list[Answer],
    parsed: list[list[str] | None] | list[list[bool] | None],
) -> str:
    """Why an answer of the judge could not be read; empty where all could."""
    for query, answer in zip(queries, answers, strict=True):
        if answer.error:  # some servers repeat the prompt, and in it the leak
            return f"the judge did not answer: {unquoted(answer.error, query.prompt)}"
    if all(values is not None for values in parsed):
        return ""
    if any(answer.finish_reason == "length" for answer in answers):
        return "the judge's answer was cut off at its token limit"
    return "the judge's answer is not the JSON list asked for"


def _strings(answer: Answer) -> list[str] | None:
    values = _list(answer)
    if values is None or not all(isinstance(value, str) for value in values):
        return None
    return [str(value).strip() for value in values if str(value).strip()]


def _truths(answer: Answer, count: int) -> list[bool] | None:
    values = _list(answer) or []
    truths = [value for value in values if isinstance(value, bool)]
    return truths if len(truths) == len(values) == count else None


def _list(answer: Answer) -> list[object] | None:
    """The JSON list in an answer, whatever surrounds it."""
    match = _ARRAY.search(answer.text)
    try:
        values = json.loads(match.group()) if match else None
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, list) else None


# The answers to the questions, with their scores.

_SHIFTS = 10  # other questions against which an answer is scored


@dataclass(frozen=True, slots=True)
class QuestionAnswers:
    """The answers of one system to the questions.

    Attributes:
        answers: One per question; None where there is none.
        scores: By measure, shape (questions,), NaN without a score.
        unjudged: Answers without a judgement, by reason.
        chance: As ``scores``, against the answers to other questions.
    """

    answers: tuple[str | None, ...]
    scores: Mapping[str, Values]
    unjudged: Mapping[str, int] = field(default_factory=dict)
    chance: Mapping[str, Values] = field(default_factory=dict)

    @property
    def lengths(self) -> Values:
        """Words of each answer, shape (questions,)."""
        return answer_lengths([answer or "" for answer in self.answers])

    @property
    def mean_length(self) -> float | None:
        """Mean words of an answer; None without any."""
        lengths = self.lengths[[answer is not None for answer in self.answers]]
        return float(lengths.mean()) if len(lengths) else None


async def answered(
    questions: Sequence[UsefulnessQuestion],
    target: Target,
    max_tokens: int,
    run: Path,
    progress: Progress | None = None,
) -> QuestionAnswers:
    """Put the questions to a system; answers kept in ``run`` are not asked for again.

    Raises:
        TargetUnreachableError: The system cannot be reached at all.
    """
    queries = [
        (Document(str(n), question.text), Query(question.text, max_tokens=max_tokens))
        for n, question in enumerate(questions)
    ]
    with ResponseStore(run / ANSWERS) as responses:
        replies = await Worker(target, responses).put(queries, "questions", progress)
    answers = tuple(None if r is None or r.error is not None else r.text for r in replies)
    texts, references = [answer or "" for answer in answers], [q.answers for q in questions]
    scores = measure_utility(texts, references)
    # The same answers against the answers to other questions: usefulness by chance alone.
    name = next(iter(MEASURES))
    shifted = [
        measure_utility(texts, [*references[n:], *references[:n]], [name])[name]
        for n in range(1, min(_SHIFTS, len(texts) - 1) + 1)
    ]
    chance = {name: np.mean(shifted, axis=0)} if shifted else {}
    # An answer that never came is missing, not worth 0.
    missing = np.array([answer is None for answer in answers])
    scores = {name: np.where(missing, np.nan, values) for name, values in scores.items()}
    return QuestionAnswers(answers, scores, chance=chance)


async def judged(
    questions: Sequence[UsefulnessQuestion],
    answers: QuestionAnswers,
    judge: Judge,
    run: Path,
    limiter: RateLimiter,
    progress: Progress | None = None,
) -> QuestionAnswers:
    """Have the answers judged by a chat model; of several references the first counts.

    Raises:
        TargetUnreachableError: The judge cannot be reached at all.
    """
    pairs = enumerate(zip(questions, answers.answers, strict=True))
    cases = {str(n): JudgedAnswer(q.text, a, q.answers[0]) for n, (q, a) in pairs if a is not None}
    audit = Correctness(cases, judge.embedder)
    with ResponseStore(run / ANSWERS) as responses:
        worker = Worker(judge.model, responses, limiter=limiter)
        outcomes = await worker.run(audit, audit.documents(), "judgements", progress)
    values = np.full(len(questions), np.nan)
    reasons = Counter[str]()
    for outcome in outcomes:
        if outcome.score.value is None:
            reasons[outcome.score.reason or "no reason given"] += 1
        else:
            values[int(outcome.document.id)] = outcome.score.value
    scores = {**answers.scores, CORRECTNESS: values}
    return QuestionAnswers(answers.answers, scores, dict(reasons), answers.chance)


def usefulness(
    answers: QuestionAnswers, base: QuestionAnswers | None, seed: int
) -> dict[str, Usefulness]:
    """Return every measure with its interval, and the paired difference from ``origin``.

    Args:
        answers: Those of one variant.
        base: Those of ``origin``; None where that is the variant.
        seed: Seed of the resampling.
    """
    measures = {}
    for name, values in answers.scores.items():
        scored = values[~np.isnan(values)]
        if not len(scored):
            continue
        mean, by_chance = mean_rate(scored, seed, 0.0), answers.chance.get(name)
        above = None if by_chance is None else paired_difference(values, by_chance, seed=seed)
        others = None if base is None else base.scores.get(name)
        if base is None or others is None or np.isnan(values - others).all():
            measures[name] = Usefulness(mean, above=above)
            continue
        # Long answers overlap more with anything: the difference is given at equal length, too.
        lengths = (answers.lengths, base.lengths)
        equal_length, near = at_equal_length(values, others, lengths, seed=seed)
        gain = paired_difference(values, others, seed=seed)
        measures[name] = Usefulness(mean, gain, equal_length, near, above)
    return measures
