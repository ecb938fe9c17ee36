"""Units of an audit and their scores: what was found is kept, so that nothing is probed again.

A unit is one document at one system. Its address is a hash of everything that its score follows
from: how the audit is made, the name of the system, and the document. So it is the same in every
process and on every machine, and a changed setting is a different unit.

``finished.jsonl`` is appended to as units end, in whatever order that is. ``scores.jsonl`` is
written once all are there, in the order of the audit: the same bytes whoever did the work.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from ragwitness.core.errors import InputError
from ragwitness.core.files import Appender, Closing, at_hand, blocks, lines_of, replace_file
from ragwitness.core.run_files import ANSWERS, FINISHED
from ragwitness.core.stored_names import stored_name, unset
from ragwitness.core.types import READING, Audit, Document, Evidence, Interval, Score, Target
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Spender, Worker


@dataclass(frozen=True, slots=True)
class AuditUnit:
    """One document at one system.

    Attributes:
        stage: Part of the audit.
        document: What is probed.
        id: Content address.
    """

    stage: str
    document: Document
    id: str


def audit_identity(audit: Audit, proxy: str) -> str:
    """Return a hash of how an audit from the registry is made, and of how answers are read.

    Args:
        audit: From ``membership.methods.method_registry.build_audit``; one made by hand may hold
            more than its configuration says. Its class is known by its ``stored_name``,
            else by its module and name.
        proxy: Name of the model that reads for it.
    """
    # Its questions may depend on the set of which a document is one; the method is named as it is.
    elsewhere, audit = getattr(audit, "elsewhere", None), getattr(audit, "inner", audit)
    config = getattr(audit, "config", None)
    settings = None
    if config is not None:
        settings = TypeAdapter(type(config)).dump_python(config, mode="json")
        for name in unset(config):
            del settings[name]
        settings |= dict(getattr(config, "removed", {}).values())
    made = [version("ragwitness") + READING, *_named(type(audit)), settings, proxy]
    return _hash(made if elsewhere is None else [*made, elsewhere.digest])


def _named(kind: type) -> tuple[str, str]:
    """Module and name of an audit's class as keys hold them, wherever it lives today."""
    # Another package's class goes by its module. Ours keep the name under which they were first
    # stored, so that moving a file never makes anybody pay again.
    if "stored_name" not in vars(kind):
        return kind.__module__, kind.__qualname__
    module, _, name = stored_name(kind).rpartition(".")
    return module, name


def unit_id(identity: str, target: str, document: Document) -> str:
    """Return the content address of a unit.

    Args:
        identity: From :func:`audit_identity`.
        target: Name of the system that is asked.
        document: Its id counts: several audits draw their questions by it.
    """
    return _hash([identity, target, document.id, document.text])


def questions_id(identity: str, documents: Iterable[Document]) -> str:
    """Return a short name of all that an audit asks, whoever is asked.

    Args:
        identity: From :func:`audit_identity`.
        documents: All of them, in any order.
    """
    return _hash(sorted(unit_id(identity, "", document) for document in documents))[:8]


IN_TURN = "in turn "  # begins a start whose order was not random


def start_for(documents: Mapping[str, Sequence[Document]], *turns: object) -> str:
    """Name a start: by all its run asks about, in ``turns`` or at random, a space, and its own."""
    rows = sorted((stage, one.id, one.text) for stage, part in documents.items() for one in part)
    return f"{IN_TURN * bool(turns)}{_hash([rows, turns])} {secrets.token_hex(4)}"


def sets_of(outcomes: Iterable[Outcome]) -> set[str]:
    """Return for which sets of documents answers were taken; ``""`` stands for unknown ones."""
    return {start.rpartition(" ")[0] for one in outcomes for start in one.starts}


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


# The file of scores: finished units in the order in which they ended.


@dataclass(frozen=True, slots=True)
class StoredScore:
    """A finished unit as it stands in a file, with the fields of an outcome."""

    score: Score
    queries: int
    sent: int
    capped: bool
    passing: bool
    starts: tuple[str, ...] = ()

    def of(self, document: Document) -> Outcome:
        """Return it as the outcome of its document."""
        rest = (self.queries, self.sent, self.capped, self.passing, self.starts)
        return Outcome(document, self.score, *rest)


class Scores(Closing):
    """Appends finished units to a file and knows those of earlier starts.

    Use as a context manager.

    Args:
        path: The file; created with its folder.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path) -> None:
        self._lines = Appender(path, "record of scores")
        self._kept = read_scores(path)

    def get(self, unit: str, document: Document) -> Outcome | None:
        """Return what an earlier start found; None where it found nothing that lasts."""
        # What failed and may not fail again is asked once more; everything else is final.
        row = self._kept.get(unit)
        if row is None or row.passing:
            return None
        return replace(row.of(document), sent=0)

    def put(self, unit: str, outcome: Outcome) -> Outcome:
        """Keep an outcome and return it as it will be read back.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        stored = {"unit": unit, **outcome_row(outcome), "starts": outcome.starts}
        self._lines.append(stored)
        # As read back, so that a resumed run and an unbroken one end in the same bytes.
        return stored_score(stored).of(outcome.document)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


@dataclass(frozen=True, slots=True)
class ScoresAt:
    """The scores of one audit at one system: the part that a worker uses.

    Attributes:
        scores: Where units are kept.
        identity: Of the audit.
        target: Name of the system.
    """

    scores: Scores
    identity: str
    target: str

    def get(self, document: Document) -> Outcome | None:
        """Return what is kept of a document."""
        return self.scores.get(unit_id(self.identity, self.target, document), document)

    def put(self, outcome: Outcome) -> Outcome:
        """Keep an outcome."""
        return self.scores.put(unit_id(self.identity, self.target, outcome.document), outcome)


def write_scores(
    path: Path, units: Iterable[AuditUnit], found: Mapping[str, Sequence[Outcome]]
) -> None:
    """Write all scores in the order of the audit.

    Args:
        path: The file; replaced whole.
        units: All units.
        found: Outcomes by stage, in the order of the units.

    Raises:
        RagwitnessError: It cannot be written.
    """
    outcomes = {stage: iter(part) for stage, part in found.items()}
    lines = (_line(unit, next(outcomes[unit.stage])) for unit in units)
    replace_file(path, lines)


def outcome_row(outcome: Outcome | StoredScore) -> dict[str, Any]:
    """Return an outcome as JSON, without the document's text."""
    return {
        **_encode(outcome.score),
        "queries": outcome.queries,
        "sent": outcome.sent,
        "capped": outcome.capped,
        "passing": outcome.passing,
    }


def _encode(score: Score) -> dict[str, Any]:
    """Return a score as JSON; floats keep every digit."""
    return {
        "value": None if score.value is None else float(score.value),
        "features": [float(value) for value in score.features],
        "evidence": [
            [
                e.word,
                e.before,
                float(e.probability.low),
                float(e.probability.high),
                None if math.isnan(e.baseline) else float(e.baseline),
            ]
            for e in score.evidence
        ],
        "reason": score.reason,
        "details": {key: float(value) for key, value in score.details.items()},
    }


def _line(unit: AuditUnit, outcome: Outcome) -> str:
    row = {"unit": unit.id, "stage": unit.stage, "document": unit.document.id}
    rest = {**row, **_encode(outcome.score), "queries": outcome.queries}
    return json.dumps(rest, separators=(",", ":")) + "\n"


def read_scores(path: Path) -> dict[str, StoredScore]:
    """Return by unit what a file holds; a lasting score replaces one that may change.

    Raises:
        InputError: The file cannot be read.
    """
    rows: dict[str, StoredScore] = {}
    try:
        for line in lines_of(path):
            with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                stored = json.loads(line)
                # Later rows replace earlier ones, but none that lasts by one that may pass.
                unit, row = stored["unit"], stored_score(stored)
                if not row.passing or unit not in rows or rows[unit].passing:
                    rows[unit] = row
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return rows


def stored_score(stored: Mapping[str, Any]) -> StoredScore:
    """Return what :func:`outcome_row` wrote.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is of another type.
        ValueError: A word of evidence has another number of fields.
    """
    return StoredScore(
        Score(
            stored["value"],
            tuple(stored["features"]),
            tuple(
                Evidence(word, before, Interval(low, high), math.nan if proxy is None else proxy)
                for word, before, low, high, proxy in stored["evidence"]
            ),
            stored["reason"],
            stored["details"],
        ),
        queries=stored["queries"],
        sent=stored["sent"],
        capped=stored["capped"],
        passing=stored["passing"],
        starts=tuple(stored.get("starts", [""])),
    )


# What an audit keeps in a folder while it works: journal and scores.


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Open files of a folder; workers made here keep what they find. A context manager.

    Attributes:
        journal: Answers; None keeps none.
        scores: Finished units; None keeps none.
        identity: Of the audit that is at work.
    """

    journal: ResponseStore | None = None
    scores: Scores | None = None
    identity: str | None = None

    @classmethod
    def of_run(cls, run: Path | None, identity: str | None) -> Self:
        """Open those of a run.

        Args:
            run: Folder; None keeps nothing.
            identity: Of the audit; None keeps answers alone.

        Raises:
            InputError: A file cannot be used, or another process is at work there.
        """
        if run is None:
            return cls()
        journal = ResponseStore(run / ANSWERS)
        return cls(journal, Scores(run / FINISHED) if identity else None, identity)

    def worker(
        self, system: Target, in_flight: int, limiter: Spender | None = None, start: str = ""
    ) -> Worker:
        """Return a worker at one system.

        Args:
            system: Whom it asks.
            in_flight: Documents at the same time.
            limiter: Lets queries pass; None where they cost nothing.
            start: From :func:`start_for`.
        """
        kept = None
        if self.scores and self.identity:
            kept = ScoresAt(self.scores, self.identity, system.name)
        return Worker(system, self.journal, in_flight, limiter=limiter, scores=kept, start=start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.journal, self.scores):
            if file is not None:
                file.close()


def finished_units(run: Path) -> int:
    """Return how many rows of scores a run holds: a measure of progress."""
    there = at_hand(run / FINISHED)
    return sum(data.count(b"\n") for _, _, data in blocks(there)) if there else 0
