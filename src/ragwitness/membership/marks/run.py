"""Marked documents are asked about at a target; the answers become verdicts."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Decision, Document, Target
from ragwitness.membership.marks.key import MarksKey
from ragwitness.membership.marks.questions import LotAnswers, ask_lots, holm, odds_of, tail
from ragwitness.membership.results.marks import LotRow, MarksResult, MarksVerdict, chance
from ragwitness.report.spending import Spending, answers_kept, spending, unasked
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import GeneratorResult, Progress, QueryGenerator, Steps, Worker

STAGE = "marked documents"

Outcomes = Sequence[GeneratorResult[LotAnswers]]


@dataclass(frozen=True)
class MarksAudit:
    """An audit of marked documents.

    Attributes:
        key: Their lots.
        alpha: Probability at most that any document is wrongly called in.
    """

    key: MarksKey
    alpha: float

    def steps(self, number: int) -> QueryGenerator[LotAnswers]:
        """Return the generator that asks about a document.

        It ends once the document is decided even if all others are outside (Bonferroni), or cannot
        be any more.
        """
        document, drawn = self.key.documents[number], self.key.drawn[number]
        level = self.alpha / len(self.key.documents)

        def going(asked: LotAnswers) -> bool:
            odds = odds_of(document, drawn, asked)
            return odds.p_value > level and odds.best <= self.alpha

        return ask_lots(document, self.key.bits(f"questions {number}"), going)

    def conclude(
        self, outcomes: Outcomes, target: str, spent: Spending, seconds: float
    ) -> MarksResult:
        """Return the result of all answers."""
        verdicts = [self._verdict(n, outcome) for n, outcome in enumerate(outcomes)]
        # Documents that a cap left out count, with the largest p-value.
        adjusted = holm([1.0 if v.p_value is None else v.p_value for v in verdicts])
        decided = [
            verdict
            if verdict.p_value is None
            else replace(verdict, adjusted=level, decision=Decision.IN, reason=None)
            if level <= self.alpha
            else replace(verdict, adjusted=level)
            for verdict, level in zip(verdicts, adjusted, strict=True)
        ]
        beacon = f"{self.key.beacon_source}: {self.key.beacon}" if self.key.beacon else ""
        return MarksResult(
            target=target,
            alpha=self.alpha,
            commitment=self.key.commitment.hex(),
            documents=tuple(decided),
            log10_e=sum(math.log10(v.e_value) for v in verdicts if v.e_value),
            queries=sum(outcome.queries for outcome in outcomes),
            seconds=round(seconds, 3),
            spent=spent,
            warnings=(*unasked(spent, len(outcomes)), *answers_kept(outcomes)),
            settings={"Beacon": beacon} if beacon else {},
        )

    def _verdict(self, number: int, outcome: GeneratorResult[LotAnswers]) -> MarksVerdict:
        document, drawn = self.key.documents[number], self.key.drawn[number]
        verdict = (document.id, Decision.INCONCLUSIVE, len(document.lots))
        if outcome.refusal is not None:
            reason = outcome.refusal.message
            return MarksVerdict(*verdict, 0, 0, outcome.queries, reason=reason)
        asked = outcome.result()
        odds = odds_of(document, drawn, asked)
        evidence = tuple(
            LotRow(
                lot.left,
                lot.alternatives,
                lot.alternatives[drawn[answer.lot]],
                None if answer.named is None else lot.alternatives[answer.named],
                answer.way,
            )
            for answer in asked.answers
            for lot in [document.lots[answer.lot]]
        )
        undecided = None
        if not asked.answers:
            by_chance = chance(
                tail([1 / len(lot.alternatives) for lot in document.lots], len(drawn))
            )
            undecided = f"not asked about: all of its words are right by chance {by_chance}"
        elif not asked.said:
            undecided = "no answer names one of the words, or each names several"
        return MarksVerdict(
            *verdict, odds.answered, odds.right, outcome.queries, odds.p_value,
            e_value=odds.e_value, reason=undecided, evidence=evidence,
        )  # fmt: skip


async def ask_about_marks(
    audit: MarksAudit,
    target: Target,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
    in_flight: int = 4,
) -> MarksResult:
    """Ask about every document of a key; answers already in ``run`` are not asked for again.

    Args:
        audit: The key and the level.
        target: The system.
        run: Folder of the response store; None keeps nothing.
        progress: Called after each document.
        limiter: Lets queries pass; None makes one without caps.
        in_flight: Documents that are asked about at the same time.

    Raises:
        TargetUnreachableError: The target cannot be reached.
    """
    started = time.monotonic()
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, at_once=in_flight))
        store = files.enter_context(ResponseStore(run / ANSWERS)) if run else None
        worker = Worker(target, store, in_flight, limiter=limiter)

        async def about(number: int) -> GeneratorResult[LotAnswers]:
            document = audit.key.documents[number]
            named = Document(document.id, document.text)
            return await worker.follow(Steps(audit.steps(number)), named, STAGE)

        outcomes = await worker.each(range(len(audit.key.documents)), about, STAGE, progress)
    spent = spending(limiter.spent, limiter.budget, limiter.cap, outcomes)
    return audit.conclude(outcomes, target.name, spent, time.monotonic() - started)
