"""A bet on words that were never sent (``membership.e_values``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bet:
    """A bet that an answer goes on with the document's next words; fixed before the answer.

    Attributes:
        stake: Share of the stake that is bet; the rest is kept.
        length: Words that are bet on, one further word a further bet.
        words: Words in the answer, spelled as in the document, each with the signs before it; none
            where the bet is lost.
        question: The question; empty where the bet is lost.
        before: The answer up to these words.
        gap: The document without these words, which shows how well they can be guessed from it.
    """

    stake: float
    length: int
    words: tuple[str, ...] = ()
    question: str = ""
    before: str = ""
    gap: str = ""
