"""The questions about the lots of a document, and the odds of their answers.

A question either ends just before a lot and names none of its alternatives (``continue``, worded as
``runon``'s), or names all of them in an order by lot (``choose``). Questions quote no lot, and
answers are read without the lots. So a system without the document, whatever it knows, remembers
or prefers, is right with probability 1/k where it names one of k alternatives, independently of all
other answers. An answer that names none or several is dropped: that depends on no lot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from ragwitness.core.types import Answer, Query
from ragwitness.membership.marks.lots import MarkedDocument, named, wording
from ragwitness.privacy.sampler import Bits, uniform
from ragwitness.text.replies import after_thought

CONTINUE, CHOOSE = "continue", "choose"

TRIAL = 3
"""Questions to continue. If no answer names an alternative, the target is asked to choose."""

ENOUGH = 3
"""Where answers that continue name one lot of so many, the target is not asked to choose."""

ROOM = 64
"""Tokens of an answer at most."""

_STAKES = (0.5, 0.8, 0.95)


@dataclass(frozen=True, slots=True)
class LotAnswer:
    """The answer about one lot.

    Attributes:
        lot: Number of the lot in its document.
        way: ``continue`` or ``choose``.
        named: The alternative that it names; None for none or several.
    """

    lot: int
    way: str
    named: int | None


@dataclass(frozen=True, slots=True)
class LotAnswers:
    """The answers about the lots of a document.

    Attributes:
        answers: In the order of the questions.
        named: The alternative that was named, by lot.
        closed: Lots that were asked about in every way and never named.
    """

    answers: tuple[LotAnswer, ...] = ()
    named: Mapping[int, int] = field(default_factory=dict)
    closed: frozenset[int] = frozenset()


def _questions(document: MarkedDocument, bits: Bits) -> list[tuple[str, int, str]]:
    """Return every question with its way and lot; those about lots with many alternatives first.

    Each lot is asked to be continued in every wording, and then to be chosen.
    """
    words = wording(document.text)
    forms, questions = words["continue"], list[tuple[str, int, int, str]]()
    for number, lot in enumerate(document.lots):
        first = uniform(len(forms), bits)
        for turn in range(len(forms) if lot.altered else 0):
            form = forms[(first + turn) % len(forms)]
            text = form.format(left=lot.left, altered=lot.altered)
            questions.append((CONTINUE, turn, number, text))
        order = [f"\u201c{alternative}\u201d" for alternative in lot.alternatives]
        for end in range(len(order) - 1, 0, -1):  # Fisher and Yates
            swap = uniform(end + 1, bits)
            order[end], order[swap] = order[swap], order[end]
        choice = f"{', '.join(order[:-1])}{words['or']}{order[-1]}"
        text = words["choose"].format(left=lot.left, choice=choice)
        questions.append((CHOOSE, len(forms), number, text))
    questions.sort(key=lambda one: (one[1], -len(document.lots[one[2]].alternatives)))
    return [(way, number, text) for way, _, number, text in questions]


def ask_lots(
    document: MarkedDocument, bits: Bits, going: Callable[[LotAnswers], bool]
) -> Generator[list[Query], list[Answer], LotAnswers]:
    """Ask about the lots of a document, one question after the other.

    An answer that goes on may name later lots too, each behind the words before it. The target is
    asked to choose at once where the first questions bring nothing, and not at all where going on
    names enough: a small model's choices tell little.

    Args:
        document: With its lots.
        bits: Order of the alternatives and wordings, independent of the lots.
        going: Whether to go on after the answers so far.
    """
    lots, count = document.lots, 0
    turns, answers = _questions(document, bits), LotAnswers()
    while turns and going(answers):
        (way, number, question), *turns = turns
        (answer,) = yield [Query(question, ROOM)]
        count += 1
        # 1. The lot in question, and others that the answer reaches.
        text, _ = after_thought(answer.text)
        read = [(number, named(text or "", lots[number].alternatives, lots[number].left))]
        for further, lot in enumerate(lots):
            if further != number and further not in answers.named:
                choice = named(text or "", lot.alternatives, lot.left, behind=True)
                read += [(further, choice)] if choice is not None else []
        choices = {**answers.named, **{lot: c for lot, c in read if c is not None}}
        # 2. The questions that remain.
        if count == TRIAL and way == CONTINUE and not choices:
            turns.sort(key=lambda turn: turn[0] == CONTINUE)
        elif way == CONTINUE and ENOUGH * len(choices) >= len(lots):
            turns = [turn for turn in turns if turn[0] == CONTINUE]
        turns = [turn for turn in turns if turn[1] not in choices]
        answers = LotAnswers(
            (*answers.answers, *(LotAnswer(lot, way, choice) for lot, choice in read)),
            choices,
            frozenset({*range(len(lots))} - {turn[1] for turn in turns} - {*choices}),
        )
    return answers


# The odds of the answers.


def tail(chances: Sequence[float], hits: int) -> float:
    """Return the probability of this number of hits or more in independent trials.

    Args:
        chances: Of a hit, one for each trial.
        hits: Their number.
    """
    counts = [1.0]
    for chance in chances:
        misses, gains = [*counts, 0.0], [0.0, *counts]
        counts = [m * (1 - chance) + g * chance for m, g in zip(misses, gains, strict=True)]
    return min(1.0, math.fsum(counts[hits:])) if hits else 1.0


@dataclass(frozen=True, slots=True)
class Odds:
    """The weight of the answers about a document.

    Attributes:
        right: Lots that were named rightly.
        answered: Lots of which an alternative was named.
        p_value: Probability that a system without the document has this number right, or more.
            Lots that may still be named count as wrong, so it holds whenever the asking stops.
        best: The same if all of these come out right.
        e_value: Winnings of a bet on each answer, with a stake of 1; its mean is at most 1.
    """

    right: int
    answered: int
    p_value: float
    best: float
    e_value: float


def odds_of(document: MarkedDocument, drawn: Sequence[int], answers: LotAnswers) -> Odds:
    """Return the odds of answers.

    Args:
        document: With its lots.
        drawn: The alternative that was drawn at each.
        answers: About them.
    """
    sizes, choices = [len(lot.alternatives) for lot in document.lots], answers.named
    hits = {number: drawn[number] == choice for number, choice in choices.items()}
    right, waiting = sum(hits.values()), {*range(len(sizes))} - {*choices} - answers.closed
    chances = [1 / sizes[number] for number in (*choices, *waiting)]
    # The bet on a lot: its alternatives share the stake, and the named one gets more than its part.
    winnings = 0.0
    for stake in _STAKES:
        product = 1.0
        for number, hit in hits.items():
            size = sizes[number]
            share = 1 / size + stake * (1 - 1 / size)
            product *= share * size if hit else (1 - share) * size / (size - 1)
        winnings += product / len(_STAKES)
    best = tail(chances, right + len(waiting))
    return Odds(right, len(choices), tail(chances, right), best, winnings)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: none of the small ones is wrong, at their level.

    Holm 1979: valid however the p-values depend on each other.
    """
    adjusted, worst = [1.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, number in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p_values[number]))
        adjusted[number] = worst
    return adjusted
