"""Append-only journal of answers: nothing that was received is asked for again.

One JSON object per line, ``{"key": …, "asked": …, "answer": …}``. The key is a hash of the
target's name and the full query, so a changed prompt or setting is a different question;
``asked`` says the same in full, for whoever reads the evidence, and ``start`` for which documents
an audit asked, and at which start; both are missing in journals of earlier versions. Errors are
never stored. A line cut short by a crash is ignored.

In a sealed run (:mod:`~ragwitness.runner.hash_chain`) each row carries its ``link``, and what
failed has a row, too, with ``failed`` in place of ``answer``: it is asked again all the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.files import Appender, Closing, at_hand, blocks, open_lines, pack
from ragwitness.core.run_files import ANSWERS, LINES, SHARDS
from ragwitness.core.types import Answer, Query, TokenLogprob
from ragwitness.runner.hash_chain import AnswerChain

_DIGITS = 6  # of a log-probability; an answer read back equals the one first returned


def query_key(target: str, query: Query) -> str:
    """Return the content address of a question to a target."""
    content = json.dumps([target, asdict(query)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A question as a journal keeps it.

    Attributes:
        target: Name of the system it was put to.
        stage: Part of the run, such as ``"documents"``.
        document: Id of the document it is about.
        query: What was sent.
    """

    target: str
    stage: str
    document: str
    query: Query


class StoredAnswers(Closing):
    """The answers of a journal, to be read only.

    Only the places of the lines are held in memory. Use as a context manager.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = self._open(path)
        self._places: dict[str, int] = {}
        self._index()

    def __len__(self) -> int:
        return len(self._places)

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the row of a stored answer as it stands in the file, or None."""
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place)
        return dict(json.loads(self._file.readline()))

    def get(self, key: str) -> Answer | None:
        """Return the stored answer, or None."""
        row = self.row(key)
        return None if row is None else decode_answer(row["answer"])

    def latest(self, count: int) -> tuple[Answer, ...]:
        """Return the answers stored last, at most ``count``."""
        keys = list(self._places)[-count:]
        return tuple(answer for key in keys if (answer := self.get(key)) is not None)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every row as it stands in the file, the latest of each key."""
        for place in self._places.values():
            self._file.seek(place)
            yield json.loads(self._file.readline())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return open_lines(path)
        except OSError as error:
            raise InputError(f"Cannot read the journal {path}: {error.strerror}.") from error

    def _index(self) -> None:
        """Note the place of every answer."""
        place = 0
        for line in self._file:
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                if "answer" in row:
                    self._places[row["key"]] = place
                self._seen(row)
            place += len(line)

    def _seen(self, row: Mapping[str, Any]) -> None:
        """Take note of a row that was there before."""


class ResponseStore(StoredAnswers):
    """Answers by content address, in one file that one process appends to.

    Args:
        path: File to append to; created with its folder.

    Raises:
        InputError: The file cannot be opened, or another process writes it.
    """

    def __init__(self, path: Path) -> None:
        # First: it makes the file, and keeps a second process out.
        self._lines = Appender(path, "journal")
        self._chain = AnswerChain.of_run(path.parent)
        super().__init__(path)

    def put(
        self, key: str, answer: Answer, asked: AskedQuery | None = None, start: str = ""
    ) -> Answer:
        """Store an answer and return it as it will be read back.

        Args:
            key: Of the question.
            answer: What came back.
            asked: The question, and for which document; None leaves it out.
            start: From :func:`~ragwitness.runner.score_store.start_for`; an empty one is left out.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        stored = _encode(answer)
        question = {} if asked is None else {"asked": asdict(asked)}
        row = {"key": key, **question, **({"start": start} if start else {}), "answer": stored}
        self._places[key] = self._lines.append(row | self._link(row))
        return decode_answer(stored)

    def note(self, key: str, answer: Answer, asked: AskedQuery) -> None:
        """Keep in a sealed run what came back and is not worth keeping: it was asked all the same.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        if self._chain is not None:
            failed = _encode(answer) | {"error": answer.error}
            row = {"key": key, "asked": asdict(asked), "failed": failed}
            self._lines.append(row | self._link(row))

    def _link(self, row: dict[str, Any]) -> dict[str, str]:
        return {} if self._chain is None else {"link": self._chain.add(row).head.hex()}

    def _seen(self, row: Mapping[str, Any]) -> None:
        if self._chain is not None:
            self._chain.goes_on(row["link"])

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._lines.close()


def _encode(answer: Answer) -> dict[str, Any]:
    tokens = None
    if answer.tokens is not None:
        tokens = [
            [t.token, round(t.logprob, _DIGITS), [[a, round(p, _DIGITS)] for a, p in t.top]]
            for t in answer.tokens
        ]
    return {
        "text": answer.text,
        "tokens": tokens,
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "contexts": answer.contexts,
    }


def decode_answer(stored: dict[str, Any]) -> Answer:
    """Return an answer as it stands in a journal.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is unknown or of another type.
        ValueError: An alternative is no pair.
    """
    tokens = stored.pop("tokens")
    contexts = stored.pop("contexts")
    return Answer(
        **stored,
        contexts=None if contexts is None else tuple(contexts),
        tokens=None
        if tokens is None
        else tuple(
            TokenLogprob(token, logprob, tuple((text, value) for text, value in top))
            for token, logprob, top in tokens
        ),
    )


# What a run asked and was told, read from its journal for people; nothing here writes.
#
# A journal may be large, and one document is looked at at a time: lines that cannot concern it are
# passed over before they are parsed. Answers kept by earlier versions have no question beside them;
# they are counted, and cannot be shown.


_BODY = b',"answer":'
# Within JSON text every quote is escaped, so no prompt can look like the end of a question.


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer."""

    asked: AskedQuery
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
    """Return the files of that name in a run folder, and in its parts of earlier versions."""
    own = folder / name
    form = at_hand(own)
    parts = (part / name for part in sorted((folder / SHARDS).glob("*-of-*")))
    return [*([own] if form and form.is_file() else []), *filter(at_hand, parts)]


def pack_run(folder: Path) -> None:
    """Compress what a finished run appended to; whoever resumes unpacks it.

    A disk that is full or fails leaves them as they are.
    """
    for name in LINES:
        for path in files_of(folder, name):
            with suppress(RagwitnessError):
                pack(path)


class ResponseIndex:
    """Where the journals of a run speak of which document.

    Only what was added since the last look is read, so a run under way can be followed.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, Lock()
        self._forget()

    def _forget(self) -> None:
        self._heard, self._keys = Heard(), set[str]()
        self._read: dict[Path, int] = {}
        self._places: dict[str, dict[tuple[Path, int, int], None]] = {}

    def heard(self) -> Heard:
        """Return what the journals hold so far.

        Raises:
            InputError: A journal cannot be read.
        """
        with self._lock:
            self._look()
            return self._heard

    def exchanges(self, document: str) -> tuple[Exchange, ...]:
        """Return what was asked about a document, in the order of arrival.

        Raises:
            InputError: A journal cannot be read.
        """
        wanted = f'"document":{json.dumps(document)}'.encode()
        found: dict[str, Exchange] = {}
        with self._lock:
            self._look()
            for path, place, length in self._places.get(document, ()):
                for line in _block(path, place, length).split(b"\n"):
                    head, body, _ = line.partition(_BODY)
                    if body and wanted in head:
                        with suppress(ValueError, KeyError, TypeError):  # of another form
                            row = json.loads(line)
                            asked = _asked(row["asked"])
                            if asked.document == document:
                                found[row["key"]] = Exchange(asked, decode_answer(row["answer"]))
        return tuple(found.values())

    def _look(self) -> None:
        """Read what is new."""
        forms = [form for path in files_of(self._folder, ANSWERS) if (form := at_hand(path))]
        try:
            sizes = {form: form.stat().st_size for form in forms}
            # A journal that is gone or shorter is another one.
            if any(sizes.get(form, -1) < read for form, read in self._read.items()):
                self._forget()
            for form in forms:
                start = self._read.setdefault(form, 0)
                if sizes[form] > start:
                    for place, length, data in blocks(form, start):
                        if data.endswith(b"\n"):  # else cut short by a crash, or being written
                            self._read[form] = place + length
                        self._note((form, place, length), data[: data.rfind(b"\n") + 1])
        except OSError as error:
            name = error.filename or self._folder / ANSWERS
            raise InputError(f"Cannot read the journal {name}: {error.strerror}.") from error

    def _note(self, place: tuple[Path, int, int], data: bytes) -> None:
        for line in data.split(b"\n"):
            head, body, _ = line.partition(_BODY)
            if not body:
                continue
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(head + b"}")
                asked = row.get("asked")
                if row["key"] not in self._keys:  # else in a part of the run as well, or seen
                    self._heard.add(asked)
                    self._keys.add(row["key"])
                if asked is not None:
                    self._places.setdefault(str(asked["document"]), {})[place] = None


def _block(path: Path, place: int, length: int) -> bytes:
    """Return lines that were noted: of a packed file a member, of a plain one so many bytes."""
    try:
        return next(blocks(path, place))[2][: None if path.suffix == ".gz" else length]
    except (OSError, StopIteration):  # packed or merged meanwhile: the next look finds it
        return b""


def _asked(of: Mapping[str, Any]) -> AskedQuery:
    return AskedQuery(of["target"], of["stage"], of["document"], Query(**of["query"]))


@lru_cache(maxsize=16)
def index_of(folder: Path) -> ResponseIndex:
    """Return the index of a run's journals; those looked at last are kept."""
    return ResponseIndex(folder)
