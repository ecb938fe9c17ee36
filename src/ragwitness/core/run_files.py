"""Names of the files of a run folder, and which of them a run of a task keeps.

This is the only place of these names: replacing, showing and resuming all use it.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from ragwitness.core.stored_names import stored_text

RUNS = Path("ragwitness-runs")
"""Where runs are kept that are not given a folder."""

# Files that every run may keep.
RESULT = "result.json"
REPORT = "report.html"
ANSWERS = "answers.jsonl"
"""The journal: every answer that was received."""
SPENT = "spent.jsonl"
"""The ledger: what each query used."""
TARGET = "target.json"
"""The capabilities that were measured at the target."""
PILOT = "pilot.jsonl"
"""The journal of a pilot, whose answers calibrate nothing."""

# Runs that were sealed before their first query.
SEAL = "seal.json"
SEAL_NOTE = "seal.note"
SEAL_STAMP = "seal.tsr"
"""The commitments, their signature, and the reply of a timestamp authority."""
SEAL_SECRET = "seal-secret.json"  # noqa: S105  # a name
SEAL_TEXTS = "seal-texts.jsonl"
"""The openings of the commitments: their salt, and the documents."""

# Audits of documents.
FINISHED = "finished.jsonl"
SCORES = "scores.jsonl"
"""Finished units: as they ended, and all of them in the order of the audit."""

# Other tasks.
TRANSCRIPTS = "transcripts.jsonl"
"""A leak measurement's prompts and answers."""
MADE = "made.jsonl"
VOTES = "votes.jsonl"
SAFE = "safe.jsonl"
"""Synthetic texts: as they were made, the votes of private synthesis, and those that passed."""
EVALUATION = "evaluation.html"
EVALUATION_DATA = "evaluation.json"
"""An evaluation of many audits: its page, and its result where that is written beside."""
LOOK = "look.json"
"""Which look at a draw the run is; of an audit, its looks at a part of the documents."""
BEFORE = "before.json"
"""Of an audit of documents: which of them earlier runs sent to its target."""
COMMITMENT = "commitment.json"
TRUST = "trust.json"
"""The commitment of a canary plan, and the trust file of an attested window."""

LEDGER = "ragwitness-privacy.jsonl"
"""The spending of private synthesis, in the corpus's folder: never to be replaced."""

LINES = (ANSWERS, SPENT, FINISHED)
"""Files that grow while a run is under way, and are packed at its end."""
MARKS = (*LINES[1:], *(f"{name}.gz" for name in LINES), f".{ANSWERS}.lock")
"""Of these, one at least is in a run's folder and none beside a user's own result or answers."""

_REPLACED = (REPORT, EVALUATION, EVALUATION_DATA, TRANSCRIPTS, SCORES, MADE, SAFE)
KEPT = re.compile(
    r"(?:result|report|evaluation|transcripts|scores|made|safe)-[0-9]+\.(?:json|html)l?"
)
"""Names of finished results, and of files of others, that a run replaced."""

_SEALED = (SEAL, SEAL_NOTE, SEAL_STAMP, SEAL_SECRET, SEAL_TEXTS)
_ALWAYS = (RESULT, REPORT, ANSWERS, SPENT, TARGET, *_SEALED)
_OF = {
    "audit": (FINISHED, SCORES, LOOK, BEFORE),
    "evaluation": (EVALUATION, EVALUATION_DATA),
    "leak": (TRANSCRIPTS,),
    "synthesis": (MADE, VOTES, SAFE),
    "canary": (COMMITMENT, LOOK),
    "attest": (TRUST,),
}


def names_of(task: str | None = None) -> tuple[str, ...]:
    """Return the names of the files that a run of a task keeps; of any task without one."""
    more = [_OF.get(task, ())] if task is not None else list(_OF.values())
    kept_names = dict.fromkeys([*_ALWAYS, *(name for names in more for name in names)])
    return (*kept_names, *(f"{name}.gz" for name in kept_names if name in LINES))


# The folder of a run without --run: its name follows from the inputs.


def folder_of(base: Path, parts: tuple[object, ...], *, again: bool = True) -> Path:
    """Return the folder in which a run with these inputs is kept, or will be.

    An unfinished run with the same inputs is resumed, one that stopped at a cap too. After a
    finished one a new run begins, because the system may have changed; not so without ``again``.

    Args:
        base: Where runs are kept.
        parts: The inputs that decide what is asked, and whom.
        again: Whether a finished run is left alone.
    """
    digest = hashlib.sha256(json.dumps(parts, default=_stored).encode()).hexdigest()[:10]
    n = 1
    # A finished run is left alone: the system may have changed, and its answers are of their day.
    while again and _finished(base / f"{digest}-{n}" / RESULT):
        n += 1
    return base / f"{digest}-{n}"


def _stored(part: object) -> str:
    """A part of a folder's name that is no plain value."""
    return str(part) if isinstance(part, Path) else stored_text(part)


def _finished(path: Path) -> bool:
    """Whether a result was written whole, of a run that no cap stopped."""
    try:
        result = json.loads(path.read_bytes())
        # Audits of documents keep their spending under "summary", all other kinds at the top.
        spent = (result.get("summary") or result).get("spent") or {}
        return spent.get("stopped_by") is None
    except (OSError, ValueError, AttributeError):
        return False


def keep_finished(folder: Path) -> Path | None:
    """Keep a finished result under a free name, before one of another question takes its place."""
    if not _finished(folder / RESULT):
        return None
    return _kept(folder / RESULT, (folder / RESULT).read_bytes())


def keep_others(folder: Path) -> list[Path]:
    """Keep, under free names, what a run would replace in a folder where there was none."""
    try:
        is_ours = "ragwitness" in json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError, TypeError):
        is_ours = False
    if is_ours or any((folder / mark).exists() for mark in MARKS):
        return []
    files = [path for name in _REPLACED if (path := folder / name).is_file()]
    return [_kept(path, data) for path in files if not _copied(path, data := path.read_bytes())]


def keep_lines(path: Path, before: bytes) -> None:
    """Keep the earlier lines of a file, unless the new file has all of them."""
    still = set(before.splitlines()) <= set(path.read_bytes().splitlines())
    if not still and not _copied(path, before):
        _kept(path, before)


def _copied(path: Path, data: bytes) -> bool:
    copies = path.parent.glob(f"{path.stem}-*{path.suffix}")
    return any(copy.is_file() and copy.read_bytes() == data for copy in copies)


def _kept(path: Path, data: bytes) -> Path:
    n = 1
    while (copy := path.with_name(f"{path.stem}-{n}{path.suffix}")).exists():
        n += 1
    copy.write_bytes(data)
    return copy


def finding(path: Path) -> object:
    """Return what a result says, whenever it was found and whatever was asked anew for it."""
    result = json.loads(path.read_bytes())
    for section in (result, result.get("summary") or {}):
        for name in ("started", "seconds", "warnings", "spent"):
            section.pop(name, None)
    return result
