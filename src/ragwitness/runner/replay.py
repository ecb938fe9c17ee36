"""Recorded answers as a target: ``replay/FILE.jsonl`` or ``replay/RUN_FOLDER``.

A file holds rows of prompts and answers, or the output of a batch job that answered a file of
``membership.questions``. A question that was not recorded is an error with its number, never an
empty answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragwitness.core.errors import InputError, TargetError, TargetResponseError
from ragwitness.core.files import blocks
from ragwitness.core.quotes import quote
from ragwitness.core.run_files import ANSWERS, PILOT, RESULT
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.runner.response_store import StoredAnswers, files_of, query_key
from ragwitness.targets.objects import read_reply
from ragwitness.targets.wire import read_chat

if TYPE_CHECKING:
    from ragwitness.targets.transport import Address

_SAMPLE = 50  # answers that show what the recorded system can do
_SHOWN = 60  # characters of a prompt in an error

_log = logging.getLogger(__name__)


def question_key(query: Query) -> str:
    """Return the content address of a question, independent of the target.

    The number of alternatives is left out: an audit asks for as many as it saw, perhaps fewer.
    """
    return query_key("", replace(query, top_logprobs=0))


class _Recording(Protocol):
    settings: frozenset[str]

    def find(self, query: Query) -> Answer | None: ...

    def sample(self) -> Sequence[Answer]: ...

    def close(self) -> None: ...


class ReplayTarget:
    """Gives recorded answers.

    Args:
        name: Stable identity of the recording.
        recording: Where the answers are.

    Attributes:
        missing: Queries that had no recorded answer so far.
    """

    def __init__(self, name: str, recording: _Recording) -> None:
        self._name = name
        self._recording = recording
        self.missing = 0

    @property
    def name(self) -> str:
        """The recording with a hash of its content."""
        return self._name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Text; what else was recorded, :meth:`recorded_answers` shows."""
        return frozenset({Capability.TEXT})

    def recorded_answers(self) -> Sequence[Answer]:
        """Return some of the recorded answers."""
        return self._recording.sample()

    def refuse_other(self, setting: str) -> None:
        """Refuse an audit other than those whose questions were written down and answered.

        Args:
            setting: From :func:`~ragwitness.runner.score_store.questions_id`.

        Raises:
            InputError: Documents, method or settings are others than when they were written.
        """
        if self._recording.settings and setting not in self._recording.settings:
            raise InputError(
                f"{self._name} answers the questions of another audit: the documents, the method,"
                " a setting of it or the version of ragwitness differ.",
                "Give the options with which --questions-to wrote them, or write them anew.",
            )

    def find(self, query: Query) -> Answer | None:
        """Return the recorded answer; None where there is none."""
        return self._recording.find(query)

    async def ask(self, query: Query) -> Answer:
        """Return the recorded answer.

        Raises:
            TargetResponseError: There is none.
        """
        answer = self.find(query)
        if answer is not None:
            return answer
        self.missing += 1
        raise TargetResponseError(
            f"{self._name} holds no answer to this question (number {self.missing} without one): "
            f"{quote(query.prompt, longest=_SHOWN)!r}.",
            "Record it, or repeat the audit that was recorded with its own settings. For a batch"
            " job, write the missing ones: --questions-to FILE --answered ANSWERS.",
        )

    async def close(self) -> None:
        """Close the recording."""
        self._recording.close()


class _AnswerRows:
    """Answers by prompt, or by the key of a question, from a file of rows."""

    def __init__(self, path: Path) -> None:
        # By prompt alone: a recording from elsewhere knows nothing of our settings.
        self._answers: dict[str, Answer] = {}
        self.settings: frozenset[str] = frozenset()
        failed = 0
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if line.strip():
                failed += not self._add(line, f"{path}:{number}")
        if failed:
            _log.warning("%d requests in %s failed: they have no answer", failed, path)
        if not self._answers:
            raise InputError(f"{path} holds no recorded answer.", _ROWS)

    def find(self, query: Query) -> Answer | None:
        return self._answers.get(query.prompt) or self._answers.get(question_key(query))

    def sample(self) -> Sequence[Answer]:
        return tuple(self._answers.values())[:_SAMPLE]

    def close(self) -> None:
        """Nothing to release."""

    def _add(self, line: bytes, where: str) -> bool:
        """Take a row; False where it is a request that failed."""
        try:
            row = json.loads(line)
            # A row of a batch job has the key of its question; other rows have the prompt.
            if "custom_id" in row:
                if (row.get("response") or {}).get("status_code") != _ANSWERED:
                    return False
                setting, _, key = row["custom_id"].partition("-")
                self.settings |= {setting}
                answer = read_chat(row["response"]["body"])
            else:
                key = row.pop("prompt")
                answer = read_reply(row)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(f"{where} is no recorded answer.", _ROWS) from None
        except TargetError as error:
            raise InputError(f"{where}: {error.message}", _ROWS) from None
        if not isinstance(key, str):
            raise InputError(f"{where}: the prompt is no text.", _ROWS)
        # Two answers to one prompt: to take either would be to choose evidence.
        if self._answers.setdefault(key, answer) != answer:
            raise InputError(
                f"{where} answers a prompt that an earlier row answers otherwise.",
                "Keep one of the two.",
            )
        return True


_ANSWERED = 200  # the HTTP status of a request that was answered
_ROWS = 'Give JSON rows such as {"prompt": "…", "answer": "…"}, optionally contexts and logprobs.'


class _Run:
    """Answers of an earlier run, by content address."""

    def __init__(self, folder: Path, target: str) -> None:
        self._target = target
        self.settings: frozenset[str] = frozenset()
        self._answers = StoredAnswers(folder / ANSWERS)
        if not len(self._answers):
            self._answers.close()
            raise InputError(f"{folder} holds no answers.", "Give a folder of a run.")
        # The pilot's, by which the run chose its method.
        self._pilot = StoredAnswers(folder / (PILOT if files_of(folder, PILOT) else ANSWERS))

    def find(self, query: Query) -> Answer | None:
        key = query_key(self._target, query)
        return self._answers.get(key) or self._pilot.get(key)

    def sample(self) -> Sequence[Answer]:
        # The last ones are the target's; a shadow system is asked before it.
        return self._answers.latest(_SAMPLE)

    def close(self) -> None:
        self._answers.close()
        self._pilot.close()


async def open_replay(address: Address) -> ReplayTarget:
    """Open ``replay/FILE.jsonl``, or ``replay/RUN_FOLDER[?target=NAME]``.

    Raises:
        InputError: It is missing or holds no answers, a row cannot be used, or the name of a
            run's target is not known.
    """
    address.refuse_key()
    path, options = address.split(("target",))
    return await asyncio.to_thread(read_recording, Path(path), options.get("target"))


def read_recording(path: Path, target: str | None = None) -> ReplayTarget:
    """Return a file of answers, or a run folder, as a target.

    Args:
        path: Where it is.
        target: Name of the system that the run asked, where its result does not say.

    Raises:
        InputError: As for :func:`open_replay`.
    """
    if not path.name or not path.exists():
        raise InputError(
            f"There is no recording {str(path)!r}.", "Write replay/FILE.jsonl or replay/RUN_FOLDER."
        )
    try:
        if path.is_dir():
            # A hash of the content is in the name: a recording that grew is another system.
            digest = _digest(path / ANSWERS)
            recording: _Recording = _Run(path, target or _recorded_target(path))
        else:
            if target is not None:
                raise InputError("The option target serves run folders alone.", "Leave it out.")
            digest, recording = _digest(path), _AnswerRows(path)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}.") from None
    return ReplayTarget(f"replay/{path.name}#{digest}", recording)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()  # of the lines, packed or not: the name stays
    for _, _, data in blocks(path):
        digest.update(data)
    return digest.hexdigest()[:12]


def _recorded_target(folder: Path) -> str:
    """The name of the target that a run asked.

    Raises:
        InputError: The run was not finished, so its result does not say.
    """
    try:
        result = json.loads((folder / RESULT).read_bytes())
        # An audit's result has a summary, that of a collection is one.
        name = result.get("summary", result).get("target")
    except (OSError, ValueError, AttributeError):
        name = None
    if not isinstance(name, str):
        raise InputError(
            f"{folder} does not say which target it asked.",
            "Name it as doctor shows it: replay/FOLDER?target=NAME.",
        )
    return name
