"""What was sent to a target before: a system that remembers would know those documents by it.

Every run folder keeps what it asked (``answers.jsonl``, ``pilot.jsonl``), whatever the task, so
runs that lie beside this one, or in the usual place, are read. Of runs in this process that keep no
folder, the target itself is remembered, and digests of the documents.
"""

from __future__ import annotations

import json
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

_WORDS = 8  # in a row: a question that holds many such rows of one document quotes it
_NEAR = 4  # in a row, where the question was about a document of the same id
_PART = 4
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
        told: What follows, for the warnings of a result; empty where both kinds are alike.
        withheld: Ids of documents in question that a memory would tell from the known ones.
    """

    told: str = ""
    withheld: tuple[str, ...] = ()


def sent_unkept(target: Target, asked: Sequence[Document], known: Sequence[Document]) -> Disclosed:
    """Return what this process sent to a target in runs without a folder, and add these documents.

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
    found = frozenset(one.id for one in every if same_text(one) in earlier)
    earlier.update(map(same_text, every))
    return _compared({"this process": found}, asked, known)


def _remembering(target: str) -> str:
    """What would remember: the host of an address, whatever model or path is named there."""
    host = _HOST.match(target)
    return _HERE.sub("127.0.0.1", host[1]) if host else target


def sent_before(
    run: Path, target: str, asked: Sequence[Document], known: Sequence[Document]
) -> Disclosed:
    """Return what other runs sent to a target before this one was finished, and keep it there.

    Args:
        run: Folder of the run.
        target: Name of the system under audit.
        asked: Documents in question.
        known: Documents that calibrate.

    Raises:
        InputError: What the folder keeps of it is damaged.
    """
    # A finished run is not changed by what others ask after it.
    kept = run / BEFORE
    if kept.exists() and (run / RESULT).exists():
        try:
            return TypeAdapter(Disclosed).validate_json(kept.read_bytes())
        except ValidationError:
            raise InputError(
                f"{kept} is damaged: it says what was sent to the target before.",
                "Take a fresh --run folder.",
            ) from None
    result = _compared(_in_journals(run, target, (*asked, *known)), asked, known)
    run.mkdir(parents=True, exist_ok=True)
    replace_file(kept, json.dumps(asdict(result)) + "\n")
    return result


def _compared(
    found: Mapping[str, frozenset[str]], asked: Sequence[Document], known: Sequence[Document]
) -> Disclosed:
    """Say where one kind was sent and the other was not."""
    sent = frozenset[str]().union(*found.values())
    mine, others = ([one.id for one in part if one.id in sent] for part in (asked, known))
    if len(mine) in (0, len(asked)) and len(others) == len(known) * bool(mine):
        return Disclosed()
    runs = ", ".join(name for name, ids in found.items() if ids)
    withheld = tuple(mine) if len(others) < len(known) else ()
    counts = (len(mine), len(asked), len(others), len(known))
    return Disclosed(SENT_BEFORE.format(*counts, runs, _NO_VERDICT * bool(withheld)), withheld)


def _in_journals(
    run: Path, target: str, documents: Sequence[Document]
) -> dict[str, frozenset[str]]:
    """Ids of documents by the folder of the run that sent a part of them to the target."""
    beside = {path.resolve(): path for base in (run.parent, RUNS) for path in base.glob("*/")}
    beside.pop(run.resolve(), None)
    open_to_us = (path for path in sorted(beside.values()) if os.access(path, os.R_OK | os.X_OK))
    files = {one: [*files_of(one, ANSWERS), *files_of(one, PILOT)] for one in open_to_us}
    if not any(files.values()):
        return {}
    finder = _Finder(documents)
    return {
        str(folder): frozenset(
            own for path in paths for row in _questions(path, target) for own in finder.quoted(*row)
        )
        for folder, paths in files.items()
        if paths
    }


class _Finder:
    """Finds which documents a question quotes, by words in a row that one of them alone holds."""

    def __init__(self, documents: Sequence[Document]) -> None:
        words = {one.id: kind_words(one.text) for one in documents}
        self._runs = {own: _runs(part, _WORDS) for own, part in words.items()}
        self._near = {own: _runs(part, _NEAR) for own, part in words.items()}
        self._owner: dict[int, str | None] = {}
        for own, runs in self._runs.items():
            self._owner |= {run: None if run in self._owner else own for run in runs}

    def quoted(self, document: str, prompt: str) -> set[str]:
        """Return the ids of those that a question about a document of this id quotes."""
        words = kind_words(prompt)
        runs = _runs(words, _WORDS)
        shared = Counter(own for run in runs if (own := self._owner.get(run)) is not None)
        # A phrase that many texts share is no quotation of one: a fourth of it or of the question.
        found = {
            own for own, n in shared.items() if _PART * n >= min(len(runs), len(self._runs[own]))
        }
        if not self._near.get(document, set()).isdisjoint(_runs(words, _NEAR)):
            found.add(document)
        return found


def _runs(words: Sequence[str], most: int) -> set[int]:
    """Hashes of so many words in a row; of all of them where there are fewer."""
    return {*map(hash, zip(*(words[at:] for at in range(min(most, len(words)))), strict=False))}


def _questions(path: Path, target: str) -> Iterator[tuple[str, str]]:
    """Documents and questions to a target in a journal; a line cut short by a crash is none."""
    try:
        for line in lines_of(path):
            with suppress(ValueError, KeyError, TypeError):
                asked = json.loads(line)["asked"]
                if _remembering(asked["target"]) == _remembering(target):
                    yield asked["document"], asked["query"]["prompt"]
    except OSError as error:
        raise InputError(
            f"Cannot read {path}, where an earlier run says what it sent: {error}.",
            "Repair it, or move that folder away.",
        ) from error
