"""What a run folder has spent, remembered across starts.

One row per query, ``{"id": …, "queries": …, "prompt": …, "completion": …}``: the worst case is
written before the query is sent, and what it did use under the same id afterwards. The last row
of an id counts. So a process killed in between leaves the worst case behind, never too little.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Self

from ragwitness.errors import InputError
from ragwitness.runs.appending import Appender
from ragwitness.runs.budget import Use

__all__ = ["LEDGER", "Ledger", "spent_in", "uses"]

LEDGER = "spent.jsonl"
"""Name of the file in a run folder."""


class Ledger:
    """Appends to the file. Use as a context manager.

    Args:
        path: The file; created with its folder.

    Attributes:
        before: What earlier starts spent.

    Raises:
        InputError: It cannot be read or written, or another process is at work in its folder.
    """

    def __init__(self, path: Path) -> None:
        self._lines = Appender(path, "record of spending")
        rows = _rows(path)
        self.before = sum(rows.values(), Use())
        self._next = max(rows, default=0) + 1

    def open(self, worst: Use) -> int:
        """Note the worst case of a query about to be sent; return its id."""
        number = self._next
        self._next += 1
        self.note(number, worst)
        return number

    def note(self, number: int, use: Use) -> None:
        """Replace what stands under an id."""
        self._lines.append(
            {
                "id": number,
                "queries": use.queries,
                "prompt": use.prompt,
                "completion": use.completion,
            }
        )

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spent_in(path: Path) -> Use:
    """Return what one file remembers; nothing where there is none.

    Raises:
        InputError: It cannot be read.
    """
    return sum(_rows(path).values(), Use()) if path.exists() else Use()


def uses(path: Path) -> tuple[Use, ...]:
    """Return what each query used, in the order in which they were sent.

    Raises:
        InputError: The file cannot be read.
    """
    return tuple(_rows(path).values())


def _rows(path: Path) -> dict[int, Use]:
    found: dict[int, Use] = {}
    try:
        with path.open("rb") as lines:
            for line in lines:
                with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                    row = json.loads(line)
                    counts = [int(row[key]) for key in ("queries", "prompt", "completion")]
                    found[int(row["id"])] = Use(*counts)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return found
