"""What opens the window's query records: the provider's secret, one line for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ragwitness.attest.ledger import append_synced
from ragwitness.attest.receipts import Opened
from ragwitness.errors import InputError, VerificationError

__all__ = ["Journal", "Kept"]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """One query record's secrets.

    Attributes:
        opened: Query, vector and answer with their blindings.
        text: The query itself, where the provider keeps it.
    """

    opened: Opened
    text: str | None


class Journal:
    """Lines found by the leaf hash of the record that they open.

    A line is written before its record is logged. So one may stand here that no record follows,
    after a crash: nobody was told of it, and nothing looks for it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        self._read = 0

    def put(self, leaf: bytes, kept: Kept) -> None:
        """Store what opens a record, once it is on the disk. Only for a holder of the lock.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        row = {"leaf": leaf.hex(), "text": kept.text, **kept.opened.fields()}
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        append_synced(self._path, self._seam() + line)

    def get(self, leaf: bytes) -> Kept:
        """Return what opens a record.

        Raises:
            InputError: The file is damaged, or has no such line.
        """
        if leaf.hex() not in self._places:
            self._index()
        place = self._places.get(leaf.hex())
        if place is None:
            raise self._damaged(f"what opens the record {leaf.hex()[:16]}… is missing")
        try:
            with self._path.open("rb") as file:
                file.seek(place)
                row = json.loads(file.readline())
            return Kept(Opened.of(row, "journal"), row["text"])
        except (OSError, ValueError, KeyError, VerificationError) as error:
            raise self._damaged(str(error)) from error

    def _index(self) -> None:
        """Note the places of the lines that are new."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if line.endswith(b"\n"):
                        self._note(line)
                        self._read += len(line)
        except OSError as error:
            raise self._damaged(str(error.strerror)) from error

    def _note(self, line: bytes) -> None:
        try:
            self._places[json.loads(line)["leaf"]] = self._read
        except (ValueError, KeyError, TypeError):
            return  # cut short by a crash, and no record follows

    def _seam(self) -> bytes:
        """Return what must stand before the next line: a line cut short must not swallow it."""
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            if not size:
                return b""
            file.seek(size - 1)
            return b"" if file.read(1) == b"\n" else b"\n"

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self._path} cannot open the window's records: {why}.",
            "Without it the record cannot be proved; restore the file from a backup.",
        )
