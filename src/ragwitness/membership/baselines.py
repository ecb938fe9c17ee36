"""What an audit is measured against: guessers that see no target, and near-duplicates."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Query
from ragwitness.membership.measure import area
from ragwitness.rag.defenses.base import undefended
from ragwitness.rag.defenses.cost import (
    BenignQuestion,
    DefenseCost,
    benign_questions,
    compare_answers,
)
from ragwitness.rag.target import LabTarget
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, Worker
from ragwitness.stats.evaluation import Rate
from ragwitness.text.overlap import without_copies
from ragwitness.text.replies import declines
from ragwitness.text.words import core, split_words

# One random split of a corpus: inside, outside, calibration, shadow.

_FEWEST_SPLIT = 40  # documents; with fewer no part is worth a figure
_FEWEST_PART = 2  # documents of a part: an area under a curve needs two of each class
_OUTSIDE_SPLIT = 0.75  # share of the documents outside that may be audited or calibrate


@dataclass(frozen=True, slots=True)
class CorpusSplit:
    """Disjoint parts of one corpus.

    Attributes:
        indexed: What the target holds; ``members`` and ``known_in`` are part of it.
        members: Audited documents inside.
        non_members: Audited documents outside.
        known_in: Calibration documents inside: thresholds are chosen on them.
        known_out: Calibration documents outside: thresholds and p-values rest on them.
        shadow: Documents for the shadow system, outside.
    """

    indexed: tuple[Document, ...]
    members: tuple[Document, ...]
    non_members: tuple[Document, ...]
    known_in: tuple[Document, ...]
    known_out: tuple[Document, ...]
    shadow: tuple[Document, ...]


def divide(
    corpus: Sequence[Document],
    *,
    members: int,
    non_members: int,
    calibration: int,
    seed: int,
    shadow: bool = True,
) -> CorpusSplit:
    """Index a random half of the corpus and draw the other parts.

    Copies of a text count once, or the same text would stand inside and outside. Where the
    corpus is too small for what is asked, the parts outside shrink alike.

    Args:
        corpus: Documents of one source.
        members: Audited documents inside.
        non_members: Audited documents outside.
        calibration: Calibration documents, inside and outside each.
        seed: Of the split.
        shadow: Whether a quarter of the documents outside is left for a shadow system.

    Raises:
        InputError: Fewer than 40 different documents, or a part outside would hold fewer than 2.
    """
    shuffled = list(without_copies(corpus))
    needed = max(_FEWEST_SPLIT, _documents_needed(non_members, calibration))
    if len(shuffled) < needed:
        raise InputError(
            f"{len(shuffled)} different documents are too few to divide into an index and, outside"
            f" it, {non_members} non-members with {calibration} for calibration.",
            f"Give a corpus of at least {needed}"
            + (
                f", or set --calibration {non_members}."
                if _documents_needed(non_members, non_members) <= len(shuffled) >= _FEWEST_SPLIT
                else "."
            ),
        )
    random.Random(seed).shuffle(shuffled)
    # 1. A random half is the database.
    half = len(shuffled) // 2
    inside, outside = shuffled[:half], shuffled[half:]
    # 2. Both parts outside shrink by one share, so that a quarter is left for the shadow system.
    usable = (_OUTSIDE_SPLIT if shadow else 1.0) * len(outside)
    share = min(1.0, usable / (non_members + calibration))
    asked, spared = int(non_members * share), int(calibration * share)
    # 3. Inside, calibration has what it asks for, or a quarter.
    members = min(members, max(3 * half // 4, half - calibration))
    return CorpusSplit(
        indexed=tuple(inside),
        members=tuple(replace(d, member=True) for d in inside[:members]),
        non_members=tuple(replace(d, member=False) for d in outside[:asked]),
        known_in=tuple(inside[members : members + calibration]),
        known_out=tuple(outside[asked : asked + spared]),
        shadow=tuple(outside[asked + spared :]),
    )


def _documents_needed(first: int, second: int) -> int:
    """Documents of which both parts outside, shrunk by one share, keep two."""
    # floor(part * share) >= 2 with share = 0.75 * outside / (first + second), half of all outside.
    share = _FEWEST_PART / min(first, second)
    return 2 * math.ceil(share * (first + second) / _OUTSIDE_SPLIT)


_FEWEST = 10  # documents per class that the guesser learns from


def _words(text: str) -> list[str]:
    """Words of any script; punctuation alone counts as one, so no text is without any."""
    return [core(word.text).casefold() or word.text for word in split_words(text)]


def blind_words(
    inside: Sequence[Document],
    outside: Sequence[Document],
    learnt_inside: Sequence[Document],
    learnt_outside: Sequence[Document],
) -> Rate | None:
    """AUC of a classifier that reads the texts alone: TF-IDF and logistic regression.

    It never asks the target. If it tells members from non-members, the split leaks, and no
    figure of any audit on this split means what it seems to. It learns from documents that are
    not audited, so its scores of the audited ones are fixed beforehand and their interval holds.

    Args:
        inside: Audited documents of the database.
        outside: Audited documents that are not in it.
        learnt_inside: Other documents of the database.
        learnt_outside: Other documents that are not in it.
    """
    if min(len(learnt_inside), len(learnt_outside)) < _FEWEST:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    guesser = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, tokenizer=_words, token_pattern=None),
        LogisticRegression(C=10.0, max_iter=1000, class_weight="balanced"),
    )
    texts = [document.text for document in (*learnt_inside, *learnt_outside)]
    guesser.fit(texts, [1] * len(learnt_inside) + [0] * len(learnt_outside))
    guessed = guesser.predict_proba([document.text for document in (*inside, *outside)])[:, 1]
    return area(guessed[: len(inside)].tolist(), guessed[len(inside) :].tolist())


def blind_length(inside: Sequence[Document], outside: Sequence[Document]) -> Rate | None:
    """AUC of the number of words: members longer than non-members by chance or by bias."""
    return area(
        [float(len(document.text.split())) for document in inside],
        [float(len(document.text.split())) for document in outside],
    )


def nearest_likeness(asked: Sequence[Document], indexed: Sequence[Document]) -> NDArray[np.float64]:
    """TF-IDF cosine of each document to its nearest one in the index, itself left out.

    Args:
        asked: Documents, n of them.
        indexed: The database.

    Returns:
        Likeness, shape (n,), 0 to 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, tokenizer=_words, token_pattern=None)
    held = vectorizer.fit_transform([document.text for document in indexed])
    texts = np.array([document.text for document in indexed], dtype=object)
    found = []
    for document in asked:
        likeness = (held @ vectorizer.transform([document.text]).T).toarray()[:, 0]
        likeness[texts == document.text] = 0.0
        found.append(float(likeness.max(initial=0.0)))
    return np.array(found)


def near_duplicates(split: CorpusSplit) -> tuple[frozenset[str], float]:
    """Return the quarter of the non-members most like the index, and its median likeness."""
    likeness = nearest_likeness(split.non_members, split.indexed)
    order = likeness.argsort()[::-1][: max(2, len(likeness) // 4)]
    ids = frozenset(split.non_members[int(index)].id for index in order)
    return ids, float(sorted(likeness[order])[len(order) // 2])


def rate_of(inside: Sequence[float], outside: Sequence[float]) -> Rate:
    """Return the AUC; a control that could not be measured stays in sight, without a value."""
    nothing = Rate(math.nan, math.nan, math.nan, len(inside) + len(outside))
    return area(inside, outside) or nothing


def blind_controls(split: CorpusSplit) -> dict[str, Rate]:
    """AUC of guessers that never ask the target, for before anything is spent on it."""
    audited = {document.id for document in split.members}
    held = [document for document in split.indexed if document.id not in audited]
    words = blind_words(split.members, split.non_members, held, (*split.known_out, *split.shadow))
    length = blind_length(split.members, split.non_members)
    return {"blind words": words or rate_of([], []), "blind length": length or rate_of([], [])}


# What the defense before the system under audit costs those who ask in good faith.

_LONGEST = 128  # tokens of an answer


def questions_of(split: CorpusSplit, n: int, seed: int) -> list[BenignQuestion]:
    """Make questions about indexed documents that are not audited.

    Calibration documents are asked about only where the others are too few.

    Args:
        split: The parts of the corpus.
        n: How many questions are wanted.
        seed: Chooses the documents.

    Raises:
        InputError: ``n`` is not positive, or no document gives a question.
    """
    audited = {document.id for document in split.members}
    known = {document.id for document in split.known_in}
    free = [document for document in split.indexed if document.id not in audited]
    spare = [document for document in free if document.id not in known]
    return benign_questions(spare if len(spare) >= n else free, n, random.Random(seed))


async def weigh_defense(
    target: LabTarget,
    questions: list[BenignQuestion],
    *,
    seed: int = 0,
    journal: ResponseStore | None = None,
    in_flight: int = 4,
    progress: Progress | None = None,
) -> DefenseCost:
    """Ask a defended system and the same without its defense, and compare.

    Args:
        target: The system behind a defense.
        questions: About its documents.
        seed: Of the bootstrap.
        journal: Where answers are kept; None keeps nothing.
        in_flight: Questions asked at the same time.
        progress: Called after each question.

    Raises:
        InputError: A question belongs to a document that is not in the database.
    """
    asked = [
        (Document(question.document, question.text), Query(question.text, _LONGEST))
        for question in questions
    ]

    async def answers_of(system: LabTarget, stage: str) -> list[str | None]:
        worker = Worker(system, journal, in_flight)
        answers = await worker.put(asked, stage, progress)
        return [None if one is None or one.error else one.text for one in answers]

    bare = LabTarget(undefended(target.system))
    before = await answers_of(bare, "benign questions, undefended")
    after = await answers_of(target, "benign questions, defended")
    return compare_answers(
        bare.system, target.system, questions, before, after, declines, seed=seed
    )
