"""Making synthetic data from a corpus: the only loop of it that asks a model and writes a file.

Answers are kept as in every run, and finished records in ``made.jsonl``; the same command resumes.
Every text is held against the conditions once more before it is written, those of earlier starts
included: a record that was altered, or made under weaker conditions, does not slip through. A run
folder holds the corpus in its prompts and is as private as that.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeVar

from ragwitness.core.errors import CapReachedError, InputError, TargetResponseError
from ragwitness.core.files import Appender, replace_file
from ragwitness.core.run_files import ANSWERS, MADE, VOTES
from ragwitness.core.stored_names import stored_text
from ragwitness.core.types import Answer, Capability, Document, Query, Target
from ragwitness.report.spending import Spending, spending
from ragwitness.runner.budget import OPTIONS
from ragwitness.runner.rate_limiter import Pace, RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Asking, Progress, Steps, Worker
from ragwitness.synthesis.generator import (
    AnyMethod,
    CorpusMethod,
    CorpusSynthesis,
    Fate,
    Maker,
    Method,
    StoppedError,
    Synthesis,
    checked,
    flaw,
    of_one_release,
)
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.private.ledger import PrivacyLedger
from ragwitness.synthesis.response_parsing import Attribute
from ragwitness.synthesis.result import RecordFate, SynthesisReport, counted
from ragwitness.synthesis.sage import Sage
from ragwitness.text.overlap import SubsequenceIndex, Vocabulary
from ragwitness.text.words import plain_tokens

# Synthetic texts as they are kept: the finished ones, the result, and the file.


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """What was made of a corpus.

    Attributes:
        made: One per record, in the order of the corpus; of a corpus method, one per text.
        report: What became of each, without any text.
    """

    made: tuple[Synthesis, ...]
    report: SynthesisReport


class CannotBeginError(TargetResponseError):
    """A method could not learn of the corpus what every text needs."""


class UnseenAttributesError(InputError):
    """A model named the attributes of the corpus, and nobody has looked at them."""


class NamedRows:
    """Rows by name, in one file that one process appends to. Use as a context manager.

    Args:
        path: The file; created with its folder. None keeps the rows in memory.
        what: Its name for people.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path | None, what: str) -> None:
        self._lines = None if path is None else Appender(path, what)
        self._rows: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        with path.open("rb") as lines:
            for line in lines:
                with suppress(
                    ValueError, KeyError, TypeError, AttributeError
                ):  # cut short by a crash
                    row = json.loads(line)
                    self._rows[row.pop("key")] = row

    def keys(self) -> Collection[str]:
        """Return the names of all rows."""
        return self._rows.keys()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a row; None where there is none."""
        return self._rows.get(key)

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        if self._lines is not None:
            self._lines.append({"key": key, **row})
        self._rows[key] = row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.close()


class MadeTexts:
    """Finished records. Use as a context manager.

    Args:
        path: The file; created with its folder.
        identity: Of everything that a text follows from; rows of another are passed over.

    Raises:
        InputError: The file cannot be used, or another process writes it.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._identity = identity
        self._rows_by_unit = NamedRows(path, "record of synthetic texts")

    def get(self, document: Document) -> Synthesis | None:
        """Return what an earlier start made of a record."""
        # A row of another version's form counts as none: the record is made again.
        row = self._rows_by_unit.get(self._key(document))
        with suppress(ValueError, KeyError, TypeError):
            return None if row is None else Synthesis(**row | {"fate": Fate(row["fate"])})
        return None

    def put(self, document: Document, made: Synthesis) -> None:
        """Keep what was made of a record.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        self._rows_by_unit.put(self._key(document), asdict(made))

    def _key(self, document: Document) -> str:
        return digest([self._identity, document.id, document.text])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self._rows_by_unit.__exit__(*given)


def write_made(path: Path, result: SynthesisResult) -> int:
    """Write the texts that passed, one JSON object per line; return how many.

    Raises:
        RagwitnessError: It cannot be written; then it is as it was.
    """
    rows = [
        {"id": one.record, "text": one.text, "fate": str(one.fate), "method": result.report.method}
        for one in result.made
        if one.fate is Fate.PASSED
    ]
    replace_file(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def digest(content: object) -> str:
    """Return a content address."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


T = TypeVar("T")

_LONGEST = 1_000_000  # characters of a record, where the method has no limit of its own
_CORPUS = Document("", "")  # whose queries are of no record
_PASSING = (Fate.FAILED, Fate.UNASKED)


class _NoModel:
    """Stands where a method asks no model."""

    name = ""
    capabilities: frozenset[Capability] = frozenset()

    async def ask(self, query: Query) -> Answer:  # noqa: ARG002 - as every target
        """Refuse."""
        raise InputError("This method asks a model.", "Name one with --model.")

    async def close(self) -> None:
        """There is nothing to close."""


async def run_synthesis(
    documents: Sequence[Document],
    method: AnyMethod,
    guard: SyntheticGuard,
    target: Target | None = None,
    *,
    run: Path | None = None,
    in_flight: int = 4,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
    ledger: PrivacyLedger | None = None,
    agreed: bool = True,
) -> SynthesisResult:
    """Make a text of every record; answers and records already in ``run`` are not made again.

    A corpus method makes its texts of all records together; its votes are not repeated either.

    Args:
        documents: The corpus.
        method: How texts are made.
        guard: The conditions; made from the same corpus, for a private method from no record.
        target: The language model; None for methods that ask none.
        run: Folder of the journal and of the texts made; None keeps nothing.
        in_flight: Records at the same time.
        progress: Called after each record.
        limiter: Lets queries pass; None makes one without caps for ``run``.
        ledger: Where a private method books what it spends; None books nothing.
        agreed: Whether attributes that a model names may be used before anybody saw them.

    Raises:
        UnseenAttributesError: A model named them, and they may not be.
        InputError: No record can be used, or a file of the run.
        TargetUnreachableError: The model cannot be reached at all.
        CannotBeginError: It gave nothing to begin with.
        CapReachedError: A cap was reached before the first record.
    """
    clock = time.monotonic()
    settings = {**method.describe(), **guard.describe()}
    if target is None and method.asks:
        raise InputError(f"{method.name} asks a model.", "Name one with --model.")
    model = target or _NoModel()
    config = getattr(method, "config", None)
    # 1. Whatever a text follows from: another method, model, guard or version makes it again.
    identity = digest(
        [version("ragwitness"), model.name, stored_text(config), method.describe(), guard.identity]
    )
    # 2. Records that can be used; a flaw in one never stops the others.
    usable = [d for d in documents if flaw(d.text, getattr(config, "longest", _LONGEST)) is None]
    if not usable:
        raise InputError(
            "No record of the corpus can be used.", "Records are empty, binary or too long."
        )
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, pace=Pace.at_most(in_flight)))
        journal = files.enter_context(ResponseStore(run / ANSWERS)) if run else None
        work = _Synthesis(
            documents, method, guard, Worker(model, journal, in_flight, limiter=limiter), progress
        )
        try:
            # 3a. A private method sees all records at once, and its noisy votes are kept: drawing a
            # vote a second time would spend the privacy budget a second time.
            if isinstance(method, CorpusMethod):
                votes = files.enter_context(NamedRows(run and run / VOTES, "record of votes"))
                of_one_release(votes, method.key(usable))
                if ledger is not None:
                    settings |= _booked(ledger, method, usable, votes)
                found = await work.of_corpus(method, usable, votes)
            else:
                # 3b. Any other method goes record by record, and finished ones are kept.
                if run is not None:
                    work.kept = files.enter_context(MadeTexts(run / MADE, identity))
                if isinstance(method, Sage) and not (agreed or method.config.domain.attributes):
                    raise _unseen(await work.attributes(method, usable), usable)
                found = CorpusSynthesis(await work.of_records(method, usable))
        except StoppedError as stop:
            raise CannotBeginError(
                f"{method.name} cannot begin: {stop.reason}.",
                "Try another model, or give the attributes in a domain file.",
            ) from None
    made = _apart(found.made, guard)
    # 4. What it took, and what a cap left.
    unasked = sum(one.fate is Fate.UNASKED for one in made)
    spent = replace(spending(limiter.spent, limiter.budget, limiter.cap, ()), unasked=unasked)
    of_records = () if isinstance(method, CorpusMethod) else _warnings(made, settings, spent)
    warnings = (*found.warnings, *of_records, *_alike(made))
    fates = tuple(
        RecordFate(one.record, str(one.fate), one.reason, one.rounds, one.violation) for one in made
    )
    counts, reasons = counted(fates)
    return SynthesisResult(
        made,
        SynthesisReport(
            method=method.name,
            model=model.name,
            settings=settings,
            counts=counts,
            reasons=reasons,
            queries=work.queries,
            seconds=time.monotonic() - clock,
            warnings=warnings,
            records=fates,
            sent=work.sent,
            spent=spent,
        ),
    )


def _booked(
    ledger: PrivacyLedger, method: CorpusMethod, documents: Sequence[Document], votes: NamedRows
) -> dict[str, str]:
    """Book what a private method is about to spend, before it draws; say what is spent in all.

    A run that resumes finds its own name among its votes, and is booked once.
    """
    key = method.key(documents)
    row, first = votes.get(f"{key} spend"), votes.get(f"{key} 0")
    if row is None:
        # Votes of a version without a ledger are named by themselves: their noise is unique.
        row = {"id": digest(first) if first else os.urandom(16).hex()}
        ledger.book(row["id"], documents, method.spend())
        if not first:
            votes.put(f"{key} spend", row)
    else:  # booked before, unless the ledger was lost since
        ledger.book(row["id"], documents, method.spend())
    return {
        "spent on these records by all runs": ledger.total(documents).told(),
        "privacy ledger": str(ledger.path),
    }


def _unseen(attributes: Sequence[Attribute], usable: Sequence[Document]) -> UnseenAttributesError:
    """Name the attributes, each with the records in which all of its words stand."""
    held = [{*plain_tokens(one.text)} for one in usable]
    told = (
        f"{part and part + ': '}{name} ({sum({*plain_tokens(name)} <= words for words in held)})"
        for part, name in attributes
    )
    return UnseenAttributesError(
        f"The attributes, and in how many of {len(usable)} records their words stand:"
        f" {', '.join(told)}. All texts are made from these; one that tells of a person must not be"
        " among them.",
        "If they are names of kinds of information, the same command with --yes goes on, and asks"
        " nothing twice; else give attributes in a --domain file.",
    )


@dataclass(slots=True)
class _Synthesis:
    """One synthesis under way, and what it took so far."""

    documents: Sequence[Document]
    method: AnyMethod
    guard: SyntheticGuard
    worker: Worker
    progress: Progress | None
    kept: MadeTexts | None = None
    queries: int = 0
    sent: int = 0
    capped: str = ""

    async def of_corpus(
        self, method: CorpusMethod, usable: Sequence[Document], votes: NamedRows
    ) -> CorpusSynthesis:
        """Make texts of all records together."""
        most, asked = method.most(len(usable)), 0

        def watch(_document: Document, _query: Query, _answer: Answer) -> None:
            nonlocal asked
            asked += 1
            if self.progress:
                self.progress("synthesis", asked, max(asked, most))

        self.worker.watch = watch
        return await self._follow(method.make_all(usable, self.guard, votes))

    async def attributes(self, method: Sage, usable: Sequence[Document]) -> Sequence[Attribute]:
        """Learn what a model takes for the attributes of the corpus."""
        return await self._follow(method.attributes(usable, self.guard))

    async def of_records(self, method: Method, usable: Sequence[Document]) -> tuple[Synthesis, ...]:
        """Make a text of every record, of those of one text once."""
        # 1. What the method must learn of the corpus before the first record.
        maker = await self._follow(method.begin(usable, self.guard))
        # 2. Record by record; of those of one text the first.
        first: dict[str, int] = {}
        for place, document in enumerate(self.documents):
            first.setdefault(document.text, place)

        async def one(numbered: tuple[int, Document]) -> Synthesis:
            place, document = numbered
            if first[document.text] != place:
                reason = "the same text as an earlier record"
                return Synthesis(document.id, Fate.DUPLICATE, reason=reason)
            return await self._of_record(maker, document)

        numbered = list(enumerate(self.documents))
        made = await self.worker.each(numbered, one, "synthesis", self.progress)
        return tuple(made)

    async def _of_record(self, maker: Maker, document: Document) -> Synthesis:
        # Ids are written beside the texts: one that names somebody would give it away.
        if named := self.guard.named(document.id):
            reason = f"its id, which would be written, holds {named}; give it another"
            return Synthesis(document.id, Fate.WITHHELD, reason=reason, violation="secret")
        if self.kept is not None and (kept := self.kept.get(document)) is not None:
            return self._held(kept)
        if self.capped:
            return Synthesis(document.id, Fate.UNASKED, reason=self.capped)
        try:
            made = await self._follow(maker(document), document)
        except CapReachedError as error:
            self.capped = error.message
            return Synthesis(document.id, Fate.UNASKED, reason=error.message)
        # Only what lasts is kept: a failure or a cap may pass, and the next start asks again.
        made = self._held(made)
        if self.kept is not None and made.fate not in _PASSING:
            self.kept.put(document, made)
        return made

    async def _follow(self, steps: Asking[T], document: Document | None = None) -> T:
        """Follow a generator of one record, or of the whole corpus."""
        # Not in threads: makers share what they know of the corpus.
        found = await self.worker.follow(
            Steps(steps), document or _CORPUS, "synthesis", alone=document is None
        )
        self.queries += found.queries
        self.sent += found.sent
        return found.result()

    def _held(self, made: Synthesis) -> Synthesis:
        """Hold a text that is to be written against the conditions once more."""
        return checked(made, self.guard) if made.fate is Fate.PASSED else made


def _apart(made: Sequence[Synthesis], guard: SyntheticGuard) -> tuple[Synthesis, ...]:
    """Withhold the texts that give a record out together with earlier ones."""
    passed = [place for place, one in enumerate(made) if one.fate is Fate.PASSED]
    found, reason = list(made), "with earlier texts it gives a record out in pieces"
    for place, out in zip(passed, guard.together([made[n].text for n in passed]), strict=True):
        if out:
            found[place] = replace(
                made[place], fate=Fate.WITHHELD, text="", reason=reason, violation="similarity"
            )
    return tuple(found)


_ALIKE = 0.9  # ROUGE-L F1 from which on two texts are nearly the same


def _alike(made: Sequence[Synthesis]) -> list[str]:
    """Say how many texts nearly repeat an earlier one: a corpus of one bland text says nothing."""
    words = Vocabulary().tokenize(one.text for one in made if one.text)
    index = SubsequenceIndex(words)
    again = sum(
        any(pair.record < place for pair in index.above_f1(words[place], _ALIKE))
        for place in range(len(words))
    )
    if not again:
        return []
    return [
        f"{again} of {len(words)} synthetic texts are nearly the same as an earlier one (ROUGE-L"
        f" F1 above {_ALIKE:g}): together they tell less than their number says."
    ]


def _warnings(made: Sequence[Synthesis], settings: Mapping[str, str], spent: Spending) -> list[str]:
    found = [settings["warning"]] if "warning" in settings else []
    passed = sum(one.fate in (Fate.PASSED, Fate.UNGUARDED) for one in made)
    if passed * 2 < len(made):
        found.append(f"Only {passed} of {len(made)} records have a synthetic text.")
    if spent.stopped_by is not None:
        found.append(
            f"{spent.unasked} of {len(made)} records were not asked about: {spent.stopped_by} cap"
            f" reached. The same command with a higher {OPTIONS[spent.stopped_by]} resumes; nothing"
            " is asked twice."
        )
    if any(one.fate is Fate.FAILED for one in made):
        found.append("The model failed for some records; the same command asks again.")
    return found
