"""Does a provider hold my collection? Documents are asked about until that is decided."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ragwitness.asking.governor import Governor, Pace
from ragwitness.asking.journal import Journal
from ragwitness.asking.scores import sets_of, start_for
from ragwitness.asking.worker import Outcome, Progress, Worker
from ragwitness.audits.assumptions import likeness
from ragwitness.audits.membership import Statistic, learn, spending
from ragwitness.audits.plan import AuditPlan, auxiliary_of, distinct, without_drafts
from ragwitness.errors import InputError
from ragwitness.membership.owner import Bets, collection_difference
from ragwitness.results.assumptions import FEW
from ragwitness.results.collection import CollectionResult
from ragwitness.types import Audit, Target

# Known-outside documents that are asked beside the collection's, the rest of them last: a fifth of
# all, at most so many, and none where there are few; then a change could not be seen.
_LATE, _MANY = 20, 40
_FEW = (
    "Too few known-out documents to see whether the target changed meanwhile: {} are needed, and"
    " there are {}. So nothing is decided."
)
_UNLIKE = (
    "Too few documents to see whether the known-out ones are like them: {} are needed, and there"
    " are {}. So nothing is decided."
)
_UNCHECKED = (
    "Whether the target changed could not be checked: only {} of the {} known-outside documents"
    " asked meanwhile could be scored. So nothing is decided; the same command asks for the others."
)
_CHANGED = (
    "The target seems to have changed during the audit: the {} known-outside documents asked"
    " meanwhile score higher than the others (p = {}). So nothing is decided, whatever the e-value"
    " says."
)
_APART = (
    "Answers were kept from another audit in this folder; a target that changed in between would"
    " look like one that holds the collection. So nothing is decided; take a fresh --run folder."
)
_CHANGE = 0.1  # level of that comparison: a decision lost by chance costs less than a wrong one
_FEWEST_OUTSIDE = 10  # scored known-outside documents; with fewer no bet is worth placing


def undecidable(plan: AuditPlan) -> str:
    """Say why nothing about the collection could be decided; empty where something could."""
    known, mine = (len(without_drafts(distinct(p))) for p in (plan.known_out, plan.documents))
    few = _FEW.format(_MANY, known) if known < _MANY else ""
    return few or (_UNLIKE.format(FEW, mine) if mine < FEW else "")


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
        InputError: Too few known-outside documents can be scored, or they are unlike the
            collection and ``plan.accept_unlike`` is not set; then nothing was sent.
    """
    clock, doubt = time.monotonic(), undecidable(plan)
    # 1. Order: at random, so that stopping early favours no kind of document.
    # Drafts are no other evidence.
    documents = list(without_drafts(distinct(plan.documents)))
    # The bet is that the collection is not like the others: texts that differ anyway would win it.
    alike = likeness(plan.documents, plan.known_out, getattr(audit, "config", None))
    caution = f"Not exact: {alike.told}" if alike.unlike else None
    if caution and not plan.accept_unlike:
        raise InputError(
            f"{caution} Nothing was sent.",
            "Give --known-out of the same source, date and kind; or rely on nothing, with"
            " --accept-unlike.",
        )
    random.Random(seed).shuffle(documents)
    with ExitStack() as files:
        if governor is None:
            pace = Pace.at_most(plan.in_flight)
            governor = files.enter_context(Governor.of_run(run, pace=pace))
        journal = files.enter_context(Journal(run / "answers.jsonl")) if run else None
        statistic = Statistic()
        if getattr(audit, "learns", False):
            statistic = await learn(plan, audit, auxiliary_of(plan), journal, progress)
        # 2. Calibrate: what documents outside score at this target. Some are kept for the end.
        others = list(without_drafts(distinct(plan.known_out)))
        start = start_for({"": documents, "known outside": others}, plan.alpha, seed)
        worker = Worker(target, journal, plan.in_flight, governor=governor, start=start)
        random.Random(seed + 1).shuffle(others)
        late = 0 if doubt else min(_LATE, len(others) // 5)
        known = await worker.run(audit, others[late:], "known outside", progress)
        outside = [value for value in statistic.values(known) if value is not None]
        if len(outside) < _FEWEST_OUTSIDE:
            governor.refuse_if_capped("known-outside documents")
            raise _too_few(known, len(outside))
        # 3. Ask batch by batch, and bet on each; stop once the e-value reaches 1 / alpha (Ville).
        # A target that changed meanwhile looks like one that holds the collection: documents
        # outside that are asked beside, and after, tell.
        last = "known outside, last"
        asked: list[Outcome] = []
        beside: list[Outcome] = []
        scores: list[float | None] = []
        bets = Bets(outside, alpha=plan.alpha)
        capped = any(outcome.capped for outcome in known)
        while len(asked) < len(documents) and bets.decided_after is None and not capped:
            batch = documents[len(asked) : len(asked) + max(1, plan.in_flight)]
            stage, more = f"after {len(asked)} documents", len(beside) + len(batch)
            parts = {stage: batch, last: others[len(beside) : min(late, more)]}
            both = await worker.run_stages(audit, parts, mixed=True)
            found, beside = both[stage], beside + both[last]
            asked += found
            capped = any(outcome.capped for outcome in found)
            scores += (arrived := statistic.values(found))
            bets.add(arrived)
            if progress:
                progress("collection", len(asked), len(documents))
        # 4. The rest of them; they tell where they are scored half as often as the others.
        if bets.decided_after is not None and late:
            beside += await worker.run(audit, others[len(beside) : late], last)
            again = [value for value in statistic.values(beside) if value is not None]
            if 2 * len(again) * len(known) < late * len(outside):
                doubt = _UNCHECKED.format(len(again), late)
            else:
                drift = collection_difference(again, outside, rng=random.Random(seed))
                if drift.p_value <= _CHANGE:
                    doubt = _CHANGED.format(late, f"{drift.p_value:.2g}")
        known += beside
        if len(sets_of([*known, *asked])) > 1:  # of other documents, at another level or seed
            doubt = _APART
    # 5. Result: the permutation test only where nothing was stopped early.
    if all(score is None for score in scores):
        governor.refuse_if_capped("documents of the collection")
        raise InputError(f"No document of the collection could be scored: {_reason(asked)}.")
    evidence = bets.evidence()
    # After an early stop, which chooses high scores, a permutation test would say too much.
    whole = len(asked) == len(documents)
    difference = collection_difference(scores, outside, rng=random.Random(seed)) if whole else None
    return CollectionResult(
        method=audit.name,
        target=target.name,
        alpha=plan.alpha,
        decided=evidence.decided_after is not None and not doubt,
        e_value=evidence.e_value if math.isfinite(evidence.e_value) else None,
        log10_e=evidence.log10_e,
        p_value=evidence.p_value,
        path=evidence.path,
        unscorable=evidence.unscorable,
        permutation_p_value=difference.p_value if difference else None,
        documents_asked=len(asked),
        documents=len(documents),
        known_out=len(outside),
        queries=sum(outcome.queries for outcome in [*known, *asked]),
        seconds=time.monotonic() - clock,
        spent=spending(governor.spent, governor.budget, governor.cap, [*known, *asked]),
        caution=" ".join([*plan.left_out, *filter(None, [doubt or caution])]) or None,
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
