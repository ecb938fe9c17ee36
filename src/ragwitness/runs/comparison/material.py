"""The corpus of a comparison, divided; and the questions put to every variant."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError
from ragwitness.runs.comparison.plan import Material, Question
from ragwitness.text.secrets import Secret
from ragwitness.types import Document

__all__ = ["default_held_out", "divide", "own_questions", "read_questions"]

_FORM = 'Each line is a JSON object such as {"question": "…", "answer": "…" or ["…", "…"]}.'
_MOST_HELD = 100
_SHARE_HELD = 10  # one record in so many


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read questions with their answers; they must not be about private records.

    Raises:
        InputError: The file cannot be read, holds none, or a line is no question.
    """
    found = []
    for where, row in _rows(path):
        question = None if row is None else _question(row)
        if question is None:
            raise InputError(f"{where} is no question with an answer.", _FORM)
        found.append(question)
    if not found:
        raise InputError(f"{path} holds no question.", _FORM)
    return tuple(found)


def own_questions(source: str) -> dict[str, Question]:
    """Return the questions in the fields of a corpus itself, by the id of their record.

    Rows without both fields have none, and so has anything but a file of JSON lines.
    """
    path = Path(source)
    if len(source) > 1000 or not path.is_file():
        return {}
    try:
        rows = list(_rows(path))
    except InputError:
        return {}
    named = ((_name(row, where), _question(row)) for where, row in rows if row is not None)
    return {name: question for name, question in named if question is not None}


def default_held_out(records: int) -> int:
    """Return how many records are held out where nobody says: a tenth, at most 100."""
    return min(_MOST_HELD, max(1, records // _SHARE_HELD))


def divide(
    records: Sequence[Document],
    held_out: int,
    seed: int,
    *,
    own: Mapping[str, Question] | None = None,
    questions: Sequence[Question] = (),
    background: Sequence[Document] = (),
    secrets: Sequence[Secret] = (),
    decoys: Sequence[Secret] = (),
) -> Material:
    """Hold records out at random: in no index, they are the background and give the questions.

    Args:
        records: The corpus.
        held_out: How many; of those with a question where ``own`` is given.
        seed: Of the draw.
        own: Questions by record; None asks ``questions`` alone.
        questions: From elsewhere.
        background: From elsewhere; replaces the records held out.
        secrets: Of all records.
        decoys: Put nowhere.

    Raises:
        InputError: Too few records.
    """
    able = [one for one in records if own is None or one.id in own]
    if not 0 <= held_out < len(records) or held_out > len(able):
        raise InputError(
            f"{held_out} of {len(records)} records cannot be held out"
            + ("." if own is None else f"; {len(able)} have a question and an answer."),
            "Correct --held-out.",
        )
    held = {one.id for one in random.Random(seed).sample(able, held_out)}
    mine = [(own or {})[one.id] for one in records if own is not None and one.id in held]
    return Material(
        records=tuple(one for one in records if one.id not in held),
        background=tuple(background) or tuple(one for one in records if one.id in held),
        questions=(*mine, *questions),
        secrets=tuple(one for one in secrets if one.record not in held),
        decoys=tuple(decoys),
        held=frozenset(held),
    )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Every line that is not blank with its place; None where it is no object."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is binary or not UTF-8"
        raise InputError(f"Cannot read {path}: {why}.", _FORM) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        yield f"{path}:{number}", row if isinstance(row, dict) else None


def _name(row: Mapping[str, Any], where: str) -> str:
    """The id of a row as the corpus has it."""
    given = row.get("id")
    return f"line-{where.rpartition(':')[2]}" if given in (None, "") else str(given)


def _question(row: Mapping[str, Any]) -> Question | None:
    text, given = row.get("question"), row.get("answer")
    answers = [given] if isinstance(given, str) else given
    if not isinstance(text, str) or not isinstance(answers, list):
        return None
    told = tuple(one.strip() for one in answers if isinstance(one, str) and one.strip())
    usable = bool(text.strip()) and bool(told) and len(told) == len(answers)
    if not usable or any("\0" in one for one in (text, *told)):
        return None
    return Question(text.strip(), told)
