"""Embedders of tenants by name, one of our own without a model among them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.models.base import Embedder

__all__ = ["HashingEmbedder", "tenant_embedder"]

_MOST = 4096


class HashingEmbedder:
    """Signed feature hashing of words and pairs of words: lexical, no model, the same everywhere.

    Args:
        dimension: Of the vectors, from 16 to 4,096.

    Raises:
        InputError: ``dimension`` is outside that.
    """

    def __init__(self, dimension: int) -> None:
        if not 16 <= dimension <= _MOST:
            raise InputError(
                f"Hashed vectors have 16 to {_MOST} dimensions, not {dimension}.",
                "Write hashing:256.",
            )
        self._dimension = dimension

    @property
    def name(self) -> str:
        """The form that names it."""
        return f"hashing:{self._dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dimension); zeros for a text without words."""
        rows = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature in _features(text):
                drawn = int.from_bytes(hashlib.blake2b(feature, digest_size=8).digest(), "big")
                row[(drawn >> 1) % self._dimension] += 1.0 if drawn & 1 else -1.0
            row /= float(np.linalg.norm(row)) or 1.0
        return rows


def tenant_embedder(spec: str) -> Embedder:
    """Return the embedder ``spec`` names, loaded once per process.

    Args:
        spec: ``hashing:DIMENSION``, or what ``lab serve --retrieval`` takes: ``minilm``,
            ``hf:NAME_OR_FOLDER``, ``URL#MODEL``.

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "hashing" and colon:
        if not (rest.isascii() and rest.isdigit()):
            raise InputError(f"The embedder {spec!r} names no dimension.", "Write hashing:256.")
        return HashingEmbedder(int(rest))
    from ragwitness.rag.embedders import load_embedder

    try:
        return load_embedder(spec)
    except InputError as error:
        if "Valid forms" not in error.hint:
            raise
        raise InputError(error.message, f"{error.hint}, hashing:DIMENSION") from None


def _features(text: str) -> list[bytes]:
    from ragwitness.text.words import core, split_words

    found = (core(word.text).casefold() for word in split_words(text))
    words = [word.encode() for word in found if word]
    return words + [b" ".join(pair) for pair in pairwise(words)]
