"""Making synthetic data from a corpus: the only loop of it that asks a model and writes a file.

Answers are kept as in every run, and finished records in ``made.jsonl``; the same command resumes.
Every text is checked against the conditions once more before it is written, those of earlier starts
included. An altered record, or one made under weaker conditions, does not pass. A run folder holds
the corpus in its prompts and is as private as the corpus.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ragwitness.core.errors import CapReachedError, InputError, TargetResponseError
from ragwitness.core.files import replace_file
from ragwitness.core.run_files import ANSWERS, VOTES
from ragwitness.core.types import Answer, Document, Query, Target
from ragwitness.report.spending import Spending, spending
from ragwitness.runner.budget import OPTIONS
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, QueryGenerator, Steps, Worker
from ragwitness.synthesis.agents import ByRole
from ragwitness.synthesis.generator import (
    Fate,
    Maker,
    Method,
    NamedRows,
    StoppedError,
    Synthesis,
    checked,
    flaw,
)
from ragwitness.synthesis.generator_registry import AnyMethod
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.private.evolution import CorpusSynthesis, PrivateEvolution
from ragwitness.synthesis.private.ledger import PrivacyLedger
from ragwitness.synthesis.response_parsing import Attribute
from ragwitness.synthesis.result import RecordFate, SynthesisReport, counted
from ragwitness.synthesis.sage import Sage
from ragwitness.text.overlap import SubsequenceIndex, Vocabulary
from ragwitness.text.words import plain_tokens


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """The texts of a corpus, and their report.

    Attributes:
        made: One per record, in the order of the corpus; of a private method, one per text.
        report: The outcome of each, without any text.
    """

    made: tuple[Synthesis, ...]
    report: SynthesisReport


class CannotBeginError(TargetResponseError):
    """A method failed before its first text."""


class UnseenAttributesError(InputError):
    """A model named the attributes of the corpus, and no person has checked them."""


def write_made(path: Path, result: SynthesisResult) -> int:
    """Write the texts that passed, one JSON object per line; return how many.

    Raises:
        RagwitnessError: It cannot be written; then it is as it was.
    """
    rows = [
        {
            "id": synthesis.record,
            "text": synthesis.text,
            "fate": str(synthesis.fate),
            "method": result.report.method,
        }
        for synthesis in result.made
        if synthesis.fate is Fate.PASSED
    ]
    replace_file(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


T = TypeVar("T")

_LONGEST = 1_000_000  # characters of a record, for methods without a limit
_CORPUS = Document("", "")  # for queries that concern no single record
_ALIKE = 0.9  # ROUGE-L F1 from which on two texts are nearly the same


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
    """Make a text of every record; no question that ``run`` has an answer to is asked again.

    A private method makes its texts of all records together; its votes are not repeated either.

    Args:
        documents: The corpus.
        method: How texts are made.
        guard: The conditions; made from the same corpus, for a private method from no record.
        target: The language model; None for methods that ask none.
        run: Folder of the response store; None keeps nothing.
        in_flight: Records at the same time.
        progress: Called after each record.
        limiter: Lets queries pass; None makes one without caps for ``run``.
        ledger: Where a private method books its spend; None books nothing.
        agreed: Whether attributes that a model names may be used unseen.

    Raises:
        UnseenAttributesError: A model named attributes, and ``agreed`` is false.
        InputError: No record can be used, or a file of the run.
        TargetUnreachableError: The model cannot be reached at all.
        CannotBeginError: The method failed before its first text.
        CapReachedError: A cap was reached before the first record.
    """
    clock = time.monotonic()
    settings = {**method.describe(), **guard.describe()}
    if target is None and method.asks:
        raise InputError(f"{method.name} asks a model.", "Name one with --model.")
    model = target or ByRole(None, {})
    # 1. Usable records; a flaw in one never stops the others.
    longest = getattr(getattr(method, "config", None), "longest", _LONGEST)
    usable = [d for d in documents if flaw(d.text, longest) is None]
    if not usable:
        raise InputError(
            "No record of the corpus can be used.", "Records are empty, binary or too long."
        )
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, at_once=in_flight))
        responses = files.enter_context(ResponseStore(run / ANSWERS)) if run else None
        worker = Worker(model, responses, in_flight, limiter=limiter)
        work = _Synthesis(documents, guard, worker, progress)
        try:
            if isinstance(method, PrivateEvolution):
                # 2a. A private method reads all records at once, and its noisy votes are kept: a
                # second draw would spend the privacy budget a second time.
                votes = files.enter_context(NamedRows(run and run / VOTES, "record of votes"))
                method.check_votes(usable, votes)
                if ledger is not None:
                    settings |= _book(ledger, method, usable, votes)
                synthesis = await work.of_corpus(method, usable, votes)
            else:
                # 2b. Any other method goes record by record.
                if isinstance(method, Sage) and not (agreed or method.config.domain.attributes):
                    raise _unseen(await work.follow(method.attributes(usable, guard)), usable)
                synthesis = CorpusSynthesis(await work.of_records(method, usable))
        except StoppedError as stop:
            raise CannotBeginError(
                f"{method.name} cannot begin: {stop.reason}.",
                "Try another model, or give the attributes in a domain file.",
            ) from None
    # 3. Withhold the texts that give a record away together with earlier ones.
    results = _apart(synthesis.made, guard)
    # 4. The report: costs, warnings, and the outcome of each record.
    fates = tuple(
        RecordFate(result.record, str(result.fate), result.reason, result.rounds, result.violation)
        for result in results
    )
    counts, reasons = counted(fates)
    unasked = counts.get(Fate.UNASKED, 0)
    spent = replace(spending(limiter.spent, limiter.budget, limiter.cap, ()), unasked=unasked)
    warnings = [*synthesis.warnings]
    if not isinstance(method, PrivateEvolution):
        warnings += _warnings(Counter(counts), settings, spent)
    warnings += _near_repeats(results)
    report = SynthesisReport(
        method=method.name,
        model=model.name,
        settings=settings,
        counts=counts,
        reasons=reasons,
        queries=work.queries,
        seconds=time.monotonic() - clock,
        warnings=tuple(warnings),
        records=fates,
        sent=work.sent,
        spent=spent,
    )
    return SynthesisResult(results, report)


def _book(
    ledger: PrivacyLedger, method: PrivateEvolution, documents: Sequence[Document], votes: NamedRows
) -> dict[str, str]:
    """Book the spend of a private method before it draws; return what is spent in all.

    A run that resumes has its own name among its votes, and is booked once.
    """
    key = method.key(documents)
    earlier = votes.get(f"{key} spend")
    row = earlier or {"id": os.urandom(16).hex()}
    # Booking the same name again changes nothing, unless the ledger was lost since.
    ledger.book(row["id"], documents, method.spend())
    if earlier is None:
        votes.put(f"{key} spend", row)
    return {
        "spent on these records by the runs in this ledger": ledger.total(documents).in_words(),
        "privacy ledger": str(ledger.path),
    }


def _unseen(attributes: Sequence[Attribute], usable: Sequence[Document]) -> UnseenAttributesError:
    """Name the attributes, each with the number of records that hold all of its words."""
    record_words = [{*plain_tokens(document.text)} for document in usable]
    listed = ", ".join(
        f"{section and section + ': '}{name}"
        f" ({sum({*plain_tokens(name)} <= words for words in record_words)})"
        for section, name in attributes
    )
    return UnseenAttributesError(
        f"The attributes, and in how many of {len(usable)} records their words stand:"
        f" {listed}. All texts are made from these; none may name a fact of a person.",
        "If they are names of kinds of information, the same command with --yes goes on, and asks"
        " nothing twice; else give attributes in a --domain file.",
    )


@dataclass(slots=True)
class _Synthesis:
    """A synthesis in progress, with its finished records and its costs so far."""

    documents: Sequence[Document]
    guard: SyntheticGuard
    worker: Worker
    progress: Progress | None
    queries: int = 0
    sent: int = 0

    async def of_corpus(
        self, method: PrivateEvolution, usable: Sequence[Document], votes: NamedRows
    ) -> CorpusSynthesis:
        """Make texts of all records together."""
        limit, answered = method.most(len(usable)), 0

        def watch(_document: Document, _query: Query, _answer: Answer) -> None:
            nonlocal answered
            answered += 1
            if self.progress:
                self.progress("synthesis", answered, max(answered, limit))

        self.worker.watch = watch
        return await self.follow(method.make_all(usable, self.guard, votes))

    async def of_records(self, method: Method, usable: Sequence[Document]) -> tuple[Synthesis, ...]:
        """Make a text of every record, of those with the same text once."""
        # 1. The method studies the corpus before the first record.
        maker = await self.follow(method.begin(usable, self.guard))
        # 2. Record by record; of equal records only the first.
        first: dict[str, int] = {}
        for n, document in enumerate(self.documents):
            first.setdefault(document.text, n)

        async def make(numbered: tuple[int, Document]) -> Synthesis:
            n, document = numbered
            if first[document.text] != n:
                reason = "the same text as an earlier record"
                return Synthesis(document.id, Fate.DUPLICATE, reason=reason)
            return await self._of_record(maker, document)

        numbered = list(enumerate(self.documents))
        return tuple(await self.worker.each(numbered, make, "synthesis", self.progress))

    async def _of_record(self, maker: Maker, document: Document) -> Synthesis:
        # Ids are written beside the texts: an id that names somebody would reveal the record.
        if personal := self.guard.named(document.id):
            reason = f"its id, which would be written, holds {personal}; give it another"
            return Synthesis(document.id, Fate.WITHHELD, reason=reason, violation="secret")
        try:
            made = await self.follow(maker(document), document)
        except CapReachedError as error:
            return Synthesis(document.id, Fate.UNASKED, reason=error.message)
        # A text that is to be written is checked against the conditions once more.
        return checked(made, self.guard) if made.fate is Fate.PASSED else made

    async def follow(self, steps: QueryGenerator[T], document: Document | None = None) -> T:
        """Follow a generator of one record, or of the whole corpus."""
        # Not in threads: makers share their knowledge of the corpus.
        ended = await self.worker.follow(
            Steps(steps), document or _CORPUS, "synthesis", alone=document is None
        )
        self.queries += ended.queries
        self.sent += ended.sent
        return ended.result()


def _apart(made: Sequence[Synthesis], guard: SyntheticGuard) -> tuple[Synthesis, ...]:
    """Withhold the texts that give a record away together with earlier ones."""
    passed = [n for n, synthesis in enumerate(made) if synthesis.fate is Fate.PASSED]
    results, reason = list(made), "with earlier texts it gives a record out in pieces"
    pieces = guard.together([made[n].text for n in passed])
    for n, withhold in zip(passed, pieces, strict=True):
        if withhold:
            results[n] = replace(
                made[n], fate=Fate.WITHHELD, text="", reason=reason, violation="similarity"
            )
    return tuple(results)


def _near_repeats(made: Sequence[Synthesis]) -> list[str]:
    """Warn of texts that nearly repeat an earlier one: a corpus of one bland text is of no use."""
    words = Vocabulary().tokenize(synthesis.text for synthesis in made if synthesis.text)
    index = SubsequenceIndex(words)
    repeats = sum(
        any(pair.record < n for pair in index.above_f1(words[n], _ALIKE)) for n in range(len(words))
    )
    if not repeats:
        return []
    return [
        f"{repeats} of {len(words)} synthetic texts are nearly the same as an earlier one (ROUGE-L"
        f" F1 above {_ALIKE:g}): together they tell less than their number says."
    ]


def _warnings(counts: Counter[str], settings: Mapping[str, str], spent: Spending) -> list[str]:
    warnings = [settings["warning"]] if "warning" in settings else []
    passed, total = counts[Fate.PASSED] + counts[Fate.UNGUARDED], counts.total()
    if passed * 2 < total:
        warnings.append(f"Only {passed} of {total} records have a synthetic text.")
    if counts[Fate.MALFORMED] * 2 > total:
        warnings.append(
            "The model did not keep to the forms for most records. Small models seldom do (0.5B and"
            " 1.5B were measured); --method private-evolution needs none."
        )
    if spent.stopped_by is not None:
        warnings.append(
            f"{spent.unasked} of {total} records were not asked about: {spent.stopped_by} cap"
            f" reached. The same command with a higher {OPTIONS[spent.stopped_by]} resumes; nothing"
            " is asked twice."
        )
    if counts[Fate.FAILED]:
        warnings.append("The model failed for some records; the same command asks again.")
    return warnings
