"""Answers to the questions: asked like any audit, scored against what is right (SAGE §4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.extraction.correctness import Case, Correctness
from ragwitness.extraction.score.table import mean_rate
from ragwitness.extraction.utility import answer_lengths, measure_utility
from ragwitness.runs.comparison.plan import Judge, Question
from ragwitness.runs.comparison.result import Usefulness
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import ANSWERS, Journal
from ragwitness.runs.worker import Progress, Worker
from ragwitness.stats.paired import at_equal_length, paired_difference
from ragwitness.types import Answer, Capability, Document, Probe, Query, Score, Target

__all__ = ["CORRECTNESS", "MEASURES", "Answered", "answered", "judged", "usefulness"]

MEASURES = (
    "ROUGE-L",
    "BLEU-1 (as published)",
    "token F1",
    "containment (published as exact match)",
    "containment",
)
"""Of every answer, without a model."""
CORRECTNESS = "correctness (judged)"

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answered:
    """What one system said to the questions.

    Attributes:
        answers: One per question; None where there is none.
        scores: By measure, shape (questions,), NaN without a score.
        unjudged: Answers without a judgement, by reason.
    """

    answers: tuple[str | None, ...]
    scores: Mapping[str, Values]
    unjudged: Mapping[str, int] = field(default_factory=dict)

    @property
    def lengths(self) -> Values:
        """Words of each answer, shape (questions,)."""
        return answer_lengths([one or "" for one in self.answers])


@dataclass(slots=True)
class _Questions:
    """The questions as an audit that scores nothing, so that a worker puts them."""

    max_tokens: int
    name: str = "questions"
    requires: frozenset[Capability] = frozenset({Capability.TEXT})
    said: dict[str, Answer] = field(default_factory=dict)

    def probe(self, document: Document) -> Probe:
        """Ask one question."""
        [answer] = yield [Query(document.text, max_tokens=self.max_tokens)]
        self.said[document.id] = answer
        return Score(None, reason="asked, not scored")


async def answered(
    questions: Sequence[Question],
    target: Target,
    max_tokens: int,
    run: Path,
    progress: Progress | None = None,
) -> Answered:
    """Put the questions to a system; answers kept in ``run`` are not asked for again.

    Raises:
        TargetUnreachableError: The system cannot be reached at all.
    """
    audit = _Questions(max_tokens)
    documents = [Document(str(n), one.text) for n, one in enumerate(questions)]
    with Journal(run / ANSWERS) as journal:
        await Worker(target, journal).run(audit, documents, "questions", progress)
    found = [audit.said.get(one.id) for one in documents]
    texts = tuple(None if one is None or one.error is not None else one.text for one in found)
    references = [one.answers for one in questions]
    scores = measure_utility([one or "" for one in texts], references, MEASURES)
    missing = np.array([one is None for one in texts])
    return Answered(texts, {k: np.where(missing, np.nan, v) for k, v in scores.items()})


async def judged(
    questions: Sequence[Question],
    said: Answered,
    judge: Judge,
    run: Path,
    governor: Governor,
    progress: Progress | None = None,
) -> Answered:
    """Have the answers judged by a chat model (:mod:`ragwitness.extraction.correctness`).

    Of several references the first counts.

    Raises:
        TargetUnreachableError: The judge cannot be reached at all.
    """
    pairs = enumerate(zip(questions, said.answers, strict=True))
    cases = {str(n): Case(q.text, a, q.answers[0]) for n, (q, a) in pairs if a is not None}
    audit = Correctness(cases, judge.embedder)
    with Journal(run / ANSWERS) as journal:
        worker = Worker(judge.model, journal, governor=governor)
        outcomes = await worker.run(audit, audit.documents(), "judgements", progress)
    values = np.full(len(questions), np.nan)
    reasons = Counter[str]()
    for one in outcomes:
        if one.score.value is None:
            reasons[one.score.reason or "no reason given"] += 1
        else:
            values[int(one.document.id)] = one.score.value
    return Answered(said.answers, {**said.scores, CORRECTNESS: values}, dict(reasons))


def usefulness(said: Answered, base: Answered | None, seed: int) -> dict[str, Usefulness]:
    """Return every measure with its interval, and the paired difference to ``origin``.

    Args:
        said: Of one variant.
        base: Of ``origin``; None where that is the variant.
        seed: Of the resampling.
    """
    found = {}
    for name, values in said.scores.items():
        scored = values[~np.isnan(values)]
        if not len(scored):
            continue
        mean = mean_rate(scored, seed)
        mean = replace(mean, low=max(0.0, mean.low))  # scores are not below 0
        theirs = None if base is None else base.scores.get(name)
        if base is None or theirs is None or np.isnan(values - theirs).all():
            found[name] = Usefulness(mean)
            continue
        held = at_equal_length(values, theirs, (said.lengths, base.lengths), seed=seed)
        gain = paired_difference(values, theirs, seed=seed)
        found[name] = Usefulness(mean, gain, held.difference, held.near)
    return found
