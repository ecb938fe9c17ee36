"""What one answer says of a true value and its alternatives."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragwitness.membership.outcomes import named_trouble, opening_words
from ragwitness.membership.srag.reading import word_probability
from ragwitness.membership.twin.places import Place
from ragwitness.text.words import split_words
from ragwitness.types import Answer, Interval

__all__ = ["PlaceReading", "Trouble", "chosen_option", "read_place", "trouble_with"]

_OPENING = 4  # words by which a repeated paragraph is recognised
_WORDS = re.compile(r"[^\W_]+")
_LABEL = re.compile(r"^\W*(?:(?:option|answer)\W+)?\(?([A-Za-z])(?:[).:]|\s*$)", re.IGNORECASE)

Trouble: TypeAlias = Literal["failed", "refused", "empty", "no_logprobs", "repeated"]
"""Why an answer cannot be read."""


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """A place as the target sees it.

    Attributes:
        place: The place.
        true: Probability of the true value.
        others: Probabilities of the alternatives.
    """

    place: Place
    true: Interval
    others: tuple[Interval, ...]

    def adjusted(self) -> tuple[Interval, tuple[Interval, ...]]:
        """Return log p minus the proxy's log p, for the true value and the alternatives.

        True values are more fluent than what is put in their place. The proxy, which never saw
        the database, prefers them too; its preference is taken off. A value that the target
        does not list has no lower bound.
        """
        own = _minus(self.true, self.place.true_logprob)
        pairs = zip(self.others, self.place.logprobs, strict=True)
        return own, tuple(_minus(p, logprob) for p, logprob in pairs)

    def plain(self) -> tuple[Interval, tuple[Interval, ...]]:
        """Return the probabilities as they are."""
        return self.true, self.others


def _minus(p: Interval, logprob: float) -> Interval:
    low = math.log(p.low) - logprob if p.low > 0 else -math.inf
    high = math.log(p.high) - logprob if p.high > 0 else -math.inf
    return Interval(low, high)


def trouble_with(answer: Answer, place: Place, *, logprobs: bool) -> Trouble | None:
    """Name why an answer cannot be read, or None.

    The true value plays no part in it: what is left out must not depend on which value is true.
    """
    if answer.error:
        return "failed"
    problem = named_trouble(answer, logprobs=logprobs)
    if problem is not None:
        if problem.endswith("refused to answer"):
            return "refused"
        return "no_logprobs" if answer.text.strip() else "empty"
    said = [word.text for word in split_words(answer.text)]
    opening = [word.text for word in split_words(place.prefix)]
    short = min(len(said), len(opening), _OPENING)
    if logprobs and short > 1 and opening_words(said, short) == opening_words(opening, short):
        return "repeated"
    return None


def read_place(place: Place, answer: Answer) -> PlaceReading:
    """Read the probability of the true value and of each alternative from one answer.

    Values the target does not list are bounded, not guessed.
    """
    tokens = answer.tokens or ()
    return PlaceReading(
        place,
        word_probability(tokens, place.value.text),
        tuple(word_probability(tokens, other) for other in place.alternatives),
    )


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Return the number of the option an answer names; None where it is none or several.

    An answer that begins with one option has chosen it, whatever follows. The words of an
    option count before its letter, since a word may begin like a label.
    """
    said = _key(text)
    keys = [_key(option) for option in options]
    first = [i for i, key in enumerate(keys) if key.strip() and said.startswith(key)]
    if len(first) == 1:
        return first[0]
    named = [i for i, key in enumerate(keys) if key.strip() and key in said]
    if named:
        return named[0] if len(named) == 1 else None
    label = _LABEL.match(text)
    index = ord(label.group(1).upper()) - ord("A") if label else len(options)
    return index if index < len(options) else None


def _key(text: str) -> str:
    """The words of a text with spaces around each, so that none is found inside another."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "
