"""Earlier queries to a target: a system that remembers them would know the documents in them.

Every run folder keeps its questions (``answers.jsonl``, ``pilot.jsonl``), whatever the task, so
neighbouring runs, and those in the usual place, are read. For runs of this process without a
folder, the target is kept in memory with digests of the documents.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError

from ragwitness.core.errors import InputError
from ragwitness.core.files import lines_of, replace_file
from ragwitness.core.run_files import ANSWERS, BEFORE, PILOT, RESULT, RUNS
from ragwitness.core.types import Document, Target
from ragwitness.runner.response_store import files_of
from ragwitness.text.domain_shift import kind_words
from ragwitness.text.overlap import same_text

_log = logging.getLogger(__name__)

_WORDS = 8  # in a row: a question with many such rows of one document quotes it
_NEAR = 4  # in a row, where the question was about a document of the same id
_PART = 4  # a quotation is at least this part of the document or of the question
SENT = "sent to this target before, as the known-outside documents were not"
SENT_BEFORE = (
    "Not exact, as to what was sent to this target before: {} of {} documents in question and {} of"
    " {} known-outside ones ({}); a system that remembers what it is asked knows them by that.{}"
)
_NO_VERDICT = (
    " No verdict says in or out of those in question, unless --accept-unlike keeps it. Give"
    " --known-out that were all sent as well, or none of which was."
)
_HOST = re.compile(r"https?:?/+([^/?#]+)")
_HERE = re.compile(r"(?:localhost|\[::1\])(?=:|$)")
_unkept: WeakKeyDictionary[Any, set[bytes]] = WeakKeyDictionary()
_hosts: dict[str, set[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Disclosed:
    """Documents of an audit that earlier runs sent to its target, where the two kinds differ.

    Attributes:
        told: The warning of a result; empty where both kinds are alike.
        withheld: Ids of documents in question that a memory would tell from the known ones.
    """

    told: str = ""
    withheld: tuple[str, ...] = ()


def sent_unkept(target: Target, asked: Sequence[Document], known: Sequence[Document]) -> Disclosed:
    """Return the documents that this process sent in runs without a folder, and add these.

    Args:
        target: The system under audit.
        asked: Documents in question.
        known: Documents that calibrate.
    """
    earlier, every = set[bytes](), (*asked, *known)
    # A target that cannot be referred to weakly would have to be kept alive for this.
    with suppress(TypeError):
        if _HOST.match(target.name):
            earlier = _hosts.setdefault(_remembering(target.name), set())
        else:
            earlier = _unkept.setdefault(target, set())
    sent = frozenset(document.id for document in every if same_text(document) in earlier)
    earlier.update(map(same_text, every))
    return _compared({"this process": sent}, asked, known)


def _remembering(target: str) -> str:
    """Return the system that would remember: the host of an address, whatever its model or path."""
    host = _HOST.match(target)
    return _HERE.sub("127.0.0.1", host[1]) if host else target


def sent_before(
    run: Path, target: str, asked: Sequence[Document], known: Sequence[Document]
) -> Disclosed:
    """Return the documents that other runs sent before this run was finished, and keep them there.

    Args:
        run: Folder of the run.
        target: Name of the system under audit.
        asked: Documents in question.
        known: Documents that calibrate.

    Raises:
        InputError: The record in the folder is damaged.
    """
    # Later queries of other runs do not change a finished run.
    record = run / BEFORE
    if record.exists() and (run / RESULT).exists():
        try:
            return TypeAdapter(Disclosed).validate_json(record.read_bytes())
        except ValidationError:
            raise InputError(
                f"{record} is damaged: it says what was sent to the target before.",
                "Take a fresh --run folder.",
            ) from None
    result = _compared(_in_journals(run, target, (*asked, *known)), asked, known)
    run.mkdir(parents=True, exist_ok=True)
    replace_file(record, json.dumps(asdict(result)) + "\n")
    return result


def _compared(
    by_run: Mapping[str, frozenset[str]], asked: Sequence[Document], known: Sequence[Document]
) -> Disclosed:
    """Say where one kind was sent and the other was not."""
    # Both kinds whole, or none at all: a memory would know them alike.
    sent = frozenset[str]().union(*by_run.values())
    asked_ids, known_ids = ([d.id for d in row if d.id in sent] for row in (asked, known))
    if len(asked_ids) in (0, len(asked)) and len(known_ids) == len(known) * bool(asked_ids):
        return Disclosed()
    runs = ", ".join(name for name, ids in by_run.items() if ids)
    withheld = tuple(asked_ids) if len(known_ids) < len(known) else ()
    counts = (len(asked_ids), len(asked), len(known_ids), len(known))
    return Disclosed(SENT_BEFORE.format(*counts, runs, _NO_VERDICT * bool(withheld)), withheld)


def _in_journals(
    run: Path, target: str, documents: Sequence[Document]
) -> dict[str, frozenset[str]]:
    """Ids of documents by the folder of the run that sent a part of them to the target."""
    # 1. The journals of neighbouring runs, and of those in the usual place.
    folders = {path.resolve(): path for base in (run.parent, RUNS) for path in base.glob("*/")}
    folders.pop(run.resolve(), None)
    readable = (path for path in sorted(folders.values()) if os.access(path, os.R_OK | os.X_OK))
    files = {path: [*files_of(path, ANSWERS), *files_of(path, PILOT)] for path in readable}
    if not any(files.values()):
        return {}
    # 2. The documents that their questions quote.
    finder = _QuotationFinder(documents)
    by_run = {
        str(folder): frozenset(
            name for path in paths for row in _questions(path, target) for name in finder.ids(*row)
        )
        for folder, paths in files.items()
        if paths
    }
    _log.info("looked for earlier queries to %s in %d runs", target, len(by_run))
    return by_run


class _QuotationFinder:
    """Finds the documents that a question quotes, by rows of words that one of them alone holds."""

    def __init__(self, documents: Sequence[Document]) -> None:
        words = {document.id: kind_words(document.text) for document in documents}
        self._rows = {name: _rows(tokens, _WORDS) for name, tokens in words.items()}
        self._near = {name: _rows(tokens, _NEAR) for name, tokens in words.items()}
        # A row of several documents belongs to none.
        self._holder: dict[int, str | None] = {}
        for name, rows in self._rows.items():
            self._holder |= {row: None if row in self._holder else name for row in rows}

    def ids(self, document: str, prompt: str) -> set[str]:
        """Return the ids of the documents that a question about a document of this id quotes."""
        words = kind_words(prompt)
        rows = _rows(words, _WORDS)
        shared = Counter(name for row in rows if (name := self._holder.get(row)) is not None)
        # A phrase that many texts share is no quotation of one: a fourth of it or of the question.
        quoted = {
            name for name, n in shared.items() if _PART * n >= min(len(rows), len(self._rows[name]))
        }
        if not self._near.get(document, set()).isdisjoint(_rows(words, _NEAR)):
            quoted.add(document)
        return quoted


def _rows(words: Sequence[str], length: int) -> set[int]:
    """Hashes of ``length`` words in a row; of all of them where there are fewer."""
    return {*map(hash, zip(*(words[at:] for at in range(min(length, len(words)))), strict=False))}


def _questions(path: Path, target: str) -> Iterator[tuple[str, str]]:
    """Yield documents and questions to a target; a line cut short by a crash is skipped."""
    try:
        for line in lines_of(path):
            with suppress(ValueError, KeyError, TypeError):
                query = json.loads(line)["asked"]
                if _remembering(query["target"]) == _remembering(target):
                    yield query["document"], query["query"]["prompt"]
    except OSError as error:
        raise InputError(
            f"Cannot read {path}, the queries of an earlier run: {error}.",
            "Repair it, or move that folder away.",
        ) from error
