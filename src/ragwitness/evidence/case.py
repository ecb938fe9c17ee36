"""A pack under verification: what its task's checks are handed, and how results are compared."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.attest.verdict import VerifierStep, refuse
from ragwitness.core.files import parse_json
from ragwitness.core.run_files import SEAL
from ragwitness.core.types import Answer, Query
from ragwitness.crypto.keys import PublicKey
from ragwitness.evidence.pack import (
    Pack,
)
from ragwitness.runner.budget import Budget, Use
from ragwitness.runner.response_store import StoredQuery, decode_answer, query_key

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

CLOSE = 1e-6
"""Relative difference of two figures that are called the same: processors round differently."""


@dataclass(frozen=True, slots=True)
class PackTask:
    """The part of a pack that depends on the kind of run.

    Attributes:
        rows_of: Returns what a finished run found row by row, besides its result.
        steps: Checks of the findings.
        whole: The conclusion of a pack without anything hidden, in words.
        settings: Names of all settings of its seal.
        looks: Number of looks that it seals; None where its settings say it.
        besides: Stages and documents of questions that are about nothing that is found.
        opened: Called with the home of a run and the file of a pack that opens its secret.
    """

    rows_of: Callable[[SealedRun], list[dict[str, Any]]]
    steps: Sequence[VerifierStep[PackCase]]
    whole: str
    settings: frozenset[str]
    looks: int | None = 1
    besides: frozenset[tuple[str, str]] = frozenset()
    opened: Callable[[Path, Path], None] | None = None


@dataclass(frozen=True, slots=True)
class PackKnown:
    """The verifier's own knowledge.

    Attributes:
        key: Of whoever ran the audit; None where nobody told.
        seal: SHA-256 of the seal in hex, as it was published before the answers came.
        checkpoints: Signed checkpoints of the log of runs that were seen before.
        roots: Certificates (PEM) of timestamp authorities that are trusted.
        models: Names, as the pack writes them, of models and plug-ins that may be loaded for it
            besides those that are packaged.
        signed_by: Whose Sigstore bundle over the file was verified; empty for nobody's.
    """

    key: PublicKey | None = None
    seal: str | None = None
    checkpoints: Sequence[bytes] = ()
    roots: Path | None = None
    models: Sequence[str] = ()
    signed_by: str = ""

    @property
    def names_the_signer(self) -> bool:
        """Whether the verifier knew the key, the seal, or what the key had signed before."""
        return bool(self.key or self.seal or self.checkpoints or self.signed_by)


@dataclass(frozen=True, slots=True)
class PackExchange:
    """A row of the chain that is opened.

    Attributes:
        asked: The question.
        answer: The reply; ``error`` says why there is none.
        failed: Whether it was not worth keeping, and asked again.
    """

    asked: StoredQuery
    answer: Answer
    failed: bool


@dataclass(frozen=True)
class PackCase:
    """A pack and what its verifier has beside it.

    Attributes:
        pack: Read, its form checked.
        known: The verifier's own knowledge.
        progress: Called with (what, done, all) while answers are replayed.
        kept: Notes of a check for the next ones.
    """

    pack: Pack
    known: PackKnown
    progress: Callable[[str, int, int], None] = field(default=lambda *_: None)
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the seal, in hex."""
        return hashlib.sha256(self.pack.files[SEAL]).hexdigest()

    @cached_property
    def exchanges(self) -> tuple[PackExchange | None, ...]:
        """The chain, row by row; None where a row is hidden.

        Raises:
            VerificationError: ``answers.form``.
        """
        return tuple(
            None if answer.text is None else _exchange(answer.text) for answer in self.pack.answers
        )


class Replies:
    """The answers of a pack, as questions find them.

    A question of two documents is asked once. So a question without its own answer takes the answer
    of another document. The last answer counts, as in the response store.

    Args:
        exchanges: The chain; None where a row is hidden.
    """

    def __init__(self, exchanges: Sequence[PackExchange | None]) -> None:
        opened = [exchange for exchange in exchanges if exchange is not None]
        self._own = {(e.asked.stage, e.asked.document, e.asked.query): e.answer for e in opened}
        self._any = {e.asked.query: e.answer for e in opened if not e.failed}

    def get(self, stage: str, document: str, query: Query) -> Answer | None:
        """Return the answer to a question; None where it has none."""
        plain = Query(**asdict(query))
        return self._own.get((stage, document, plain)) or self._any.get(plain)


def check_spent(case: PackCase, spent: dict[str, Any], target: str, budget: Budget) -> None:
    """Check what is said to be spent against the answers and the sealed caps.

    Args:
        case: The pack.
        spent: As its result has it.
        target: Name of the system.
        budget: The sealed caps.

    Raises:
        VerificationError: ``counts.spent`` or ``counts.cap``.
    """
    # A refused query is linked as failed, shown or hidden, and costs nothing.
    sent = sum(
        answer.asked[0] == target and answer.asked[3] == "answer" for answer in case.pack.answers
    )
    if spent["queries"] < sent:
        raise refuse("counts.spent", "More answers are linked than are said to be paid for.")
    # A cap excuses questions without an answer, so that one which was not sealed excuses none.
    caps = {"query": budget.queries, "token": budget.tokens, "cost": budget.cost}
    stopped = spent["stopped_by"]
    if stopped is not None and caps.get(stopped) is None:
        raise refuse("counts.cap", f"No {str(stopped)[:20]} cap was sealed that could stop it.")
    over = budget.passed(Use(spent["queries"], spent["prompt_tokens"], spent["completion_tokens"]))
    if over and stopped is None:
        raise refuse("counts.cap", f"More was spent than the sealed {over} cap admits.")


def _exchange(text: str) -> PackExchange:
    try:
        row = parse_json(text)
        of, failed = row["asked"], "failed" in row
        stored = dict(row["failed" if failed else "answer"])
        error = stored.pop("error", None)
        answer = decode_answer(stored)
        question = StoredQuery(of["target"], of["stage"], of["document"], Query(**of["query"]))
        if row["key"] != query_key(question.target, question.query):
            raise ValueError("its key")
    except (ValueError, KeyError, TypeError, AttributeError) as error_:
        raise refuse("answers.form", "An opened answer is no row of a response store.") from error_
    if error is not None:
        answer = Answer(answer.text, answer.tokens, error=str(error))
    return PackExchange(question, answer, failed)


# Two figures, two sets of them, two results.

TAKEN = ("started", "seconds", "spent.queries", "spent.prompt_tokens", "spent.completion_tokens")
"""Times and the target's own counts, which no answer settles. They are taken as stated."""

KEPT = re.compile(r"[\d,]+ of [\d,]+ answers were kept from an earlier start")
"""A warning that depends on how often a run was started."""


_IN_WORDS = (".told", ".told_out", ".note")
"""Fields that say in words what the figures beside them say."""


def same_result(
    case: PackCase,
    check: str,
    mine: dict[str, Any],
    theirs: dict[str, Any],
    loose: Collection[str],
    but: re.Pattern[str] | None = None,
) -> None:
    """Check that a result says what was recomputed.

    Other code may word a sentence otherwise. Then only the figures beside it are compared, and the
    verdict says so.

    Args:
        case: The pack.
        check: Name of the check.
        mine: Recomputed.
        theirs: As in the pack.
        loose: Places that are not compared.
        but: Places that could not be recomputed.

    Raises:
        VerificationError: ``check`` and the name of what differs.
    """
    places_differing = differences(mine, theirs, "", loose)
    bad = [location for location in places_differing if not (but and but.fullmatch(location))]
    worded = [location for location in bad if "code" in case.kept and location.endswith(_IN_WORDS)]
    if worded:
        case.kept["worded"] = worded
        bad = [location for location in bad if location not in worded]
    if bad:
        words = [word for word in bad[0].split(".") if not word.isdigit()]
        rows = words[0] == "documents"
        name = words[-1].replace(" ", "_") if rows else ".".join(words[words[0] == "summary" :][:2])
        raise refuse(f"{check}.{name}", f"The result says something else at {bad[0]}.")


def differences(
    mine: object, theirs: object, place: str = "", loose: Collection[str] = ()
) -> Iterator[str]:
    """Yield the places at which what was recomputed and what is said differ.

    Earlier versions omitted empty fields: one that a pack lacks (``...``) may be empty.

    Args:
        mine: Recomputed.
        theirs: As in the pack.
        place: Where both stand.
        loose: Places that are not compared.
    """
    if place in loose or (theirs is ... and not mine):
        return
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in sorted({**mine, **theirs}):
            inner = f"{place}.{name}" if place else name
            yield from differences(mine.get(name, ...), theirs.get(name, ...), inner, loose)
    elif isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        if len(mine) != len(theirs):
            yield place
            return
        for number, (left_item, right_item) in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(left_item, right_item, f"{place}.{number}", loose)
    elif isinstance(mine, float | int) and isinstance(theirs, float | int):
        close = math.isclose(mine, theirs, rel_tol=CLOSE, abs_tol=CLOSE * CLOSE)
        if isinstance(mine, bool) is not isinstance(theirs, bool) or not close:
            yield place
    elif mine != theirs:
        yield place
