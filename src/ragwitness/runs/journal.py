"""Append-only journal of answers: nothing that was received is asked for again.

One JSON object per line, ``{"key": …, "answer": …}``. The key is a hash of the target's name
and the full query, so a changed prompt or setting is a different question. Errors are never
stored. A line cut short by a crash is ignored.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Self

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.types import Answer, Query, TokenLogprob

__all__ = ["Journal", "query_key"]

_DIGITS = 6  # of a log-probability; an answer read back equals the one first returned


def query_key(target: str, query: Query) -> str:
    """Return the content address of a question to a target."""
    content = json.dumps([target, asdict(query)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


class Journal:
    """Answers by content address, in one file.

    Only the places of the lines are held in memory. Use as a context manager.

    Args:
        path: File to append to; created with its folder.

    Raises:
        InputError: The file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise InputError(
                f"Cannot write the journal {path}: {error.strerror}.",
                "Choose another folder with --run.",
            ) from error
        self._places: dict[str, int] = {}
        self._lock()
        self._index()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Answer | None:
        """Return the stored answer, or None."""
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place)
        return _decode(json.loads(self._file.readline())["answer"])

    def put(self, key: str, answer: Answer) -> Answer:
        """Store an answer and return it as it will be read back."""
        stored = _encode(answer)
        line = json.dumps({"key": key, "answer": stored}, separators=(",", ":")) + "\n"
        self._file.seek(0, 2)
        place = self._file.tell()
        try:
            self._file.write(line.encode())
            self._file.flush()
        except OSError as error:
            raise RagwitnessError(
                f"Cannot write the journal {self.path}: {error.strerror}.",
                "Free some disk space; the same command resumes.",
            ) from error
        self._places[key] = place
        return _decode(stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _lock(self) -> None:
        """Keep a second process out: places of lines are known to one writer only."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise InputError(
                f"Another process is at work in {self.path.parent}.",
                "Wait for it, or choose another folder with --run.",
            ) from error

    def _index(self) -> None:
        self._file.seek(0)
        place = 0
        for line in self._file:
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                if "answer" in row:
                    self._places[row["key"]] = place
            place += len(line)
        if place and not line.endswith(b"\n"):
            self._file.write(b"\n")  # a line cut short must not swallow the next


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


def _decode(stored: dict[str, Any]) -> Answer:
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
