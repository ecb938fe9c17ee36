"""What was asked and what came back: every leak measure is computed from it, later and again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.kit.files import write_rows

_FORM = 'Each line is a JSON object with at least "prompt" and "output".'


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
    found = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                found.append(_transcript(line, path, number))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"Cannot read {path}: {reason}.", _FORM) from error
    return found


def _transcript(line: str, path: Path, number: int) -> Transcript:
    try:
        row = json.loads(line)
        # Transcripts of others may lack all but prompt and output; then retrieval is not known.
        contexts = row.get("contexts")
        return Transcript(
            attack=str(row.get("attack", "")),
            prompt=str(row["prompt"]),
            output=str(row["output"]),
            contexts=None if contexts is None else tuple(map(str, contexts)),
            aim=row.get("aim"),
            error=row.get("error"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"Line {number} of {path} is not a transcript.", _FORM) from error
