"""Does a provider hold my collection? Documents are asked about until that is decided."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.membership.owner import Bets, CollectionEvidence, collection_difference
from ragwitness.runs.calibration import distinct
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import Journal
from ragwitness.runs.pace import Pace
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.remarks import spending
from ragwitness.runs.result import Spending
from ragwitness.runs.statistic import Statistic, learn
from ragwitness.runs.units import auxiliary_of
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.stats.sequential import Permutation
from ragwitness.types import Audit, Target

__all__ = ["CollectionResult", "run_collection"]

_FEWEST_OUTSIDE = 10  # scored known-outside documents; with fewer no bet is worth placing


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What was found about a whole collection.

    Attributes:
        method: Name of the audit.
        target: Name of the system.
        alpha: Level.
        evidence: The e-value and its path.
        difference: Permutation test over all documents; None after an early stop, which
            chooses high scores and would make its p-value too small.
        asked: Documents asked about before it was decided.
        documents: Documents in the collection.
        known_out: Scored documents known to be outside.
        queries: Queries sent, calibration included.
        seconds: Wall time.
        spent: What the run folder has spent at the target; with a cap's name where that ended
            the search.
    """

    method: str
    target: str
    alpha: float
    evidence: CollectionEvidence
    difference: Permutation | None
    asked: int
    documents: int
    known_out: int
    queries: int
    seconds: float
    spent: Spending

    @property
    def decided(self) -> bool:
        """Whether "the collection is like documents outside" is refused at ``alpha``."""
        return self.evidence.decided_after is not None


async def run_collection(
    plan: AuditPlan,
    target: Target,
    audit: Audit,
    *,
    seed: int = 0,
    run: Path | None = None,
    progress: Progress | None = None,
    governor: Governor | None = None,
) -> CollectionResult:
    """Ask about the collection's documents in random order, and stop once it is decided.

    Args:
        plan: ``documents`` is the collection; ``known_out`` must be given.
        target: The system under audit.
        audit: The method with its proxy model.
        seed: Of the order.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.
        governor: Lets queries to the target pass; None makes one without caps for ``run``.

    Raises:
        CapReachedError: Before enough documents were asked about to say anything.
        InputError: Too few known-outside documents can be scored.
    """
    clock = time.monotonic()
    documents = list(distinct(plan.documents))
    random.Random(seed).shuffle(documents)
    with ExitStack() as files:
        if governor is None:
            pace = Pace.at_most(plan.in_flight)
            governor = files.enter_context(Governor.of_run(run, pace=pace))
        journal = files.enter_context(Journal(run / "answers.jsonl")) if run else None
        statistic = Statistic()
        if getattr(audit, "learns", False):
            statistic = await learn(plan, audit, auxiliary_of(plan), journal, progress)
        worker = Worker(target, journal, plan.in_flight, governor=governor)
        known = await worker.run(audit, distinct(plan.known_out), "known outside", progress)
        outside = [value for value in statistic.values(known) if value is not None]
        if len(outside) < _FEWEST_OUTSIDE:
            governor.refuse_if_capped("known-outside documents")
            raise _too_few(known, len(outside))
        asked: list[Outcome] = []
        scores: list[float | None] = []
        bets = Bets(outside, alpha=plan.alpha)
        capped = any(outcome.capped for outcome in known)
        while len(asked) < len(documents) and bets.decided_after is None and not capped:
            batch = documents[len(asked) : len(asked) + max(1, plan.in_flight)]
            found = await worker.run(audit, batch, f"after {len(asked)} documents")
            asked += found
            capped = any(outcome.capped for outcome in found)
            scores += (arrived := statistic.values(found))
            bets.add(arrived)
            if progress:
                progress("collection", len(asked), len(documents))
    if all(score is None for score in scores):
        governor.refuse_if_capped("documents of the collection")
        raise InputError(f"No document of the collection could be scored: {_reason(asked)}.")
    return CollectionResult(
        method=audit.name,
        target=target.name,
        alpha=plan.alpha,
        evidence=bets.evidence(),
        difference=collection_difference(scores, outside, rng=random.Random(seed))
        if len(asked) == len(documents)
        else None,
        asked=len(asked),
        documents=len(documents),
        known_out=len(outside),
        queries=sum(outcome.queries for outcome in [*known, *asked]),
        seconds=time.monotonic() - clock,
        spent=spending(governor.spent, governor.budget, governor.cap, [*known, *asked]),
    )


def _reason(outcomes: Sequence[Outcome]) -> str:
    """Return why documents could not be scored, in most cases."""
    reasons = Counter(outcome.score.reason for outcome in outcomes if outcome.score.reason)
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"


def _too_few(known: Sequence[Outcome], scored: int) -> InputError:
    why, other = f": {_reason(known)}", " Or try another --method."
    if scored == len(known):
        why = other = ""
    return InputError(
        f"{scored} of {len(known)} known-outside documents could be scored, and"
        f" {_FEWEST_OUTSIDE} are needed{why}.",
        f"Give more with --known-out, of the same kind as the collection.{other}",
    )
