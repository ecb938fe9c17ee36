"""Finished units: what was found is kept, so that no document is probed again.

``finished.jsonl`` is appended to as units end, in whatever order that is. ``scores.jsonl`` is
written once all are there, in the order of the audit: the same bytes whoever did the work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ragwitness.errors import InputError
from ragwitness.runs.appending import Appender, replace_file
from ragwitness.runs.units import Unit, unit_id
from ragwitness.runs.worker import Outcome
from ragwitness.types import Document, Evidence, Interval, Score

__all__ = ["FINISHED", "SCORES", "Book", "Kept", "Shelf", "read_books", "write_scores"]

FINISHED = "finished.jsonl"
"""Name of the book in a folder."""

SCORES = "scores.jsonl"
"""Name of the file in the order of the audit."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A finished unit as it stands in a book.

    Attributes:
        score: Its evidence.
        queries: Queries it took.
        sent: Those that went to the target.
        capped: A cap refused one of them.
        passing: Something failed that may not fail again.
    """

    score: Score
    queries: int
    sent: int
    capped: bool
    passing: bool

    def of(self, document: Document) -> Outcome:
        """Return it as the outcome of its document."""
        return Outcome(document, self.score, self.queries, self.sent, self.capped, self.passing)


class Book:
    """Appends finished units to a file and knows those of earlier starts.

    Use as a context manager.

    Args:
        path: The file; created with its folder.
        beside: Books of others that are read as well.

    Raises:
        InputError: A file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path, beside: Iterable[Path] = ()) -> None:
        self._lines = Appender(path, "record of scores")
        self._kept = read_books([*beside, path])

    def get(self, unit: str, document: Document) -> Outcome | None:
        """Return what an earlier start found; None where it found nothing that lasts."""
        row = self._kept.get(unit)
        if row is None or row.passing:
            return None
        return replace(row.of(document), sent=0)

    def put(self, unit: str, outcome: Outcome) -> Outcome:
        """Keep an outcome and return it as it will be read back.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        stored = {
            "unit": unit,
            **_encode(outcome.score),
            "queries": outcome.queries,
            "sent": outcome.sent,
            "capped": outcome.capped,
            "passing": outcome.passing,
        }
        self._lines.append(stored)
        return _decode(stored).of(outcome.document)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The part of a book that a worker uses: one audit at one system.

    Attributes:
        book: Where units are kept.
        identity: Of the audit.
        target: Name of the system.
    """

    book: Book
    identity: str
    target: str

    def get(self, document: Document) -> Outcome | None:
        """Return what is kept of a document."""
        return self.book.get(unit_id(self.identity, self.target, document), document)

    def put(self, outcome: Outcome) -> Outcome:
        """Keep an outcome."""
        return self.book.put(unit_id(self.identity, self.target, outcome.document), outcome)


def write_scores(path: Path, units: Iterable[Unit], found: Mapping[str, Sequence[Outcome]]) -> None:
    """Write all scores in the order of the audit.

    Args:
        path: The file; replaced whole.
        units: All units.
        found: Outcomes by stage, in the order of the units.

    Raises:
        RagwitnessError: It cannot be written.
    """
    outcomes = {stage: iter(part) for stage, part in found.items()}
    lines = (_line(unit, next(outcomes[unit.stage])) for unit in units)
    replace_file(path, "".join(lines))


def _encode(score: Score) -> dict[str, Any]:
    """Return a score as JSON; floats keep every digit."""
    return {
        "value": None if score.value is None else float(score.value),
        "features": [float(value) for value in score.features],
        "evidence": [
            [
                e.word,
                e.before,
                float(e.probability.low),
                float(e.probability.high),
                float(e.baseline),
            ]
            for e in score.evidence
        ],
        "reason": score.reason,
        "details": {key: float(value) for key, value in score.details.items()},
    }


def _line(unit: Unit, outcome: Outcome) -> str:
    row = {"unit": unit.id, "stage": unit.stage, "document": unit.document.id}
    rest = {**row, **_encode(outcome.score), "queries": outcome.queries}
    return json.dumps(rest, separators=(",", ":")) + "\n"


def read_books(books: Iterable[Path]) -> dict[str, Kept]:
    """Return by unit what several books hold; what lasts goes before what may pass.

    Raises:
        InputError: A book cannot be read.
    """
    found: dict[str, Kept] = {}
    for path in books:
        try:
            with path.open("rb") as lines:
                for line in lines:
                    with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                        stored = json.loads(line)
                        unit, row = stored["unit"], _decode(stored)
                        if not row.passing or unit not in found or found[unit].passing:
                            found[unit] = row
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return found


def _decode(stored: Mapping[str, Any]) -> Kept:
    return Kept(
        Score(
            stored["value"],
            tuple(stored["features"]),
            tuple(
                Evidence(word, before, Interval(low, high), baseline)
                for word, before, low, high, baseline in stored["evidence"]
            ),
            stored["reason"],
            stored["details"],
        ),
        queries=stored["queries"],
        sent=stored["sent"],
        capped=stored["capped"],
        passing=stored["passing"],
    )
