"""The questions about the lots of a document, and the odds of their answers.

A question either ends just before a lot and names none of its alternatives (``continue``, worded as
``runon``'s), or names all of them in an order by lot (``choose``). No question quotes a lot, and no
answer is read by what was drawn. So whatever a system without the document knows, remembers or
prefers, an answer that names one of k alternatives is right with probability 1/k, independently of
all others. An answer that names none or several is dropped: whether it does depends on no lot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragwitness.core.types import Answer, Query
from ragwitness.membership.marks.lots import MarkedDocument, named, wording
from ragwitness.privacy.sampler import Bits, uniform
from ragwitness.text.replies import after_thought

TRIAL = 3
"""Questions in one way after which the other begins, where no answer named an alternative."""

ROOM = 64
"""Tokens of an answer at most."""

_STAKES = (0.5, 0.8, 0.95)


@dataclass(frozen=True, slots=True)
class LotAnswer:
    """What was said about one lot.

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
    """What was said about the lots of a document.

    Attributes:
        answers: In the order of asking.
        said: The alternative that was named, by lot.
        closed: Lots that were asked about in every way and never named.
    """

    answers: tuple[LotAnswer, ...] = ()
    said: Mapping[int, int] = field(default_factory=dict)
    closed: frozenset[int] = frozenset()


Going = Callable[[LotAnswers], bool]
"""Says whether to go on after the answers so far."""


def ask_lots(
    document: MarkedDocument, bits: Bits, going: Going
) -> Generator[list[Query], list[Answer], LotAnswers]:
    """Ask about the lots of a document, one question after the other.

    Each lot is asked about in one way until an answer names an alternative, then no more. The other
    way follows, at once where the first questions have named nothing.

    Args:
        document: With its lots.
        bits: Order of the alternatives and wordings, independent of the lots.
        going: Whether to go on.
    """
    lots, words = document.lots, wording(document.text)
    # 1. Every question, before the first answer.
    questions: dict[tuple[str, int], str] = {}
    for number, lot in enumerate(lots):
        form = words["continue"][uniform(len(words["continue"]), bits)]
        order = list(lot.alternatives)
        for end in range(len(order) - 1, 0, -1):  # Fisher and Yates
            other = uniform(end + 1, bits)
            order[end], order[other] = order[other], order[end]
        quoted = [f"\u201c{alternative}\u201d" for alternative in order]
        choice = f"{', '.join(quoted[:-1])}{words['or']}{quoted[-1]}"
        if lot.altered:
            questions["continue", number] = form.format(left=lot.left, altered=lot.altered)
        questions["choose", number] = words["choose"].format(left=lot.left, choice=choice)
    by_size = sorted(range(len(lots)), key=lambda number: -len(lots[number].alternatives))
    ways = {
        way: [(way, number) for number in by_size if (way, number) in questions]
        for way in ("continue", "choose")
    }
    # 2. One after the other, as long as something can be decided.
    asked = LotAnswers()
    turns, place = [*ways["continue"], *ways["choose"]], 0
    while True:
        said, rest = asked.said, {number for _, number in turns[place:]}
        asked = replace(asked, closed=frozenset({*range(len(lots))} - rest - {*said}))
        if place == len(turns) or not going(asked):
            return asked
        way, number = turns[place]
        place += 1
        if number in said:
            continue
        (answer,) = yield [Query(questions[way, number], ROOM)]
        text, _ = after_thought(answer.text)
        reading = named(text or "", lots[number].alternatives, lots[number].left)
        answers = (*asked.answers, LotAnswer(number, way, reading))
        asked = LotAnswers(answers, said if reading is None else {**said, number: reading})
        if len(answers) == TRIAL <= len(ways["continue"]) and not asked.said:
            turns = [*turns[:place], *ways["choose"], *ways["continue"][TRIAL:]]


# The odds of the answers.


def tail(chances: Sequence[float], hits: int) -> float:
    """Return the probability of at least so many hits in independent trials.

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
    """What the answers about a document are worth.

    Attributes:
        right: Lots that were named rightly.
        answered: Lots of which an alternative was named.
        p_value: Probability that a system without the document has so many right. Lots that may
            still be named count as wrong, so that it holds whenever the asking stops.
        best: The same if all of these come out right.
        e_value: Winnings of a bet on each answer, with a stake of 1; its mean is at most 1.
    """

    right: int
    answered: int
    p_value: float
    best: float
    e_value: float


def odds_of(document: MarkedDocument, drawn: Sequence[int], asked: LotAnswers) -> Odds:
    """Return the odds of answers.

    Args:
        document: With its lots.
        drawn: The alternative that was drawn at each.
        asked: What was said about them.
    """
    said = asked.said
    sizes = [len(lot.alternatives) for lot in document.lots]
    right = sum(drawn[number] == choice for number, choice in said.items())
    open_lots = [
        number for number in range(len(sizes)) if number not in said and number not in asked.closed
    ]
    chances = [1 / sizes[number] for number in (*said, *open_lots)]
    # The bet on a lot: its alternatives share the stake, the named one has more than its part.
    winnings = 0.0
    for stake in _STAKES:
        shares = (1 / sizes[number] + stake * (1 - 1 / sizes[number]) for number in said)
        winnings += math.prod(
            share * sizes[number] if drawn[number] == choice
            else (1 - share) * sizes[number] / (sizes[number] - 1)
            for share, (number, choice) in zip(shares, said.items(), strict=True)
        ) / len(_STAKES)  # fmt: skip
    best = tail(chances, right + len(open_lots))
    return Odds(right, len(said), tail(chances, right), best, winnings)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that no document at all is wrongly called in, at their level.

    Holm 1979: valid however the p-values depend on each other.
    """
    adjusted, worst = [1.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, place in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = worst
    return adjusted
