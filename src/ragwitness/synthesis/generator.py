"""The parts of every way to make synthetic data. Sans I/O, as audits are, but for kept rows.

A method makes a maker from the corpus, once, and the maker makes one text from each record. Both
are generators: batches of queries out, their answers in. The caller owns network, cache and caps.
"""

from __future__ import annotations

import enum
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from ragwitness.core.files import Appender
from ragwitness.core.types import Answer, Document, Query
from ragwitness.synthesis.guard import SyntheticGuard

T = TypeVar("T")

Steps: TypeAlias = Generator[list[Query], list[Answer], T]
"""Batches of queries out, their answers in (same order), a result as return value."""

_CONTROL = 0.1  # share of control characters in what is taken for binary


class Fate(enum.StrEnum):
    """Outcome of one record; ``ragwitness synthesize`` writes only the texts that passed."""

    PASSED = "passed"
    WITHHELD = "withheld"
    """Made, and not released: it broke a condition, or no agent called it safe."""
    REFUSED = "refused"
    """The model declined."""
    TRUNCATED = "truncated"
    """The model stopped at the token limit."""
    MALFORMED = "malformed"
    """The model did not keep to the form."""
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
    """The outcome of one record, with its text.

    Attributes:
        record: Id of the record.
        fate: Its outcome.
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
        """Return all settings that determine a result, as label and value."""

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the generator that studies the corpus and returns a maker.

        Args:
            documents: The usable records.
            guard: The conditions on every text.
        """

    def most(self, records: int) -> int:
        """Return the most queries for a number of records."""


class NamedRows:
    """Rows by name, in one file that one process appends to. Use as a context manager.

    Args:
        path: The file; created with its folder. None keeps the rows in memory.
        what: Its name for people.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path | None, what: str) -> None:
        self._lines = None if path is None else Appender(path, what)
        self._rows: dict[str, dict[str, Any]] = {}
        for line in path.read_bytes().splitlines() if path else ():
            # A crash may have cut a line short.
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                row = json.loads(line)
                self._rows[row.pop("key")] = row

    def keys(self) -> Collection[str]:
        """Return the names of all rows."""
        return self._rows.keys()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a row; None where there is none."""
        return self._rows.get(key)

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row; it is on the disk when this returns.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        if self._lines is not None:
            self._lines.append({"key": key, **row})
        self._rows[key] = row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.close()


class StoppedError(Exception):
    """A record ends without a text; never leaves a maker.

    Args:
        fate: Its outcome.
        reason: Why; our own words, or those of a server that failed.
    """

    def __init__(self, fate: Fate, reason: str) -> None:
        super().__init__(reason)
        self.fate, self.reason = fate, reason


def maker(longest: int, make: Maker) -> Maker:
    """Return a maker that skips records with a flaw, and turns a stop into an outcome.

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
    """Return a text as passed, or as withheld where it breaks a condition."""
    # Single spaces and no long gaps: a layout can hide a record in white space.
    text = made.text.strip() if not guard.config.holds else tidy(made.text)
    violation = guard.violation(text)
    if violation is None:
        return replace(made, fate=Fate.PASSED, text=text)
    return replace(
        made, fate=Fate.WITHHELD, text="", reason=violation.reason, violation=violation.kind
    )


def tidy(text: str) -> str:
    """Return a text with single spaces, and at most one empty line between two others."""
    lines = (" ".join(line.split()) for line in text.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
