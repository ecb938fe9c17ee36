"""Stores the scores of an audit's units, so that no document is probed again.

A unit is one document at one system. Its address is a hash of all inputs of its score: the
audit's configuration, the name of the system, and the document. So it is the same in every
process and on every machine, and a changed setting is a different unit.

``finished.jsonl`` grows as units end, in any order. ``scores.jsonl`` is written when all are done,
in the order of the audit, so its bytes do not depend on the order of work.
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

from ragwitness.core.bet import Bet
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
        document: The document that is probed.
        id: Content address.
    """

    stage: str
    document: Document
    id: str


def audit_identity(audit: Audit, proxy: str) -> str:
    """Return a hash of how an audit from the registry is made, and of how answers are read.

    Args:
        audit: From ``membership.method_registry.build_audit``; one made by hand may hold
            more than its configuration. Its class is identified by its ``stored_name``, else by
            its module and name.
        proxy: Name of the model that reads for it.
    """
    # A wrapper makes questions depend on the whole set of documents, which then has a digest.
    elsewhere, audit = getattr(audit, "elsewhere", None), getattr(audit, "inner", audit)
    config = getattr(audit, "config", None)
    settings = None
    if config is not None:
        settings = TypeAdapter(type(config)).dump_python(config, mode="json")
        for name in unset(config):
            del settings[name]
        settings |= dict(getattr(config, "removed", {}).values())
    inputs = [version("ragwitness") + READING, *_class_name(type(audit)), settings, proxy]
    return _hash(inputs if elsewhere is None else [*inputs, elsewhere.digest])


def _class_name(kind: type) -> tuple[str, str]:
    """Module and name of an audit's class in keys, independent of its present module."""
    # Classes of other packages go by their module. Ours keep the name under which they were first
    # stored: a moved file must not cost the user's queries again.
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
    """Return a short name of all questions of an audit, independent of the target.

    Args:
        identity: From :func:`audit_identity`.
        documents: All of them, in any order.
    """
    return _hash(sorted(unit_id(identity, "", document) for document in documents))[:8]


IN_TURN = "in turn "  # begins a start whose order was not random


def start_for(documents: Mapping[str, Sequence[Document]], *turns: object) -> str:
    """Name a start: a hash of its documents and of its order, a space, and a random part.

    Args:
        documents: All documents of the run, by stage.
        turns: Settings of an order that was not random; none stand for a random order.
    """
    rows = sorted(
        (stage, document.id, document.text)
        for stage, group in documents.items()
        for document in group
    )
    return f"{IN_TURN * bool(turns)}{_hash([rows, turns])} {secrets.token_hex(4)}"


def sets_of(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the sets of documents for which answers were taken; ``""`` is an unknown set."""
    return {start.rpartition(" ")[0] for outcome in outcomes for start in outcome.starts}


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


# The file of scores: finished units in the order in which they ended.


class ScoreStore(Closing):
    """Appends the finished units of an audit to a file, and finds those of earlier starts.

    Use as a context manager.

    Args:
        path: The file; created with its folder.
        identity: Of the audit.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._lines = Appender(path, "record of scores")
        self._identity = identity
        self._stored = read_scores(path)

    def get(self, target: str, document: Document) -> Outcome | None:
        """Return the outcome of an earlier start; None where there is none that lasts."""
        # A query that failed may succeed now, so its unit is probed again; all others are final.
        outcome = self._stored.get(unit_id(self._identity, target, document))
        if outcome is None or outcome.passing:
            return None
        return replace(outcome, document=document, sent=0)

    def put(self, target: str, outcome: Outcome) -> Outcome:
        """Keep an outcome and return it as it will be read back.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        unit = unit_id(self._identity, target, outcome.document)
        stored = {"unit": unit, **outcome_row(outcome), "starts": outcome.starts}
        self._lines.append(stored)
        # As read back, so that a resumed run and an unbroken one end in the same bytes.
        return decode_outcome(stored, outcome.document)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def write_scores(
    path: Path, units: Iterable[AuditUnit], outcomes: Mapping[str, Sequence[Outcome]]
) -> None:
    """Write all scores in the order of the audit.

    Args:
        path: The file; replaced whole.
        units: All units.
        outcomes: Outcomes by stage, in the order of the units.

    Raises:
        RagwitnessError: It cannot be written.
    """
    remaining = {stage: iter(group) for stage, group in outcomes.items()}
    lines = (_line(unit, next(remaining[unit.stage])) for unit in units)
    replace_file(path, lines)


def outcome_row(outcome: Outcome) -> dict[str, Any]:
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
        **({"bets": [_bet_row(bet) for bet in score.bets]} if score.bets else {}),
    }


def _bet_row(bet: Bet) -> list[Any]:
    """Return a bet as JSON; of one that was lost, its stake and length alone."""
    won = [list(bet.words), bet.question, bet.before, bet.gap] if bet.words else []
    return [bet.stake, bet.length, *won]


def _bet(row: Sequence[Any]) -> Bet:
    stake, length, *won = row
    if won and isinstance(won[0], int):  # its words are hidden
        return Bet(stake, length, ("",) * won[0])
    return Bet(stake, length, tuple(won[0]), *won[1:]) if won else Bet(stake, length)


def _line(unit: AuditUnit, outcome: Outcome) -> str:
    row = {"unit": unit.id, "stage": unit.stage, "document": unit.document.id}
    rest = {**row, **_encode(outcome.score), "queries": outcome.queries}
    return json.dumps(rest, separators=(",", ":")) + "\n"


def read_scores(path: Path) -> dict[str, Outcome]:
    """Return the outcomes of a file by unit, their documents without text and id.

    Raises:
        InputError: The file cannot be read.
    """
    outcomes: dict[str, Outcome] = {}
    try:
        for line in lines_of(path):
            with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                stored = json.loads(line)
                # Later rows replace earlier ones, but none that lasts by one that may pass.
                unit, outcome = stored["unit"], decode_outcome(stored)
                if not outcome.passing or unit not in outcomes or outcomes[unit].passing:
                    outcomes[unit] = outcome
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return outcomes


_UNNAMED = Document("", "")


def decode_outcome(stored: Mapping[str, Any], document: Document = _UNNAMED) -> Outcome:
    """Read a row of :func:`outcome_row`.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is of another type.
        ValueError: A word of evidence has another number of fields.
    """
    return Outcome(
        document,
        Score(
            stored["value"],
            tuple(stored["features"]),
            tuple(
                Evidence(word, before, Interval(low, high), math.nan if proxy is None else proxy)
                for word, before, low, high, proxy in stored["evidence"]
            ),
            stored["reason"],
            stored["details"],
            tuple(map(_bet, stored.get("bets", ()))),
        ),
        queries=stored["queries"],
        sent=stored["sent"],
        capped=stored["capped"],
        passing=stored["passing"],
        starts=tuple(stored.get("starts", [""])),
    )


# The open files of an audit: response store and score store.


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Open files of a run folder, for its workers. A context manager.

    Attributes:
        responses: Answers; None keeps none.
        scores: Finished units; None keeps none.
    """

    responses: ResponseStore | None = None
    scores: ScoreStore | None = None

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
        scores = ScoreStore(run / FINISHED, identity) if identity else None
        return cls(ResponseStore(run / ANSWERS), scores)

    def worker(
        self, system: Target, in_flight: int, limiter: Spender | None = None, start: str = ""
    ) -> Worker:
        """Return a worker at one system.

        Args:
            system: The target of its queries.
            in_flight: Documents at the same time.
            limiter: Lets queries pass; None where they cost nothing.
            start: From :func:`start_for`.
        """
        return Worker(
            system, self.responses, in_flight, limiter=limiter, scores=self.scores, start=start
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.responses, self.scores):
            if file is not None:
                file.close()


def finished_units(run: Path) -> int:
    """Return the number of finished units of a run: a measure of progress."""
    path = at_hand(run / FINISHED)
    return sum(data.count(b"\n") for _, _, data in blocks(path)) if path else 0
