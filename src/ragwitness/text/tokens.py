"""Texts as arrays of token numbers, so that whole corpora are compared at once."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tokenized", "Vocabulary", "plain_tokens", "word_tokens"]

_WORDS = re.compile(r"\w+")


def word_tokens(text: str) -> list[str]:
    r"""Split into runs of ``\w``, letters as they are; NLTK's ``RegexpTokenizer(r"\w+")``."""
    return _WORDS.findall(text)


def plain_tokens(text: str) -> list[str]:
    r"""Split into runs of ``\w`` without regard to case."""
    return _WORDS.findall(text.casefold())


@dataclass(frozen=True, slots=True)
class Tokenized:
    """Many texts as one array.

    Attributes:
        ids: Token numbers, text after text, shape (n,).
        starts: Where each text begins, and the end, shape (texts + 1,).
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        """The token numbers of one text."""
        return self.ids[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of every text, shape (texts,)."""
        return np.diff(self.starts)

    def owners(self) -> NDArray[np.int32]:
        """The text that each token belongs to, shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)


class Vocabulary:
    """Numbers tokens in the order they are met; texts that share one can be compared.

    Args:
        split: Cuts a text into tokens.
        normalise: Applied once to every different token, such as a stemmer; None leaves it.
    """

    def __init__(
        self,
        split: Callable[[str], list[str]] = plain_tokens,
        normalise: Callable[[str], str] | None = None,
    ) -> None:
        self._split = split
        self._normalise = normalise
        self._numbers: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return self._next

    def tokenize(self, texts: Iterable[str]) -> Tokenized:
        """Return the texts as token numbers; new tokens get new numbers."""
        ids, starts = array("i"), array("q", [0])
        numbers = self._numbers
        for text in texts:
            for token in self._split(text):
                number = numbers.get(token)
                ids.append(self._new(token) if number is None else number)
            starts.append(len(ids))
        return Tokenized(np.array(ids, np.int32), np.array(starts, np.int64))

    def _new(self, token: str) -> int:
        """Number a token; those of one normal form share a number."""
        plain = token if self._normalise is None else self._normalise(token)
        number = self._numbers.get(plain) if plain != token else None
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers.setdefault(plain, number)
        self._numbers[token] = number
        return number
