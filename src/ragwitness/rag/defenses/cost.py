"""The cost of a defense to benign users."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.rag.index import index_words
from ragwitness.rag.pipeline import RagSystem
from ragwitness.stats.evaluation import Rate, mean_rate, share_of
from ragwitness.text.words import STOP_WORDS, core, split_words

# Short questions that an ordinary user might ask of a database, made from its documents: taken from
# the first speaker of a dialogue, or made of a document's rarest words.

_ASKS = "patient|human|user|client|customer|question|q"
_ANSWERS = "doctor|physician|bot|assistant|agent|chatbot|answer|a"
_DIALOGUE = re.compile(
    rf"\s*[<\[]?(?:{_ASKS})[>\]]?\s*:\s*(.+?)\s*[<\[]?\b(?:{_ANSWERS})[>\]]?\s*:\s+(.+)",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST, _LONGEST = 4, 30  # words of a sentence that can stand as a question
_KEYWORDS = 3
_SHORTEST_KEYWORD = 4  # characters


@dataclass(frozen=True, slots=True)
class BenignQuestion:
    """A question without any interest in private records.

    Attributes:
        text: The question.
        document: Id of the document that answers it.
        reference: The right answer, where the document tells it apart.
    """

    text: str
    document: str
    reference: str | None = None


def benign_questions(
    documents: Sequence[Document], n: int, rng: random.Random
) -> list[BenignQuestion]:
    """Make at most ``n`` questions, each from another document.

    Of a dialogue it is a sentence of the first speaker: the first with a question mark, else the
    first of some length; the reply is the reference. Of any other text it asks for the most
    distinctive words. Documents without a question are skipped.

    Args:
        documents: The database.
        n: Number of questions wanted.
        rng: Chooses the documents.

    Raises:
        InputError: ``n`` is not positive, or no document gives a question.
    """
    if n < 1:
        raise InputError(f"At least 1 benign question is needed, not {n}.")
    spread = Counter(word for d in documents for word in set(index_words(d.text)))
    questions: list[BenignQuestion] = []
    for document in rng.sample(list(documents), len(documents)):
        question = _question(document, spread, len(documents))
        if question is not None:
            questions.append(question)
        if len(questions) == n:
            break
    if not questions:
        raise InputError(
            "No document gives a benign question.", "Give documents of at least a few words."
        )
    return questions


def _question(document: Document, spread: Mapping[str, int], size: int) -> BenignQuestion | None:
    # A dialogue asks by itself, and its reply is a reference answer.
    dialogue = _DIALOGUE.fullmatch(document.text)
    if dialogue:
        reply = dialogue.group(2).strip()
        return BenignQuestion(_first_question(dialogue.group(1)), document.id, reply)
    keywords = _keywords(document.text, spread, size)
    if not keywords:
        return None
    listed = ", ".join(keywords[:-1])
    text = f"{listed} and {keywords[-1]}" if listed else keywords[-1]
    return BenignQuestion(f"What is known about {text}?", document.id)


def _first_question(asked: str) -> str:
    sentences = [s.strip() for s in _SENTENCE_END.split(asked)]
    fitting = [s for s in sentences if _SHORTEST <= len(split_words(s)) <= _LONGEST]
    questions = [s for s in fitting if s.endswith("?")]
    if questions or fitting:
        return (questions or fitting)[0]
    words = split_words(asked)[:_LONGEST]
    return asked[words[0].start : words[-1].end]


def _keywords(text: str, spread: Mapping[str, int], size: int) -> list[str]:
    """The words of highest tf-idf, in the order in which they stand."""
    words = [core(word.text) for word in split_words(text)]
    counts = Counter(word.casefold() for word in words)
    first: dict[str, str] = {}
    for word in words:
        plain = word.casefold()
        # "don't" and the like are not words of the index, so their rarity is not known.
        indexed = plain in spread and plain not in STOP_WORDS
        if indexed and len(plain) >= _SHORTEST_KEYWORD:
            first.setdefault(plain, word)

    # tf-idf, smoothed so that a word of every document still counts.
    def weight(plain: str) -> float:
        return counts[plain] * math.log((1 + size) / (1 + spread[plain]) + 1)

    best = set(sorted(first, key=lambda plain: (-weight(plain), plain))[:_KEYWORDS])
    return [word for plain, word in first.items() if plain in best]


@dataclass(frozen=True, slots=True)
class RetrievalCost:
    """The effect of a defense on the passages for benign questions.

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
    """The effect of a defense on the answers, over the questions that both systems answered.

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
        defense: Name of the defense.
        k: Passages per question.
        retrieval: Figures of retrieval over all questions.
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
        questions: The questions to both.
        before: Answers of ``system``, None where it failed.
        after: Answers of ``defended``, None where it failed.
        refused: Whether an answer is a refusal.
        seed: Seed of the bootstrap.

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
    words, right = Counter(index_words(answer)), Counter(index_words(reference))
    if not words or not right:
        return float(words == right)
    # F1 = 2 |shared| / (|said| + |right|), each word as often as it stands.
    return 2 * (words & right).total() / (words.total() + right.total())


def _retrieval_cost(
    system: RagSystem, defended: RagSystem, questions: Sequence[BenignQuestion], seed: int
) -> RetrievalCost:
    retrieved = [
        [[hit.index for hit in each_system.retrieve(question.text)] for question in questions]
        for each_system in (system, defended)
    ]
    before, after = (
        np.array([_holds(system, p, q) for p, q in zip(results, questions, strict=True)])
        for results in retrieved
    )
    return RetrievalCost(
        recall_before=share_of(before),
        recall=share_of(after),
        recall_lost=mean_rate(before.astype(np.float64) - after, seed),
        changed=share_of(np.array([old != new for old, new in zip(*retrieved, strict=True)])),
    )


def _answer_cost(
    before: Sequence[str | None],
    after: Sequence[str | None],
    questions: Sequence[BenignQuestion],
    refused: Callable[[str], bool],
    seed: int,
) -> AnswerCost | None:
    triples = [
        (old, new, question.reference)
        for old, new, question in zip(before, after, questions, strict=True)
        if old is not None and new is not None
    ]
    if not triples:
        return None
    # Quality: both answers against the reference, where the document holds one.
    judged = [
        (word_f1(old, ref), word_f1(new, ref)) for old, new, ref in triples if ref is not None
    ]
    old_f1, new_f1 = np.array(judged).T if judged else (None, None)
    return AnswerCost(
        agreement=mean_rate(np.array([word_f1(new, old) for old, new, _ in triples]), seed, 0.0),
        quality_before=None if old_f1 is None else mean_rate(old_f1, seed, 0.0),
        quality=None if new_f1 is None else mean_rate(new_f1, seed, 0.0),
        quality_lost=None if old_f1 is None else mean_rate(old_f1 - new_f1, seed),
        refused_before=share_of(np.array([refused(old) for old, _, _ in triples])),
        refused=share_of(np.array([refused(new) for _, new, _ in triples])),
    )


def _holds(system: RagSystem, places: Sequence[int], question: BenignQuestion) -> bool:
    return any(system.passages[index].document == question.document for index in places)
