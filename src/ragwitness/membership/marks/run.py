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
from ragwitness.membership.marks.questions import LotAnswers, ask_lots, holm, odds_of
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

        def going(answers: LotAnswers) -> bool:
            odds = odds_of(document, drawn, answers)
            return odds.p_value > level and odds.best <= self.alpha

        return ask_lots(document, self.key.bits(f"questions {number}"), going)

    def conclude(
        self, outcomes: Outcomes, target: str, spent: Spending, seconds: float
    ) -> MarksResult:
        """Return the result of all answers."""
        verdicts = [self._verdict(n, outcome) for n, outcome in enumerate(outcomes)]
        adjusted = holm([verdict.p_value for verdict in verdicts])
        decided = [
            replace(v, adjusted=p, decision=Decision.IN if p <= self.alpha else v.decision)
            for v, p in zip(verdicts, adjusted, strict=True)
        ]
        return MarksResult(
            target=target,
            alpha=self.alpha,
            commitment=self.key.commitment.hex(),
            documents=tuple(decided),
            log10_e=sum(math.log10(verdict.e_value) for verdict in verdicts),
            queries=sum(outcome.queries for outcome in outcomes),
            seconds=round(seconds, 3),
            spent=spent,
            warnings=(*unasked(spent, len(outcomes)), *answers_kept(outcomes)),
            beacon=f"{self.key.beacon_source}: {self.key.beacon}" * bool(self.key.beacon),
        )

    def _verdict(self, number: int, outcome: GeneratorResult[LotAnswers]) -> MarksVerdict:
        document, drawn = self.key.documents[number], self.key.drawn[number]
        # A document that a cap left half asked has no answers that count.
        answers = outcome.value or LotAnswers()
        odds = odds_of(document, drawn, answers)
        evidence = tuple(
            LotRow(
                lot.left,
                lot.alternatives,
                lot.alternatives[drawn[answer.lot]],
                None if answer.named is None else lot.alternatives[answer.named],
                answer.way,
            )
            for answer in answers.answers
            for lot in [document.lots[answer.lot]]
        )
        reason = None
        if outcome.refusal is not None:
            reason = outcome.refusal.message
        elif not answers.answers:
            reason = f"not asked about: all of its words are right by chance {chance(odds.best)}"
        elif not answers.named:
            reason = "no answer names one of the words, or each names several"
        return MarksVerdict(
            document=document.id,
            decision=Decision.INCONCLUSIVE,
            lots=len(document.lots),
            answered=odds.answered,
            right=odds.right,
            queries=outcome.queries,
            p_value=odds.p_value,
            e_value=odds.e_value,
            reason=reason,
            evidence=evidence,
        )


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
