"""Append-only store of responses: no answer that was received is requested again.

One JSON object per line, ``{"key": …, "asked": …, "answer": …}``. The key is a hash of the target's
name and the full query, so a changed prompt or setting is a different question. ``asked`` holds the
same in full, for readers of the evidence. ``start`` names the documents of the audit, and its
start. Both are missing in stores of earlier versions. Errors are never stored. A line that a crash
cut short is ignored.

In a sealed run (:mod:`~ragwitness.runner.hash_chain`) each row carries its ``link``. A failure then
has a row, too, with ``failed`` in place of ``answer``, and its question is asked again.
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
from ragwitness.core.run_files import ANSWERS, LINES
from ragwitness.core.types import Answer, Query, TokenLogprob
from ragwitness.runner.hash_chain import HashChain

_DIGITS = 6  # of a log-probability; an answer read back equals the one first returned


def query_key(target: str, query: Query) -> str:
    """Return the content address of a question to a target."""
    content = json.dumps([target, asdict(query)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A question as it is stored.

    Attributes:
        target: Name of the system that was asked.
        stage: Part of the run, such as ``"documents"``.
        document: Id of the document it is about.
        query: The query.
    """

    target: str
    stage: str
    document: str
    query: Query


class StoredAnswers(Closing):
    """The answers of a response store, read only.

    Memory holds only the offsets of lines. Use as a context manager.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = self._open(path)
        self._offsets: dict[str, int] = {}
        self._index()

    def __len__(self) -> int:
        return len(self._offsets)

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the stored row of an answer, or None."""
        offset = self._offsets.get(key)
        if offset is None:
            return None
        self._file.seek(offset)
        return dict(json.loads(self._file.readline()))

    def get(self, key: str) -> Answer | None:
        """Return the stored answer, or None."""
        row = self.row(key)
        return None if row is None else decode_answer(row["answer"])

    def latest(self, count: int) -> tuple[Answer, ...]:
        """Return the answers stored last, at most ``count``."""
        keys = list(self._offsets)[-count:]
        return tuple(answer for key in keys if (answer := self.get(key)) is not None)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the stored rows, the latest of each key."""
        for offset in self._offsets.values():
            self._file.seek(offset)
            yield json.loads(self._file.readline())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return open_lines(path)
        except OSError as error:
            raise InputError(f"Cannot read the response store {path}: {error.strerror}.") from error

    def _index(self) -> None:
        """Note the offset of every answer."""
        offset = 0
        for line in self._file:
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                if "answer" in row:
                    self._offsets[row["key"]] = offset
                self._on_stored(row)
            offset += len(line)

    def _on_stored(self, row: Mapping[str, Any]) -> None:
        """Called with every row of an earlier start."""


class ResponseStore(StoredAnswers):
    """Answers by content address, in one file that one process appends to.

    Args:
        path: File to append to; created with its folder.

    Raises:
        InputError: The file cannot be opened, or another process writes it.
    """

    def __init__(self, path: Path) -> None:
        # First: it makes the file, and keeps a second process out.
        self._lines = Appender(path, "response store")
        self._chain = HashChain.of_run(path.parent)
        super().__init__(path)

    def put(
        self, key: str, answer: Answer, asked: StoredQuery | None = None, start: str = ""
    ) -> Answer:
        """Store an answer and return it as it will be read back.

        Args:
            key: Of the question.
            answer: The response.
            asked: The question with its document; None leaves it out.
            start: From :func:`~ragwitness.runner.score_store.start_for`; an empty one is left out.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        stored = _encode(answer)
        question = {} if asked is None else {"asked": asdict(asked)}
        row = {"key": key, **question, **({"start": start} if start else {}), "answer": stored}
        self._offsets[key] = self._lines.append(row | self._link(row))
        return decode_answer(stored)

    def note(self, key: str, answer: Answer, asked: StoredQuery) -> None:
        """Record in a sealed run a response that is not stored: its question was asked, too.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        if self._chain is not None:
            failed = _encode(answer) | {"error": answer.error}
            row = {"key": key, "asked": asdict(asked), "failed": failed}
            self._lines.append(row | self._link(row))

    def _link(self, row: dict[str, Any]) -> dict[str, str]:
        return {} if self._chain is None else {"link": self._chain.add(row).head.hex()}

    def _on_stored(self, row: Mapping[str, Any]) -> None:
        if self._chain is not None:
            self._chain.resume(row["link"])

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
    } | ({"channels": answer.channels} if answer.channels else {})


def decode_answer(stored: dict[str, Any]) -> Answer:
    """Return an answer from its stored form.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is unknown or of another type.
        ValueError: An alternative is no pair.
    """
    tokens = stored.pop("tokens")
    contexts, channels = stored.pop("contexts"), stored.pop("channels", ())
    return Answer(
        **stored,
        channels=tuple((str(name), str(text)) for name, text in channels),
        contexts=None if contexts is None else tuple(contexts),
        tokens=None
        if tokens is None
        else tuple(
            TokenLogprob(token, logprob, tuple((text, value) for text, value in top))
            for token, logprob, top in tokens
        ),
    )


# Queries and answers of a run for its pages; nothing here writes.
#
# A store may be large, and a page shows one document. So lines of others are skipped before they
# are parsed. Answers of 0.2.0 have no question beside them; they are counted, and cannot be shown.


_BODY = b',"answer":'
# Within JSON text every quote is escaped, so no prompt can look like the end of a question.


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A question with its answer."""

    asked: StoredQuery
    answer: Answer


@dataclass(slots=True)
class AnswerCounts:
    """Counts over a run's response stores.

    Attributes:
        answers: All answers.
        unnamed: Answers that have no question beside them.
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
    """Return the file of that name in a run folder, if it is there."""
    return [folder / name] if at_hand(folder / name) else []


def pack_run(folder: Path) -> None:
    """Compress the line files of a finished run; a start that resumes unpacks them.

    Where the disk is full or fails, they stay unpacked.
    """
    for name in LINES:
        with suppress(RagwitnessError):
            pack(folder / name)


class ResponseIndex:
    """Finds the responses about one document in the stores of a run.

    Each call reads only new lines, so a run under way can be followed.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, Lock()
        self._forget()

    def _forget(self) -> None:
        self._counts, self._keys = AnswerCounts(), set[str]()
        self._read: dict[Path, int] = {}
        self._places: dict[str, dict[tuple[Path, int, int], None]] = {}

    def counts(self) -> AnswerCounts:
        """Return the counts so far.

        Raises:
            InputError: A store cannot be read.
        """
        with self._lock:
            self._read_new()
            return self._counts

    def responses(self, document: str) -> tuple[StoredResponse, ...]:
        """Return the responses about a document, in the order of arrival.

        Raises:
            InputError: A store cannot be read.
        """
        marker = f'"document":{json.dumps(document)}'.encode()
        responses: dict[str, StoredResponse] = {}
        with self._lock:
            self._read_new()
            for path, offset, length in self._places.get(document, ()):
                for line in _block(path, offset, length).split(b"\n"):
                    head, body, _ = line.partition(_BODY)
                    if body and marker in head:
                        with suppress(ValueError, KeyError, TypeError):  # of another form
                            row = json.loads(line)
                            query = row["asked"] | {"query": Query(**row["asked"]["query"])}
                            stored = StoredQuery(**query)
                            if stored.document == document:
                                answer = decode_answer(row["answer"])
                                responses[row["key"]] = StoredResponse(stored, answer)
        return tuple(responses.values())

    def _read_new(self) -> None:
        forms = [*filter(None, [at_hand(self._folder / ANSWERS)])]
        try:
            sizes = {form: form.stat().st_size for form in forms}
            # A store that is gone or shorter is another one.
            if any(sizes.get(form, -1) < read for form, read in self._read.items()):
                self._forget()
            for form in forms:
                start = self._read.setdefault(form, 0)
                if sizes[form] > start:
                    for offset, length, data in blocks(form, start):
                        if data.endswith(b"\n"):  # else cut short by a crash, or being written
                            self._read[form] = offset + length
                        self._note((form, offset, length), data[: data.rfind(b"\n") + 1])
        except OSError as error:
            name = error.filename or self._folder / ANSWERS
            raise InputError(f"Cannot read the response store {name}: {error.strerror}.") from error

    def _note(self, place: tuple[Path, int, int], data: bytes) -> None:
        for line in data.split(b"\n"):
            head, body, _ = line.partition(_BODY)
            if not body:
                continue
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(head + b"}")
                question = row.get("asked")
                if row["key"] not in self._keys:  # else in a part of the run as well, or seen
                    self._counts.add(question)
                    self._keys.add(row["key"])
                if question is not None:
                    self._places.setdefault(str(question["document"]), {})[place] = None


def _block(path: Path, place: int, length: int) -> bytes:
    """Return a block of lines: a member of a packed file, or ``length`` bytes of a plain one."""
    try:
        return next(blocks(path, place))[2][: None if path.suffix == ".gz" else length]
    except (OSError, StopIteration):  # packed or merged meanwhile: the next call finds it
        return b""


@lru_cache(maxsize=16)
def index_of(folder: Path) -> ResponseIndex:
    """Return the index of a run's response stores; the last ones are cached."""
    return ResponseIndex(folder)
