"""What an audit is measured against: guessers that see no target, and near-duplicates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.runs.battery.measure import area
from ragwitness.runs.battery.split import Split
from ragwitness.stats.evaluation import Rate
from ragwitness.text.words import core, split_words
from ragwitness.types import Document

__all__ = [
    "blind_controls",
    "blind_length",
    "blind_words",
    "near_duplicates",
    "nearest_likeness",
    "rate_of",
]

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


def near_duplicates(split: Split) -> tuple[frozenset[str], float]:
    """Return the quarter of the non-members most like the index, and its median likeness."""
    likeness = nearest_likeness(split.non_members, split.indexed)
    order = likeness.argsort()[::-1][: max(2, len(likeness) // 4)]
    ids = frozenset(split.non_members[int(index)].id for index in order)
    return ids, float(sorted(likeness[order])[len(order) // 2])


def rate_of(inside: Sequence[float], outside: Sequence[float]) -> Rate:
    """Return the AUC; a control that could not be measured stays in sight, without a value."""
    nothing = Rate(math.nan, math.nan, math.nan, len(inside) + len(outside))
    return area(inside, outside) or nothing


def blind_controls(split: Split) -> dict[str, Rate]:
    """AUC of guessers that never ask the target, for before anything is spent on it."""
    audited = {document.id for document in split.members}
    held = [document for document in split.indexed if document.id not in audited]
    words = blind_words(split.members, split.non_members, held, (*split.known_out, *split.shadow))
    length = blind_length(split.members, split.non_members)
    return {"blind words": words or rate_of([], []), "blind length": length or rate_of([], [])}
