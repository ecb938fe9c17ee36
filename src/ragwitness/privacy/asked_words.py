"""Which of a document's words its questions will have: a model of public documents and questions.

A logistic regression on seven features of a word and their products. It is fitted on public pairs
(``create --questions``) and knows nothing of the tenant's documents. So it has no part in the
promise: any public rule from a document to a word keeps it. Without a model the rarest word counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

_RARITY = 2  # power of a word's rarity: what is asked, and tells documents apart
_MOST = 4.0  # spreads from the mean; the fit knows nothing beyond
_FEATURES = 7

Values = NDArray[np.float64]


def asked_words(
    tokens: Sequence[str], weights: Mapping[str, float], model: Sequence[float] = ()
) -> list[str]:
    """Return the telling words of a document, those first that a question is likely to have.

    Args:
        tokens: The document's words in their order, as written.
        weights: Weight of each telling word (``privacy.codes.word_weights``).
        model: From :func:`fit_model`; none takes the heaviest words.
    """
    words = sorted(weights, key=lambda word: (-weights[word], word))
    if not words or not model:
        return words
    means, spreads, slopes = np.split(np.array(model[:-1]), [_FEATURES, 2 * _FEATURES])
    features = _features_of(tokens, weights, words)
    logits = _products((features - means) / spreads) @ slopes + model[-1]
    scores = -np.logaddexp(0.0, -logits) + _RARITY * np.log(features[:, 0])
    return [words[at] for at in np.argsort(-scores, kind="stable")]


def fit_model(
    texts: Sequence[tuple[Sequence[str], Mapping[str, float]]], questions: Sequence[set[str]]
) -> tuple[float, ...]:
    """Return a model: means and spreads of the features, slopes, and the intercept.

    Args:
        texts: Words of each document and the weights of its telling ones, as above.
        questions: Telling words of all questions about each.
    """
    from sklearn.linear_model import LogisticRegression

    rows, labels = [], []
    for (tokens, weights), words_asked in zip(texts, questions, strict=True):
        if weights:
            words = sorted(weights)
            rows.append(_features_of(tokens, weights, words))
            labels += [word in words_asked for word in words]
    if len({*labels}) < 2:  # every word is asked, or none
        return ()
    features = np.concatenate(rows)
    means, spreads = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)
    fit = LogisticRegression(max_iter=2000).fit(_products((features - means) / spreads), labels)
    return tuple(np.concatenate([means, spreads, fit.coef_[0], fit.intercept_]).tolist())


def _features_of(
    tokens: Sequence[str], weights: Mapping[str, float], words: Sequence[str]
) -> Values:
    """Return the features of words, shape (words, 7).

    Rarity; how often it occurs; where first; its rank by weight; its length; the document's length;
    how often it begins with a capital. Counts are logarithms.
    """
    first: dict[str, int] = {}
    count: dict[str, int] = {}
    capitals: dict[str, int] = {}
    for at, token in enumerate(tokens):
        word = token.casefold()
        first.setdefault(word, at)
        count[word] = count.get(word, 0) + 1
        capitals[word] = capitals.get(word, 0) + token[:1].isupper()
    ranks = sorted(weights.values(), reverse=True)
    return np.array(
        [
            [
                weights[word] / (1 + math.log(count.get(word, 1))),
                math.log(count.get(word, 1)),
                first.get(word, 0) / len(tokens),
                math.log(1 + ranks.index(weights[word])),
                len(word),
                math.log(len(tokens)),
                capitals.get(word, 0) / count.get(word, 1),
            ]
            for word in words
        ]
    )


def _products(scaled: Values) -> Values:
    """Return features and the products of any two, shape (words, 35)."""
    columns = np.clip(scaled, -_MOST, _MOST).T
    pairs = [left * right for left, right in combinations_with_replacement(columns, 2)]
    return np.column_stack([*columns, *pairs])
