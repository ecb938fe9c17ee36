"""What an audit keeps in a folder while it works: answers and finished units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ragwitness.runs.journal import ANSWERS, Journal
from ragwitness.runs.scores import FINISHED, Book, Shelf
from ragwitness.runs.shards import Shard, files_of_shards
from ragwitness.runs.worker import Spender, Worker
from ragwitness.types import Target

__all__ = ["Records"]


@dataclass(frozen=True, slots=True)
class Records:
    """Open files of a folder; workers made here keep what they find. A context manager.

    Attributes:
        journal: Answers; None keeps none.
        book: Finished units; None keeps none.
        identity: Of the audit that is at work.
    """

    journal: Journal | None = None
    book: Book | None = None
    identity: str | None = None

    @classmethod
    def of_run(cls, run: Path | None, identity: str | None) -> Self:
        """Open those of a run, with what its shards have left.

        Args:
            run: Folder; None keeps nothing.
            identity: Of the audit; None keeps answers alone.

        Raises:
            InputError: A file cannot be used, or another process is at work there.
        """
        return cls() if run is None else cls._opened(run, run, None, identity)

    @classmethod
    def of_shard(cls, run: Path, shard: Shard, identity: str) -> Self:
        """Open those of a shard, with what the run and shards of other numbers have left.

        Raises:
            InputError: A file cannot be used, or another process is at work there.
        """
        return cls._opened(shard.folder(run), run, shard, identity)

    @classmethod
    def _opened(cls, folder: Path, run: Path, shard: Shard | None, identity: str | None) -> Self:
        journal = Journal(folder / ANSWERS, files_of_shards(run, ANSWERS, shard))
        if identity is None:
            return cls(journal)
        book = Book(folder / FINISHED, files_of_shards(run, FINISHED, shard))
        return cls(journal, book, identity)

    def worker(
        self,
        system: Target,
        in_flight: int,
        governor: Spender | None = None,
    ) -> Worker:
        """Return a worker at one system.

        Args:
            system: Whom it asks.
            in_flight: Documents at the same time.
            governor: Lets queries pass; None where they cost nothing.
        """
        shelf = (
            Shelf(self.book, self.identity, system.name) if self.book and self.identity else None
        )
        return Worker(system, self.journal, in_flight, None, governor, shelf)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.journal, self.book):
            if file is not None:
                file.close()
