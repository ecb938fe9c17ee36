"""Does a provider hold my collection? Documents are asked about until that is decided."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import fmean

from ragwitness.core.errors import InputError
from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Audit, Document, Target, left_out_of, notes_of
from ragwitness.membership.assumptions import likeness, outlier_ids
from ragwitness.membership.plan import AuditPlan, auxiliary_of, learns, without_drafts
from ragwitness.membership.prior_queries import Disclosed, sent_before
from ragwitness.membership.results.assumptions import FEW
from ragwitness.membership.results.collection import CollectionResult
from ragwitness.membership.run import Statistic, learn
from ragwitness.report.spending import spending
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.score_store import sets_of, start_for
from ragwitness.runner.worker import Outcome, Progress, Worker
from ragwitness.stats.p_values import LabelBets

_FEW = (
    "Too few documents to decide anything at alpha {}: there are {} of the collection and {} known"
    f" to be outside, and at least {FEW} of each are needed to see whether they are alike."
)
_LN10 = math.log(10)
_LARGEST = 700.0  # exp() of more is infinite
_LEFT_OUT = (
    "{} documents of the collection unlike the known-outside ones, and {} of those as odd, were not"
    " asked about (--accept-unlike asks)."
)
_STAGE = "collection and known outside"
_APART = (
    "Answers were kept from another audit in this folder, so documents known and in question were"
    " not asked about in one random order. So nothing is decided; take a fresh --run folder."
)


def undecidable(plan: AuditPlan) -> str:
    """Say why nothing about the collection could be decided; empty if something could."""
    documents, outside = (
        len(_by_group(without_drafts(row))) for row in (plan.documents, plan.known_out)
    )
    # The martingale cannot exceed 1 / (the chance of one arrangement of all labels).
    enough = math.comb(documents + outside, documents) * plan.alpha >= 1
    if enough and min(documents, outside) >= FEW:
        return ""
    return _FEW.format(f"{plan.alpha:g}", documents, outside)


def _by_group(documents: Sequence[Document]) -> list[tuple[Document, ...]]:
    """Return documents of one group together, and each without a group by itself, in order."""
    groups: dict[object, list[Document]] = {}
    for at, document in enumerate(documents):
        groups.setdefault(at if document.group is None else document.group, []).append(document)
    return [tuple(members) for members in groups.values()]


async def run_collection(
    plan: AuditPlan,
    target: Target,
    audit: Audit,
    *,
    seed: int = 0,
    run: Path | None = None,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
) -> CollectionResult:
    """Ask about the collection's documents in random order, and stop once it is decided.

    Args:
        plan: ``documents`` is the collection; ``known_out`` must be given.
        target: The system under audit.
        audit: The method with its proxy model.
        seed: Part of the name of the run's order, which is drawn anew for each run.
        run: Folder of the response store; None keeps nothing.
        progress: Called after each document.
        limiter: Lets queries to the target pass; None makes one without caps for ``run``.

    Raises:
        CapReachedError: Before anything could be scored.
        InputError: No document of one kind can be scored; or the known-outside ones are unlike the
            collection and ``plan.accept_unlike`` is not set; then nothing was sent.
    """
    clock, doubt = time.monotonic(), undecidable(plan)
    # 1. Drafts are no other evidence.
    documents, others = (without_drafts(p) for p in (plan.documents, plan.known_out))
    # The bet is that the collection is not like the others: texts that differ anyway would win it.
    alike = likeness(plan.documents, plan.known_out, getattr(audit, "config", None))
    caution = f"Not exact: {alike.told}" if alike.unlike else ""
    if caution and not plan.accept_unlike:
        raise InputError(
            f"{caution} Nothing was sent.",
            "Give --known-out of the same source, date and kind; or rely on nothing, with"
            " --accept-unlike.",
        )
    # A document unlike the others may be known by heart. Equally odd ones of both kinds are left
    # out, so that neither kind is chosen otherwise than the other.
    cautions = list(notes_of(plan.left_out))
    if not plan.accept_unlike and not doubt:
        odd = outlier_ids(documents, others)
        documents, others = (
            tuple(document for document in members if document.id not in ids)
            for members, ids in zip((documents, others), odd, strict=True)
        )
        cautions += [_LEFT_OUT.format(*map(len, odd))] * bool(odd[0])
    # 2. Order: one random order of both kinds, which the bets know no better than anybody else.
    # Documents of one group are asked about together, and bet on as one, by their mean.
    kinds = [_by_group(members) for members in (documents, others)]
    order = [(unit, kind == 0) for kind, units in enumerate(kinds) for unit in units]
    before = sent_before(run, target.name, documents, others) if run else Disclosed()
    doubt = doubt or (f"{before.told} So nothing is decided." if before.told else "")
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, at_once=plan.in_flight))
        journal = files.enter_context(ResponseStore(run / ANSWERS)) if run else None
        statistic = Statistic()
        if learns(audit):
            statistic = await learn(plan, audit, auxiliary_of(plan), journal, progress)
        # Drawn anew for each run, so that no two share their luck, and kept with its answers.
        start = start_for({"": documents, "known outside": others}, plan.alpha, seed)
        earlier = (str(row.get("start", "")) for row in (journal.rows() if journal else ()))
        prefix = start.rpartition(" ")[0]
        start = next((name for name in earlier if name.rpartition(" ")[0] == prefix), start)
        random.Random(start).shuffle(order)
        worker = Worker(target, journal, plan.in_flight, limiter=limiter, start=start)
        # 3. Ask batch by batch, and bet on each; stop once the e-value reaches 1 / alpha (Ville).
        outcomes_so_far: list[Outcome] = []
        scores: dict[bool, list[float | None]] = {True: [], False: []}
        bets, done = LabelBets(*map(len, kinds), alpha=plan.alpha), 0
        while done < len(order) and not bets.decided and not any(o.capped for o in outcomes_so_far):
            batch = order[done : done + max(1, plan.in_flight)]
            outcomes = await worker.run(audit, [d for unit, _ in batch for d in unit], _STAGE)
            outcomes_so_far, done, values = (
                outcomes_so_far + outcomes,
                done + len(batch),
                statistic.values(outcomes),
            )
            remaining = iter(values)
            for unit, collected in batch:
                scored = [v for v in islice(remaining, len(unit)) if v is not None]
                scores[collected].append(fmean(scored) if scored else None)
                if not bets.decided:
                    bets.add(scores[collected][-1], collected)
            if progress:
                progress(_STAGE, done, len(order))
        if len(sets_of(outcomes_so_far)) > 1:  # of other documents, at another level or seed
            doubt = _APART
    # 4. Result.
    for name, collected, members in (
        ("known-outside documents", False, others),
        ("documents of the collection", True, documents),
    ):
        if not bets.decided and all(score is None for score in scores[collected]):
            limiter.refuse_if_capped(name)
            unscored = [outcome for outcome in outcomes_so_far if outcome.document in members]
            raise InputError(
                f"None of {len(unscored)} {name} could be scored: {_main_reason(unscored)}.",
                "Give documents that the method can ask about, or try another --method.",
            )
    # Logarithms: an e-value may be too large for a number.
    last = bets.path[-1] if bets.path else 0.0
    return CollectionResult(
        method=audit.name,
        target=target.name,
        alpha=plan.alpha,
        decided=bets.decided and not doubt,
        e_value=math.exp(last) if last < _LARGEST else None,
        log10_e=last / _LN10,
        p_value=math.exp(-max(0.0, bets.best)),
        path=tuple(value / _LN10 for value in bets.path),
        unscorable=sum(score is None for score in scores[True]),
        documents_asked=len(scores[True]),
        documents=len(kinds[0]),
        known_out=sum(score is not None for score in scores[False]),
        queries=sum(outcome.queries for outcome in outcomes_so_far),
        seconds=time.monotonic() - clock,
        spent=spending(limiter.spent, limiter.budget, limiter.cap, outcomes_so_far),
        caution=" ".join(filter(None, [*cautions, doubt or caution])) or None,
        left_out=left_out_of(plan.left_out),
    )


def _main_reason(outcomes: Sequence[Outcome]) -> str:
    """Return why documents could not be scored, in most cases."""
    reasons = Counter(outcome.score.reason for outcome in outcomes if outcome.score.reason)
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"
