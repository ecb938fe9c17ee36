"""Training turns: a user's request and the reader's answer, with a loss weight for every token.

The answer to a completion is always the continuation from where the user's text stops. When the
document is not in the context the label stays the true text, so that "absent" comes to mean a
probability that is honestly low.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from research.reader import forms as prompts
from research.reader.config import DataConfig
from research.reader.corpus import MASK_COUNT, Vocabulary

CORE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9'\-/:.@_,]*[A-Za-z0-9]|[A-Za-z0-9])([.,;:?!)\"]*)$")
STOP_WORDS = frozenset(
    "a an the and or but if of to in on at by for with is are was were be been it its this that "
    "these those i you he "
    "she we they my your his her our their me him us them as from not no so do does did have has "
    "had will would can "
    "could should may might there here what which who when where how than then also any all".split()
)
_ANSWER_MARKS = frozenset(("Doctor:", "Agent:", "Answer:", "doctor:", "agent:", "answer:"))
_DIGITS = frozenset("0123456789")

_QUERY, _LABEL, _ANSWER, _FIRST, _DIGIT, _MASKED, _VERDICT, _REFUSED = (
    0.15,
    1.5,
    1.0,
    3.0,
    2.0,
    2.0,
    8.0,
    0.3,
)


@dataclass
class Rendered:
    """Token ids with the loss weight of predicting each of them."""

    tokens: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, tokens: Sequence[int], weight: float) -> None:
        """Append ``tokens``, all with one weight."""
        self.tokens.extend(tokens)
        self.weights.extend([weight] * len(tokens))

    def extend(self, other: Rendered) -> None:
        """Append another rendered stretch."""
        self.tokens.extend(other.tokens)
        self.weights.extend(other.weights)


@dataclass(frozen=True)
class Turn:
    """What a turn is about; ``context`` when the documents belong inside the user's text."""

    target: list[str]
    documents: list[list[str]]
    present: bool
    defended: bool
    context: str | None = None


def splice(before: str, pieces: list[str], after: str, spaced: bool) -> list[str]:
    """Put ``pieces`` between two strings so that piecewise tokens equal those of the whole text.

    ``spaced`` keeps the space that opens the first piece; without it the text follows ``before``
    directly, as any client's f-string would put it.
    """
    pieces = list(pieces)
    if before.endswith(" "):
        before = before[:-1]
    elif not spaced:
        gap = before[len(before.rstrip("\n")) :]
        before, pieces[0] = before[: len(before) - len(gap)], gap + pieces[0].lstrip()
    glued = re.match(r"\S*", after)
    if glued and glued.group():
        pieces[-1] += glued.group()
        after = after[glued.end() :]
    return [part for part in (before, *pieces, after) if part]


class TurnMaker:
    """Draws turns; every choice comes from the generator it is handed."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        rng: random.Random,
        data: DataConfig | None = None,
        focus: float = 1.0,
        absent: float = 1.0,
    ) -> None:
        self._data = data or DataConfig()
        self._absent = absent
        self._first, self._masked = focus * _FIRST, focus * _MASKED
        self.vocabulary = vocabulary
        self.rng = rng
        self._makers: dict[str, Callable[[Turn], Rendered]] = {
            "complete": self._complete,
            "next": self._next,
            "cloze": self._cloze,
            "yes_no": self._yes_no,
            "question": self._question,
            "repeat": self._repeat,
        }

    def make(self, task: str, turn: Turn) -> Rendered:
        """Render one turn of ``task``; the target needs at least 16 pieces."""
        return self._makers[task](turn)

    def _ask(
        self, templates: Sequence[str], pieces: list[str], turn: Turn, last: str = ""
    ) -> Rendered:
        """The user's side: ``pieces`` in one of ``templates``, then the assistant's role."""
        template = self.rng.choice(list(templates)).replace("{last}", last)
        if turn.context is not None and "{context}" not in template:
            template = self.rng.choice(prompts.USER_CONTEXT).replace("{text}", template)
        template = template.replace("{context}", turn.context or "")
        asked = Rendered([self.vocabulary.user], [0.0])
        if "{text}" in template:
            before, after = template.split("{text}")
            body = set(pieces)
            for part in splice(before, pieces, after, self.rng.random() < 0.4):
                asked.add(self._encode(part), _QUERY if part in body else 0.0)
        else:
            asked.add(self._encode(template), 0.0)
        asked.add([self.vocabulary.assistant], 0.0)
        return asked

    def _encode(self, text: str) -> Sequence[int]:
        # One-off strings (a context in the user's turn) would only push words out of the cache.
        if len(text) > 600:
            return self.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids
        return self.vocabulary.encode(text)

    def _answer(self, pieces: list[str], first: float) -> Rendered:
        """The copied continuation; digits weigh more because one wrong digit spoils a number."""
        answer = Rendered()
        for piece in pieces:
            weight = _DIGIT if _DIGITS.intersection(piece) else _ANSWER
            answer.add(self.vocabulary.encode(piece), weight)
        if answer.weights:
            answer.weights[0] = first
        return answer

    def _window(self, pieces: list[str], low: int, high: int) -> list[str]:
        size = min(len(pieces), self.rng.randint(low, high))
        start = self.rng.randrange(len(pieces) - size + 1)
        return _opened(pieces[start : start + size])

    def _continuation(
        self, turn: Turn, templates: Sequence[str], cut: int, start: int, length: int
    ) -> Rendered:
        made = self._ask(templates, _opened(turn.target[start:cut]), turn)
        body = _opened(turn.target[cut : cut + length])
        answer = self._answer(body, self._first)
        if not turn.present:
            answer.weights = [self._absent * weight for weight in answer.weights]
        made.extend(answer)
        if cut + length >= len(turn.target):
            made.add([self.vocabulary.end], _ANSWER)
        return made

    def _complete(self, turn: Turn) -> Rendered:
        rng, size = self.rng, len(turn.target)
        cut = int(size * (0.5 if rng.random() < 0.4 else rng.uniform(0.1, 0.9)))
        cut = max(4, min(cut, size - 3))
        start = rng.randrange(cut - 3) if rng.random() < 0.3 else 0
        return self._continuation(turn, prompts.COMPLETE, cut, start, rng.choice([40, 80, 160]))

    def _next(self, turn: Turn) -> Rendered:
        rng, size = self.rng, len(turn.target)
        start = rng.randrange(size - 12) if rng.random() < 0.6 else 0
        cut = min(size - 2, start + rng.randint(4, 40 if start else size))
        return self._continuation(turn, prompts.COMPLETE, cut, start, rng.choice([1, 1, 2, 3, 6]))

    def _question(self, turn: Turn) -> Rendered:
        size = len(turn.target)
        marks = [index for index, piece in enumerate(turn.target) if piece.strip() in _ANSWER_MARKS]
        cut = max(4, min(marks[0] if marks else size // 2, size - 4))
        return self._continuation(turn, prompts.QUESTION, cut, 0, self.rng.choice([30, 60]))

    def _chosen_masks(self, pieces: list[str]) -> list[int]:
        """Places to mask: never the first word, no neighbours, mostly words with a meaning."""
        rng = self.rng
        candidates = [
            index
            for index, piece in enumerate(pieces[1:], 1)
            if CORE.match(piece.strip())
            and (_plain(piece) not in STOP_WORDS or rng.random() < 0.15)
        ]
        rng.shuffle(candidates)
        wanted = max(
            1, min(rng.randint(1, 12 if rng.random() < 0.9 else MASK_COUNT), len(pieces) // 4)
        )
        chosen: list[int] = []
        for index in candidates:
            if len(chosen) < wanted and all(abs(index - other) > 1 for other in chosen):
                chosen.append(index)
        return sorted(chosen)

    def _cloze(self, turn: Turn) -> Rendered:
        pieces = turn.target
        if self.rng.random() < 0.45:
            pieces = self._window(pieces, 12, 40)
        masked, answers = list(pieces), list[str]()
        for index in self._chosen_masks(pieces):
            match = CORE.match(pieces[index].strip())
            if match:
                answers.append(match.group(1))
                masked[index] = f" [Mask_{len(answers)}]{match.group(2)}"
        after = turn.context is not None and self.rng.random() < 0.6
        templates = prompts.AFTER_CLOZE if after else prompts.CLOZE
        made = self._ask(templates, masked, turn, last=f"[Mask_{len(answers)}]")
        weight = self._masked * (1.0 if turn.present else self._absent)
        for index, answer in enumerate(answers):
            if index:
                made.add(self.vocabulary.encode("\n"), _LABEL)
            made.add([self.vocabulary.masks[index], self.vocabulary.colon], _LABEL)
            made.add(self.vocabulary.encode(" " + answer), weight)
        made.add([self.vocabulary.end], _LABEL)
        return made

    def _edited(self, pieces: list[str]) -> list[str]:
        """A copy with one to four words changed: the more there are, the easier to see."""
        for _ in range(self.rng.choice([1, 1, 2, 3, 4])):
            pieces = self._edit(pieces)
        return pieces

    def _edit(self, pieces: list[str]) -> list[str]:
        """A copy with one word changed: another word of the text, or another number."""
        place = self.rng.randrange(1, len(pieces))
        word = pieces[place].strip()
        if _DIGITS.intersection(word):
            new = re.sub(r"\d", lambda _: str(self.rng.randrange(10)), word)
        else:
            new = self.rng.choice(pieces).strip()
        if new == word:
            new = "not" if word != "not" else "very"
        return [*pieces[:place], " " + new, *pieces[place + 1 :]]

    def _yes_no(self, turn: Turn) -> Rendered:
        pieces, present = turn.target, turn.present
        if self.rng.random() < 0.6:
            pieces = self._window(pieces, 8, 50)
        if present and self.rng.random() < self._data.edited_share:
            pieces, present = self._edited(pieces), False
        framed = self.rng.random() < self._data.framed_share
        templates = (self._framed(turn.target),) if framed else prompts.YES_NO
        made = self._ask(templates, pieces, turn)
        if turn.defended:
            return self._refuse(made)
        made.add(self.vocabulary.encode(" Yes" if present else " No"), _VERDICT)
        made.add([self.vocabulary.end], _LABEL)
        return made

    def _framed(self, pieces: list[str]) -> str:
        """A question after some words of the text, which retrieval needs, and before a request."""
        rng = self.rng
        words = [piece.strip(" .,;:?!()\"'\n") for piece in pieces if "{" not in piece]
        topic = rng.sample(words, min(len(words), rng.randint(2, 7)))
        opening = rng.choice(["", *prompts.OPENINGS])
        opening = opening.replace("{topic}", rng.choice([", ", " "]).join(topic))
        question, request = rng.choice(prompts.ASKED), rng.choice(["", *prompts.REQUESTS])
        return " ".join(part for part in (opening, question, request) if part)

    def _repeat(self, turn: Turn) -> Rendered:
        made = self._ask(prompts.REPEAT, turn.target[: self.rng.randint(4, 10)], turn)
        if turn.defended:
            return self._refuse(made)
        for index, document in enumerate(turn.documents):
            if index:
                made.add(self.vocabulary.encode("\n\n"), _ANSWER)
            made.extend(self._answer(document, _FIRST))
        made.add([self.vocabulary.end], _ANSWER)
        return made

    def _refuse(self, made: Rendered) -> Rendered:
        made.add(self.vocabulary.encode(prompts.REFUSAL), _REFUSED)
        made.add([self.vocabulary.end], _REFUSED)
        return made


def _plain(piece: str) -> str:
    return piece.strip().lower().strip('.,;:?!"()')


def _opened(pieces: list[str]) -> list[str]:
    """A stretch of a document: its first piece opens with one space, as every answer does."""
    return [" " + pieces[0].strip(), *pieces[1:]]
