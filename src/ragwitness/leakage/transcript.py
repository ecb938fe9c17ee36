"""What was asked and what came back: every leak measure is computed from it, later and again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_rows, write_rows

_FORM = 'Each line is a JSON object with at least "prompt" and "output"; "contexts" is a list.'


@dataclass(frozen=True, slots=True)
class Transcript:
    """One attack prompt with its answer.

    Attributes:
        attack: Name of the attack.
        prompt: What was sent.
        output: What came back; empty where nothing did.
        contexts: Passages that the target retrieved; None where it does not show them.
        aim: What a targeted prompt asks for, e.g. a disease; None for an untargeted one.
        error: Why there is no answer; None for a real one.
    """

    attack: str
    prompt: str
    output: str
    contexts: tuple[str, ...] | None = None
    aim: str | None = None
    error: str | None = None


def write_transcripts(path: Path, transcripts: Iterable[Transcript]) -> None:
    """Write one JSON object per line.

    Raises:
        InputError: The file cannot be written.
    """
    write_rows(path, map(asdict, transcripts))


def read_transcripts(path: Path) -> list[Transcript]:
    """Read what :func:`write_transcripts` wrote.

    Raises:
        InputError: The file cannot be read, or a line is not a transcript.
    """
    rows = enumerate(read_rows(path, _FORM), 1)
    return [_transcript(row, f"Line {number} of {path}") for number, row in rows]


def _transcript(row: dict[str, Any], where: str) -> Transcript:
    row = {key: None if value != value else value for key, value in row.items()}  # NaN: none
    try:
        # Transcripts of others may lack all but prompt and output; then retrieval is not known.
        output, contexts, aim = row["output"], row.get("contexts"), row.get("aim")
        known = isinstance(output, str | int | float | None) and isinstance(aim, str | None)
        if not (known and isinstance(contexts, list | None)):
            raise TypeError(output)
        # An empty error is none: many note an answer so. No output is no answer.
        why = row.get("error") or ("no output" if output is None else None)
        return Transcript(
            attack=str(row.get("attack", "")),
            prompt=str(row["prompt"]),
            output="" if output is None else str(output),
            contexts=None if contexts is None else tuple(map(str, contexts)),
            aim=aim,
            error=None if why is None else str(why),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{where} is not a transcript.", _FORM) from error
