"""What every way of making synthetic data consists of. Sans I/O, as audits are.

A method makes a maker from the corpus, once, and the maker one text from each record. Both are
generators: batches of queries out, their answers in. Who drives them owns network, cache and caps.
A corpus method makes texts that no record stands behind, all at once.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document, Query
from ragwitness.synthesis.guard import SyntheticGuard

if TYPE_CHECKING:
    from ragwitness.synthesis.private.ledger import Spend

T = TypeVar("T")

Steps: TypeAlias = Generator[list[Query], list[Answer], T]
"""Batches of queries out, their answers in (same order), a result as return value."""

_CONTROL = 0.1  # share of control characters in what is taken for binary


class Fate(enum.StrEnum):
    """What became of one record; only ``PASSED`` is ever written by ``ragwitness synthesize``."""

    PASSED = "passed"
    WITHHELD = "withheld"
    """Made, and kept back: it broke a condition, or nobody called it safe."""
    REFUSED = "refused"
    """The model declined."""
    TRUNCATED = "truncated"
    """The model stopped at the token limit."""
    MALFORMED = "malformed"
    """The model did not keep to the form it was told."""
    LANGUAGE = "language"
    """The model answered in another language."""
    FAILED = "failed"
    """The model gave no answer; asked again at the next start."""
    UNUSABLE = "unusable"
    """The record is empty, binary or too long."""
    DUPLICATE = "duplicate"
    """Another record has the same text."""
    UNASKED = "unasked"
    """A cap was reached before."""
    UNGUARDED = "unguarded"
    """Made as published, without our conditions; for evaluation alone."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """What was made of one record.

    Attributes:
        record: Id of the record.
        fate: What became of it.
        text: The synthetic text; empty unless passed or unguarded.
        reason: Why it did not pass; our own words, or those of a server that failed.
        rounds: Number of judgements by the privacy agent.
        violation: Kind of the condition that the last text broke; None where it broke none.
    """

    record: str
    fate: Fate
    text: str = ""
    reason: str = ""
    rounds: int = 0
    violation: str | None = None


Maker: TypeAlias = Callable[[Document], Steps[Synthesis]]


class Method(Protocol):
    """A way of making synthetic data."""

    @property
    def name(self) -> str:
        """Registered name, e.g. ``"sage"``."""

    @property
    def asks(self) -> bool:
        """Whether it asks a language model."""

    def describe(self) -> dict[str, str]:
        """Return everything that a result follows from, as label and value."""

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the generator that learns what it must of the corpus and returns a maker.

        Args:
            documents: The usable records.
            guard: The conditions on every text.
        """

    def most(self, records: int) -> int:
        """Return the most queries that so many records may take."""


class Keeper(Protocol):
    """Keeps what must not be made twice, across starts of a run."""

    def keys(self) -> Collection[str]:
        """Return the names of all rows."""

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a row; None where there is none."""

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row; it is on the disk when this returns."""


def of_one_release(keeper: Keeper, key: str) -> None:
    """Refuse a keeper of other noise, before anything is booked or drawn.

    Raises:
        InputError: It holds noisy counts for other settings or of another corpus.
    """
    if any(not known.startswith(key) for known in keeper.keys()):  # noqa: SIM118
        raise InputError(
            "This run folder has noisy votes of another corpus or of other settings; two choices"
            " from the same records cost more than one epsilon.",
            "Choose another folder with --run; both epsilons add up.",
        )


@dataclass(frozen=True, slots=True)
class CorpusSynthesis:
    """What was made of a corpus as a whole.

    Attributes:
        made: One per text, under ids of their own.
        warnings: What to beware of.
    """

    made: tuple[Synthesis, ...]
    warnings: tuple[str, ...] = ()


@runtime_checkable
class CorpusMethod(Protocol):
    """A way of making texts of which none stands for a record."""

    @property
    def name(self) -> str:
        """As for :class:`Method`."""

    @property
    def asks(self) -> bool:
        """As for :class:`Method`."""

    def describe(self) -> dict[str, str]:
        """As for :class:`Method`."""

    def most(self, records: int) -> int:
        """As for :class:`Method`; may be the same for every number of records."""

    def spend(self) -> Spend:
        """Return what a run spends on each record."""

    def key(self, documents: Sequence[Document]) -> str:
        """Return a content address of all that the votes follow from."""

    def make_all(
        self, documents: Sequence[Document], guard: SyntheticGuard, keeper: Keeper
    ) -> Steps[CorpusSynthesis]:
        """Return the generator that makes all texts.

        Args:
            documents: The usable records.
            guard: The conditions on every text.
            keeper: Keeps what must not be made twice.
        """


AnyMethod: TypeAlias = Method | CorpusMethod


class StoppedError(Exception):
    """A record ends without a text; never leaves a maker.

    Args:
        fate: What became of it.
        reason: Why; our own words, or those of a server that failed.
    """

    def __init__(self, fate: Fate, reason: str) -> None:
        super().__init__(reason)
        self.fate, self.reason = fate, reason


def maker(longest: int, make: Maker) -> Maker:
    """Return a maker that uses no record with a flaw, and ends one where the model stops it.

    Args:
        longest: Most characters of a record.
        make: Makes the text of a record; may raise :class:`StoppedError`.
    """

    def steps(document: Document) -> Steps[Synthesis]:
        if reason := flaw(document.text, longest):
            return Synthesis(document.id, Fate.UNUSABLE, reason=reason)
        try:
            return (yield from make(document))
        except StoppedError as stop:
            return Synthesis(document.id, stop.fate, reason=stop.reason)

    return steps


def flaw(text: str, longest: int) -> str | None:
    """Say why a record cannot be used; None where it can.

    Args:
        text: The record.
        longest: Most characters.
    """
    if not text.strip():
        return "empty"
    kinds = Counter(unicodedata.category(c) for c in text[:10_000] if c not in "\t\n\r\f")
    if "\0" in text or kinds["Cc"] + kinds["Cn"] + kinds["Co"] > _CONTROL * sum(kinds.values()):
        return "binary"
    if len(text) > longest:
        return f"longer than {longest:,} characters"
    return None


def checked(made: Synthesis, guard: SyntheticGuard) -> Synthesis:
    """Return a text that was made as passed, or withheld where it breaks a condition."""
    # Single spaces and no long gaps: a layout can carry a record in what nobody reads.
    text = made.text.strip() if not guard.config.holds else tidy(made.text)
    violation = guard.violation(text)
    if violation is None:
        return replace(made, fate=Fate.PASSED, text=text)
    return replace(
        made, fate=Fate.WITHHELD, text="", reason=violation.reason, violation=violation.kind
    )


def tidy(text: str) -> str:
    """Return a text with plain single spaces, and one empty line at most between two others."""
    lines = (" ".join(line.split()) for line in text.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def until_passed(
    record: str, make: Callable[[str, int], Steps[str]], rounds: int, guard: SyntheticGuard
) -> Steps[Synthesis]:
    """Make a text, anew with the broken condition named while rounds are left.

    Args:
        record: Id.
        make: Makes a text from an advice, empty at first, and the number of the round.
        rounds: Most versions; at least one is made.
        guard: The conditions.

    Raises:
        StoppedError: A version could not be made.
    """
    advice = ""
    for turn in range(max(1, rounds)):
        text = yield from make(advice, turn)
        made = checked(Synthesis(record, Fate.WITHHELD, text), guard)
        if made.fate is Fate.PASSED:
            return made
        broken = guard.violation(text)
        advice = broken.advice if broken else ""
    return made
