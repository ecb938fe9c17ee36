"""Embedders for votes: any by name, or word weights over public texts, which need no model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.synthetic.private.votes import Embed
from ragwitness.errors import InputError
from ragwitness.text.tokens import plain_tokens
from ragwitness.text.words import STOP_WORDS

__all__ = ["WORDS", "load_embedding", "word_weights"]

WORDS = "words"
"""Name of the embedder that needs no model."""

_MOST_WORDS = 2048
_FEWEST_TEXTS = 2  # that a word stands in


def load_embedding(name: str, public: Sequence[str]) -> Embed:
    """Return an embedder.

    Args:
        name: :data:`WORDS`, or as for :func:`ragwitness.rag.embedders.load_embedder`.
        public: Public texts, for the words and their weights.

    Raises:
        InputError: No such embedder, or there is no public word.
        MissingExtraError: It needs an extra that is not installed.
        ModelError: It cannot be loaded.
    """
    if name == WORDS:
        return word_weights(public)
    from ragwitness.rag.embedders import load_embedder

    return load_embedder(name).embed


def word_weights(public: Sequence[str]) -> Embed:
    """Return TF-IDF over the words of public texts; words and weights owe nothing to a record.

    Raises:
        InputError: No word stands in two of the texts.
    """
    counts = Counter(word for text in public for word in set(_words(text)))
    known = [w for w, count in counts.most_common(_MOST_WORDS) if count >= _FEWEST_TEXTS]
    if not known:
        raise InputError(
            f"The embedder {WORDS} knows the words of public texts, and no word stands in two.",
            "Give more texts with --public, or another --embedder.",
        )
    place = {word: n for n, word in enumerate(known)}
    weights = np.array([math.log((1 + len(public)) / counts[word]) for word in known])

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), len(known)))
        for row, text in zip(found, texts, strict=True):
            for word, count in Counter(w for w in _words(text) if w in place).items():
                row[place[word]] = 1 + math.log(count)
        found *= weights
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        units: NDArray[np.float32] = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return units

    return embed


def _words(text: str) -> list[str]:
    return [word for word in plain_tokens(text) if word not in STOP_WORDS]
