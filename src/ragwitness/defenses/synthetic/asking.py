"""One question to a language model, asked again where the answer cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from ragwitness.defenses.synthetic.base import Fate, Steps
from ragwitness.errors import InputError
from ragwitness.quoting import unquoted
from ragwitness.text.languages import same_language
from ragwitness.text.refusals import refuses
from ragwitness.types import Answer, Query

__all__ = [
    "BEGIN",
    "END",
    "SAFE",
    "SUGGEST",
    "Asking",
    "StoppedError",
    "as_it_is",
    "as_list",
    "ask",
    "shown",
    "together",
]

# The protocol words of SAGE, App. A.1.2 (Tables 15 and 16).
SAFE, SUGGEST, BEGIN, END = "THISISSAFE", "SUGGESTIONS:", "[BEG]", "[END]"
_PROTOCOL = re.compile(
    r"THIS\W?IS\W?SAFE|SUGGESTIONS:|SAFE\W{0,2}DATA:|\[(?:BEG|END)\]|<<<|>>>", re.IGNORECASE
)
_LINE = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s*(.{2,80}?)\s*$", re.MULTILINE)

T = TypeVar("T")


class StoppedError(Exception):
    """A record ends without a text; never leaves a maker.

    Args:
        fate: What became of it.
        reason: Why; our own words, or those of a server that failed.
    """

    def __init__(self, fate: Fate, reason: str) -> None:
        super().__init__(reason)
        self.fate, self.reason = fate, reason


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked.

    Attributes:
        max_tokens: Limit of an answer; the published code's 256 cuts many a text short.
        temperature: As published, 0.6.
        attempts: Times that a question is asked while its answers cannot be used.
        seed: Of the first attempt; further ones count on, so that they are other questions.
        published: Take answers as the published code does: cut off, in another language, of
            another form. For evaluation alone.

    Raises:
        InputError: A number is out of range.
    """

    max_tokens: int = 1024
    temperature: float = 0.6
    attempts: int = 2
    seed: int = 0
    published: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers with which nothing can be asked."""
        if self.max_tokens < 1 or self.attempts < 1 or self.temperature < 0:
            raise InputError(
                "max_tokens and attempts must be at least 1, temperature at least 0, not"
                f" {self.max_tokens}, {self.attempts} and {self.temperature:g}.",
                "Leave out --answer-tokens, --attempts or --temperature for the default.",
            )

    def as_published(self) -> Asking:
        """Return these settings with the published limit, once, whatever comes back."""
        return replace(self, max_tokens=256, attempts=1, published=True)


def ask(
    prompt: str,
    read: Callable[[str], T | None],
    how: Asking,
    *,
    like: str | None = None,
    turn: int = 0,
) -> Steps[T]:
    """Ask until an answer can be used.

    Args:
        prompt: The question.
        read: Returns what the answer says; None where it does not keep to its form.
        how: Settings.
        like: A text whose language the answer must be in; None for any.
        turn: Number of the round, so that a question that recurs is asked anew.

    Raises:
        StoppedError: No attempt brought an answer that can be used.
    """
    trouble = StoppedError(Fate.MALFORMED, "")
    for attempt in range(how.attempts):
        seed = how.seed + turn * how.attempts + attempt
        (answer,) = yield [Query(prompt, how.max_tokens, how.temperature, seed=seed)]
        if (found := _trouble(answer, like, how.published)) is not None:
            if found.fate is Fate.FAILED:  # some servers repeat the prompt, and in it the record
                raise StoppedError(Fate.FAILED, unquoted(found.reason, prompt))
            trouble = found
        elif (said := read(answer.text)) is not None:
            return said
        elif refuses(answer.text):
            trouble = StoppedError(Fate.REFUSED, "the model refused")
        else:
            trouble = StoppedError(Fate.MALFORMED, "the model did not keep to the form")
    raise trouble


def together(parts: Iterable[Steps[T]], width: int = 32) -> Steps[list[T | StoppedError]]:
    """Follow several generators side by side; what stopped one stands in its result's place.

    Args:
        parts: The generators.
        width: Most that are followed at the same time.
    """
    found: list[T | StoppedError] = []
    waiting = list(parts)
    while waiting:
        some, waiting = waiting[:width], waiting[width:]
        found += yield from _abreast(some)
    return found


def _abreast(parts: list[Steps[T]]) -> Steps[list[T | StoppedError]]:
    found: dict[int, T | StoppedError] = {}
    answers: dict[int, list[Answer] | None] = dict.fromkeys(range(len(parts)))
    while answers:
        asked: dict[int, list[Query]] = {}
        for place, given in answers.items():
            try:
                asked[place] = parts[place].send(given)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:
                found[place] = stop.value
            except StoppedError as stop:
                found[place] = stop
        batch = [query for queries in asked.values() for query in queries]
        said = iter((yield batch) if batch else ())
        answers = {n: [next(said) for _ in queries] for n, queries in asked.items()}
    return [found[place] for place in range(len(parts))]


def as_it_is(text: str) -> str | None:
    """Read a text that is all of the answer; a refusal or protocol words make it none."""
    found = text.strip()
    return None if not found or _PROTOCOL.search(found) or refuses(found) else found


def as_list(text: str) -> list[str] | None:
    """Read the lines of a list, "- one" or "1. one"; None where there is none."""
    return [line.strip("[]*: ") for line in _LINE.findall(text)] or None


def shown(text: str) -> str:
    """Return a text for a prompt: its own protocol words taken out, so that it says nothing."""
    return f"<<<\n{_PROTOCOL.sub('[…]', text)}\n>>>"


def _trouble(answer: Answer, like: str | None, published: bool) -> StoppedError | None:
    if answer.error is not None:
        return StoppedError(Fate.FAILED, answer.error)
    if answer.finish_reason == "content_filter":
        return StoppedError(Fate.REFUSED, "the model's provider filtered the answer")
    if answer.finish_reason == "length" and not published:
        return StoppedError(Fate.TRUNCATED, "the answer was cut off at the token limit")
    if not answer.text.strip():
        return StoppedError(Fate.MALFORMED, "the model answered with nothing")
    if like is not None and not published and not same_language(like, answer.text):
        return StoppedError(Fate.LANGUAGE, "the model answered in another language")
    return None
