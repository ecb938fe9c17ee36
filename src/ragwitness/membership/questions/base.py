"""What a question writer offers, whatever writes."""

from __future__ import annotations

import enum
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragwitness.crypto.hashing import text_digest
from ragwitness.errors import InputError
from ragwitness.kit.files import append_synced
from ragwitness.membership.reading.answers import FILTERED, Outcome, read_answer
from ragwitness.text.replies import yes_or_no
from ragwitness.text.words import core, split_words
from ragwitness.types import Answer, Document


@dataclass(frozen=True, slots=True)
class YesNoQuestion:
    """A yes/no question about a document.

    Attributes:
        text: The question.
        expected: Whether the document answers it with yes.
        hidden: A word that would give the answer away; the summary must not say it.
    """

    text: str
    expected: bool
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that a few words of the document answer.

    Attributes:
        text: The question.
        answer: What the document says.
        hidden: Words that the summary must not say.
    """

    text: str
    answer: str
    hidden: str = ""


class QuestionWriter(Protocol):
    """Writes questions about a document; fewer than asked for where it holds too little."""

    @property
    def name(self) -> str:
        """Identity, with the model's where one writes."""

    def summary(self, document: Document) -> str:
        """Return what the document is about in one short phrase, to retrieve it by."""

    def yes_no(self, document: Document, n: int, rng: random.Random) -> list[YesNoQuestion]:
        """Return at most ``n`` yes/no questions."""

    def open(self, document: Document, n: int, rng: random.Random) -> list[OpenQuestion]:
        """Return at most ``n`` open questions."""

    def unparsable(self, document: Document) -> int:
        """How many outputs of the writing model about this document could not be used."""


def query_text(summary: str, question: str, hidden: str = "", request: str = "") -> str:
    """Return summary, question and request in one line (IA: ``summary + " " + question``).

    Words of the summary that would answer the question are left out.
    """
    banned = {core(word.text).casefold() for word in split_words(hidden)} - {""}
    if banned:
        kept = [w.text for w in split_words(summary) if core(w.text).casefold() not in banned]
        summary = " ".join(kept)
    return " ".join(part for part in (summary.strip(), question.strip(), request.strip()) if part)


# What a model wrote, kept: the same question about the same document is paid for once.


class WrittenCache:
    """Outputs by content; in memory, and in a JSON Lines file where one is named.

    A line cut short by a crash is left out, and its output is written again.

    Args:
        path: Read now, appended to later; None keeps nothing beyond the process.

    Raises:
        InputError: The file cannot be read.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._texts: dict[str, str] = {}
        self._torn = False
        if self._path is not None and self._path.exists():
            self._load(self._path)

    @staticmethod
    def key(model: str, prompt: str, document: str) -> str:
        """Return the sha256 of model name, prompt and document, each with its length."""
        return text_digest((model, prompt, document))

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: str) -> str | None:
        """Return what was written, or None."""
        return self._texts.get(key)

    def put(self, key: str, text: str) -> None:
        """Keep an output.

        Raises:
            InputError: The file cannot be written.
        """
        self._texts[key] = text
        if self._path is None:
            return
        line = json.dumps({"key": key, "text": text}) + "\n"
        append_synced(self._path, ("\n" + line if self._torn else line).encode())
        self._torn = False

    def _load(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
                key, written = row["key"], row["text"]
            except (ValueError, TypeError, KeyError):
                continue
            if isinstance(key, str) and isinstance(written, str):
                self._texts[key] = written


# How a question was answered: one name per outcome, none of them a silent zero.


class AnswerOutcome(enum.StrEnum):
    """What one answer is."""

    YES = "yes"
    NO = "no"
    TEXT = "text"
    """Prose, where prose was asked for."""
    UNKNOWN = "unknown"
    """The target says that it does not know or finds nothing."""
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    """Neither yes, no nor not knowing, where one of them was asked for."""
    EMPTY = "empty"
    FAILED = "failed"
    """There is no answer, but an error."""

    @property
    def readable(self) -> bool:
        """Whether the answer says something about the document."""
        return self in (
            AnswerOutcome.YES,
            AnswerOutcome.NO,
            AnswerOutcome.TEXT,
            AnswerOutcome.UNKNOWN,
        )


def read_outcome(answer: Answer, *, yes_no: bool) -> AnswerOutcome:
    """Name an answer's outcome.

    Args:
        answer: What the target said.
        yes_no: Whether a yes/no question was asked; else any prose is an answer.
    """
    reading = read_answer(answer)
    if answer.error or reading.outcome is Outcome.FAILED:
        kinds = {answer.error: AnswerOutcome.FAILED, FILTERED: AnswerOutcome.REFUSED}
        return kinds.get(reading.reason, AnswerOutcome.EMPTY)
    said = yes_or_no(reading.text)
    if yes_no and said.start is not None and said.value is not None:
        return AnswerOutcome.YES if said.value else AnswerOutcome.NO
    if reading.outcome is Outcome.DECLINED:
        return AnswerOutcome.UNKNOWN
    if not yes_no:
        return AnswerOutcome.TEXT
    if said.value is None:
        return AnswerOutcome.UNREADABLE
    return AnswerOutcome.YES if said.value else AnswerOutcome.NO
