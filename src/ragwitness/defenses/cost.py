"""What a defense costs those who ask in good faith."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.base import Defense, defend
from ragwitness.defenses.questions import BenignQuestion
from ragwitness.errors import InputError, RagwitnessError
from ragwitness.rag.pipeline import RagSystem
from ragwitness.rag.words import index_words
from ragwitness.stats import Rate, bootstrap_interval, proportion_interval
from ragwitness.types import Query

__all__ = [
    "AnswerCost",
    "DefenseCost",
    "RetrievalCost",
    "benign_cost",
    "compare_answers",
    "word_f1",
]


@dataclass(frozen=True, slots=True)
class RetrievalCost:
    """What a defense does to the passages that benign questions get.

    Attributes:
        recall_before: Share of questions whose document is among the passages, undefended.
        recall: The same, defended.
        recall_lost: ``recall_before - recall``.
        changed: Share of questions that get other passages, or the same in another order.
    """

    recall_before: Rate
    recall: Rate
    recall_lost: Rate
    changed: Rate


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """What a defense does to the answers; over the questions that both systems answered.

    Attributes:
        agreement: Mean word F1 of the defended answer against the undefended one.
        quality_before: Mean word F1 of the undefended answer against the reference, over the
            questions with one; None where there are none.
        quality: The same, defended.
        quality_lost: ``quality_before - quality``.
        refused_before: Share of questions refused by the undefended system.
        refused: The same, defended.
    """

    agreement: Rate
    quality_before: Rate | None
    quality: Rate | None
    quality_lost: Rate | None
    refused_before: Rate
    refused: Rate


@dataclass(frozen=True, slots=True)
class DefenseCost:
    """Figures over benign questions, the undefended system's beside the defended one's.

    Shares of questions have exact intervals, means have bootstrap intervals over questions;
    all at 95 %. Differences are paired: both systems are asked the same.

    Attributes:
        defense: Its name.
        k: Passages per question.
        retrieval: Over all questions.
        answers: None where no question was answered by both systems.
        failed_before: Questions that the undefended system could not answer.
        failed: Questions that the defended system could not answer.
    """

    defense: str
    k: int
    retrieval: RetrievalCost
    answers: AnswerCost | None
    failed_before: int
    failed: int


def benign_cost(
    system: RagSystem,
    defense: Defense,
    questions: Sequence[BenignQuestion],
    refused: Callable[[str], bool],
    *,
    max_tokens: int = 128,
    seed: int = 0,
) -> DefenseCost:
    """Ask a system benign questions without and with a defense.

    Args:
        system: The undefended system.
        defense: What is put before it.
        questions: Each with the document that answers it; none that the defense was
            calibrated on.
        refused: Whether an answer is a refusal.
        max_tokens: Longest answer.
        seed: Of the bootstrap.

    Raises:
        InputError: No questions, or one of a document that is not in the database.
    """
    defended = defend(system, defense)
    before = [_answer(system, q, max_tokens) for q in questions]
    # A defense that does nothing is not asked again.
    same = defended is system
    after = before if same else [_answer(defended, q, max_tokens) for q in questions]
    return compare_answers(system, defended, questions, before, after, refused, seed=seed)


def compare_answers(
    system: RagSystem,
    defended: RagSystem,
    questions: Sequence[BenignQuestion],
    before: Sequence[str | None],
    after: Sequence[str | None],
    refused: Callable[[str], bool],
    *,
    seed: int = 0,
) -> DefenseCost:
    """Compare the answers of a system with those of the same system behind a defense.

    Args:
        system: The undefended system.
        defended: The same behind a defense.
        questions: What both were asked.
        before: Answers of ``system``, None where it failed.
        after: Answers of ``defended``, None where it failed.
        refused: Whether an answer is a refusal.
        seed: Of the bootstrap.

    Raises:
        InputError: No questions, or one of a document that is not in the database.
    """
    if not questions:
        raise InputError("The cost of a defense needs at least one benign question.")
    stored = {passage.document for passage in system.passages}
    stray = next((q.document for q in questions if q.document not in stored), None)
    if stray is not None:
        raise InputError(
            f"A benign question belongs to {stray!r}, which is not in the database.",
            "Make the questions from documents of the database.",
        )
    return DefenseCost(
        "none" if defended.defense is None else defended.defense.name,
        system.config.k,
        _retrieval_cost(system, defended, questions, seed),
        _answer_cost(before, after, questions, refused, seed),
        list(before).count(None),
        list(after).count(None),
    )


def word_f1(answer: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the words, each as often as it stands.

    Two texts without words agree (1); a text without words agrees with no other (0).
    """
    said, right = Counter(index_words(answer)), Counter(index_words(reference))
    if not said or not right:
        return float(said == right)
    return 2 * (said & right).total() / (said.total() + right.total())


def _retrieval_cost(
    system: RagSystem, defended: RagSystem, questions: Sequence[BenignQuestion], seed: int
) -> RetrievalCost:
    found = [[_places(s, q) for q in questions] for s in (system, defended)]
    before, after = (
        np.array([_holds(system, p, q) for p, q in zip(places, questions, strict=True)])
        for places in found
    )
    return RetrievalCost(
        recall_before=_share(before),
        recall=_share(after),
        recall_lost=_mean(before.astype(np.float64) - after, seed, -1.0),
        changed=_share(np.array([old != new for old, new in zip(*found, strict=True)])),
    )


def _answer_cost(
    before: Sequence[str | None],
    after: Sequence[str | None],
    questions: Sequence[BenignQuestion],
    refused: Callable[[str], bool],
    seed: int,
) -> AnswerCost | None:
    both = [
        (old, new, question.reference)
        for old, new, question in zip(before, after, questions, strict=True)
        if old is not None and new is not None
    ]
    if not both:
        return None
    judged = [(word_f1(old, ref), word_f1(new, ref)) for old, new, ref in both if ref is not None]
    old_f1, new_f1 = np.array(judged).T if judged else (None, None)
    return AnswerCost(
        agreement=_mean(np.array([word_f1(new, old) for old, new, _ in both]), seed),
        quality_before=None if old_f1 is None else _mean(old_f1, seed),
        quality=None if new_f1 is None else _mean(new_f1, seed),
        quality_lost=None if old_f1 is None else _mean(old_f1 - new_f1, seed, -1.0),
        refused_before=_share(np.array([refused(old) for old, _, _ in both])),
        refused=_share(np.array([refused(new) for _, new, _ in both])),
    )


def _places(system: RagSystem, question: BenignQuestion) -> list[int]:
    return [hit.index for hit in system.retrieve(question.text)]


def _holds(system: RagSystem, places: Sequence[int], question: BenignQuestion) -> bool:
    return any(system.passages[place].document == question.document for place in places)


def _answer(system: RagSystem, question: BenignQuestion, max_tokens: int) -> str | None:
    try:
        return system.answer(Query(question.text, max_tokens)).text
    except RagwitnessError:
        return None  # counted


def _share(hits: NDArray[np.bool_]) -> Rate:
    count, n = int(hits.sum()), hits.size
    return Rate(count / n, *proportion_interval(count, n), n)


def _mean(values: NDArray[np.float64], seed: int, least: float = 0.0) -> Rate:
    """Mean of values from ``least`` to 1, with a bootstrap interval."""
    mean = float(values.mean())
    if np.ptp(values) == 0:  # resamples of equal values know no doubt; n of n equal do
        doubt = proportion_interval(0, values.size)[1]
        return Rate(mean, max(least, mean - doubt), min(1.0, mean + doubt), values.size)
    low, high = bootstrap_interval(
        lambda index: float(values[index].mean()), np.ones(values.size, np.bool_), seed=seed
    )
    return Rate(mean, min(low, mean), max(high, mean), values.size)
