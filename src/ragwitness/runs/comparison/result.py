"""What a comparison found, as one value for every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.extraction.score import Measure
from ragwitness.runs.leak_score import AttackLeaks
from ragwitness.runs.result import Spending
from ragwitness.stats.evaluation import Rate

__all__ = ["Compared", "Comparison", "Usefulness", "WorstCase"]


@dataclass(frozen=True, slots=True)
class Usefulness:
    """One measure of the answers to the questions.

    Attributes:
        mean: Over the questions that have a score.
        gain: Minus the same measure of ``origin``, paired; None for ``origin`` itself.
        held: The same at equal length of answers.
        near: Pairs of about equal length; with few, ``held`` is an extrapolation.
    """

    mean: Rate
    gain: Rate | None = None
    held: Rate | None = None
    near: int = 0


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The texts themselves against every record: what an attacker who gets all of them has.

    SAGE compares each text with its own original only (App. A.5, Table 8).

    Attributes:
        texts: That are indexed.
        longest: Tokens of the longest run shared with any record, without regard to case.
        closest: Highest ROUGE-L F1 of a text with any record.
        measures: As of answers, each text an answer of which the original was retrieved.
    """

    texts: int
    longest: int
    closest: float
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant.

    Attributes:
        name: Its own.
        target: Name of the system over it.
        indexed: Texts in the index.
        words: Mean words of a text.
        attacks: What each attack got out of the original records.
        together: Over all prompts, each once.
        worst: The texts themselves; None where none are shown to anybody.
        usefulness: By measure; empty without questions.
        answer_words: Mean words of an answer to a question; None where there is none.
        unanswered: Questions that failed.
        unjudged: Answers that could not be judged, by reason.
        settings: How its texts were made.
    """

    name: str
    target: str
    indexed: int
    words: float
    attacks: tuple[AttackLeaks, ...]
    together: tuple[Measure, ...]
    worst: WorstCase | None
    usefulness: Mapping[str, Usefulness]
    answer_words: float | None
    unanswered: int
    unjudged: Mapping[str, int]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Privacy against usefulness, variant by variant.

    Attributes:
        started: ISO 8601 in UTC.
        seconds: Wall time.
        records: Of the private corpus.
        background: Records in no index.
        questions: Put to every variant.
        variants: ``origin`` first.
        settings: Everything in use, as label and value.
        warnings: What a reader must know first.
        spent: On chat models; None where none was asked.
        ragwitness: Version of this package.
    """

    started: str
    seconds: float
    records: int
    background: int
    questions: int
    variants: tuple[Compared, ...]
    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    spent: Spending | None = None
    ragwitness: str = ""
