"""What a run asked and was told, read from its journal for people; nothing here writes.

A journal may be large, and one document is looked at at a time: lines that cannot concern it are
passed over before they are parsed. Answers kept by earlier versions have no question beside them;
they are counted, and cannot be shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError
from ragwitness.runs.journal import Asked, decode_answer
from ragwitness.runs.shards import files_of_shards
from ragwitness.types import Answer, Query

__all__ = ["JOURNAL", "Exchange", "Heard", "count_answers", "exchanges", "files_of", "heard"]

JOURNAL = "answers.jsonl"
"""Name of the file in a run folder."""

_BODY = b',"answer":'
# Within JSON text every quote is escaped, so no prompt can look like the end of a question.


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer."""

    asked: Asked
    answer: Answer


@dataclass(slots=True)
class Heard:
    """What a journal holds so far.

    Attributes:
        answers: Answers, those without a question included.
        unnamed: Answers without a question.
        stages: Answers by document, by stage, in the order of arrival.
    """

    answers: int = 0
    unnamed: int = 0
    stages: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, asked: Mapping[str, Any] | None) -> None:
        """Count an answer and the question it was given to."""
        self.answers += 1
        if asked is None:
            self.unnamed += 1
            return
        documents = self.stages.setdefault(str(asked["stage"]), {})
        name = str(asked["document"])
        documents[name] = documents.get(name, 0) + 1


def files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of that name in a run folder and in those of its shards."""
    own = folder / name
    return [*([own] if own.is_file() else []), *files_of_shards(folder, name)]


def count_answers(folder: Path) -> int:
    """Return about how many answers a run keeps: its lines, which is quick to count.

    Raises:
        InputError: A journal cannot be read.
    """
    return sum(1 for _ in _lines(folder))


def exchanges(folder: Path, document: str) -> tuple[Exchange, ...]:
    """Return what was asked about a document, in the order of arrival.

    Raises:
        InputError: A journal cannot be read.
    """
    wanted = f'"document":{json.dumps(document)}'.encode()
    found: dict[str, Exchange] = {}
    for line in _lines(folder):
        head, body, _ = line.partition(_BODY)
        if body and wanted in head:
            with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                row = json.loads(line)
                asked = _asked(row["asked"])
                if asked.document == document:
                    found[row["key"]] = Exchange(asked, decode_answer(row["answer"]))
    return tuple(found.values())


def heard(folder: Path) -> Heard:
    """Return what the journal of a run holds so far.

    Raises:
        InputError: A journal cannot be read.
    """
    found, keys = Heard(), set()
    for line in _lines(folder):
        head, body, _ = line.partition(_BODY)
        if not body or not line.endswith(b"\n"):  # cut short by a crash, or being written
            continue
        try:
            row = json.loads(head + b"}")
            if row["key"] in keys:  # merged from a shard
                continue
            keys.add(row["key"])
            found.add(row.get("asked"))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _asked(row: dict[str, Any]) -> Asked:
    return Asked(row["target"], row["stage"], row["document"], Query(**row["query"]))


def _lines(folder: Path) -> Iterator[bytes]:
    for path in files_of(folder, JOURNAL):
        try:
            with path.open("rb") as lines:
                yield from lines
        except OSError as error:
            raise InputError(f"Cannot read the journal {path}: {error.strerror}.") from error
