"""Synthetic texts as they are kept: the book of finished records, the result, and the file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ragwitness.defenses.synthetic.base import Fate, Synthesis
from ragwitness.runs.appending import Appender, replace_file
from ragwitness.runs.result import Spending
from ragwitness.types import Document

__all__ = ["MADE", "VOTES", "Book", "Shelf", "SynthesisResult", "digest", "write_made"]

MADE = "made.jsonl"
"""Name of the book in a folder."""

VOTES = "votes.jsonl"
"""Name of the shelf of noisy votes in a folder."""


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """What was made of a corpus.

    Attributes:
        method: Name.
        model: Name of the model asked; empty where none was.
        made: One per record, in the order of the corpus; of a corpus method, one per text.
        settings: Everything in use, as label and value.
        queries: Queries of this start, those answered from the journal included.
        sent: Those that went to the model now.
        seconds: Wall time.
        spent: What the run folder has spent; with a cap's name where that ended the work.
        warnings: What to beware of.
    """

    method: str
    model: str
    made: tuple[Synthesis, ...]
    settings: Mapping[str, str]
    queries: int
    sent: int
    seconds: float
    spent: Spending
    warnings: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Records by fate, the commonest first; fates without a record are left out."""
        return dict(Counter(str(one.fate) for one in self.made).most_common())

    @property
    def reasons(self) -> dict[str, int]:
        """Records by reason, for those that did not pass."""
        kept = (one for one in self.made if one.fate is not Fate.PASSED)
        return dict(Counter(f"{one.fate}: {one.reason}" for one in kept).most_common())


class Shelf:
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
        if path is None:
            return
        with path.open("rb") as lines:
            for line in lines:
                with suppress(
                    ValueError, KeyError, TypeError, AttributeError
                ):  # cut short by a crash
                    row = json.loads(line)
                    self._rows[row.pop("key")] = row

    def keys(self) -> Collection[str]:
        """Return the names of all rows."""
        return self._rows.keys()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a row; None where there is none."""
        return self._rows.get(key)

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row.

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


class Book:
    """Finished records. Use as a context manager.

    Args:
        path: The file; created with its folder.
        identity: Of everything that a text follows from; rows of another are passed over.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._identity = identity
        self._shelf = Shelf(path, "record of synthetic texts")

    def get(self, document: Document) -> Synthesis | None:
        """Return what an earlier start made of a record."""
        row = self._shelf.get(self._key(document))
        with suppress(ValueError, KeyError, TypeError):
            return None if row is None else Synthesis(**row | {"fate": Fate(row["fate"])})
        return None

    def put(self, document: Document, made: Synthesis) -> None:
        """Keep what was made of a record.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        self._shelf.put(self._key(document), asdict(made))

    def _key(self, document: Document) -> str:
        return digest([self._identity, document.id, document.text])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self._shelf.__exit__(*given)


def write_made(path: Path, result: SynthesisResult) -> int:
    """Write the texts that passed, one JSON object per line; return how many.

    Raises:
        RagwitnessError: It cannot be written; then it is as it was.
    """
    rows = [
        {"id": one.record, "text": one.text, "fate": str(one.fate), "method": result.method}
        for one in result.made
        if one.fate is Fate.PASSED
    ]
    replace_file(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def digest(content: object) -> str:
    """Return a content address."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
