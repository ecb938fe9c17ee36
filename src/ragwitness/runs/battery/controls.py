"""What an audit is measured against: guessers that see no target, and near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.runs.battery.measure import area
from ragwitness.stats.evaluation import Rate
from ragwitness.types import Document

__all__ = ["blind_length", "blind_words", "nearest_likeness"]

_FOLDS = 5


def blind_words(inside: Sequence[Document], outside: Sequence[Document], seed: int) -> Rate | None:
    """AUC of a classifier that reads the texts alone: TF-IDF and logistic regression.

    It never asks the target. If it tells members from non-members, the split leaks, and no
    figure of any audit on this split means what it seems to.

    Args:
        inside: Documents of the database.
        outside: Documents that are not.
        seed: Of the cross-validation.
    """
    if min(len(inside), len(outside)) < _FOLDS:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    texts = [document.text for document in (*inside, *outside)]
    truth = np.array([1] * len(inside) + [0] * len(outside))
    guesser = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10.0, max_iter=1000)
    )
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    guessed = cross_val_predict(guesser, texts, truth, cv=folds, method="predict_proba")[:, 1]
    return area(guessed[truth == 1].tolist(), guessed[truth == 0].tolist())


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

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    held = vectorizer.fit_transform([document.text for document in indexed])
    texts = np.array([document.text for document in indexed], dtype=object)
    found = []
    for document in asked:
        likeness = (held @ vectorizer.transform([document.text]).T).toarray()[:, 0]
        likeness[texts == document.text] = 0.0
        found.append(float(likeness.max(initial=0.0)))
    return np.array(found)
