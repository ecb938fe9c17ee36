"""What audits would cost, and what they could show, before the first query.

Nothing is computed from formulas that an audit could drift away from: its own probes are driven
by the same worker as in a run, at a stand-in that sends nothing.
"""

from __future__ import annotations

import bisect
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Audit, Capability, Document, Query
from ragwitness.membership.plan import (
    AuditPlan,
    auxiliary_of,
    learns,
    same_questions,
    stages_of,
)
from ragwitness.membership.results.forecast import Expected, Outlook, Spent, Workload
from ragwitness.membership.shadow import build_shadow
from ragwitness.models.base import LanguageModel
from ragwitness.runner.budget import Budget
from ragwitness.runner.worker import Outcome, Progress, Worker
from ragwitness.stats.power import Separation, expected_power
from ragwitness.text.overlap import without_copies

# What is foreseen about audits before their first query.


@dataclass(frozen=True, slots=True)
class OutlookPlan:
    """What is foreseen and how.

    Attributes:
        audit: Documents in question, known-out documents, level.
        separations: By method: how well it may tell members apart, by label.
        inside_share: Probability that a document in question is inside.
        sample: Documents of each kind that are probed; the rest is taken to be like them.
        seed: Of the sample.
        budget: Prices of the target's tokens, where they are known.
        patience: Seconds of the auditor's own work that each method may take for counting; the
            sample is then as large as it can be. None takes the whole sample.
    """

    audit: AuditPlan
    separations: Mapping[str, Mapping[str, Separation]] = field(default_factory=dict)
    inside_share: float = 0.5
    sample: int = 20
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    patience: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be foreseen."""
        if not 0 < self.inside_share <= 1:
            raise InputError(
                f"The share inside must be above 0 and at most 1, not {self.inside_share:g}."
            )
        if self.sample < 1:
            raise InputError(f"The sample must hold at least 1 document, not {self.sample}.")


_FIRST = 3  # documents on which an audit shows whether it asks again after an answer


class _Nobody:
    """Stands in for a target: says nothing, or again the end of what it is asked.

    Args:
        texts: What it may say again, as a target does that holds them.
    """

    name = "nobody"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = "\0".join(texts)

    async def ask(self, query: Query) -> Answer:
        """Answer without asking anybody."""
        # The longest end of the prompt that a document holds, as a quoting target would say.
        said = _quoted_end(query.prompt, self._texts)
        return Answer(said, finish_reason="length" if said else "stop")

    async def close(self) -> None:
        """There is nothing to close."""


def _quoted_end(prompt: str, texts: str) -> str:
    """Return the longest end of a prompt that stands in the texts."""
    # Whether an end stands in the texts is monotone in its start, so it can be halved for.
    places = range(len(prompt) + 1)
    start = bisect.bisect_left(places, True, key=lambda i: prompt[i:] in texts)
    return prompt[start:]


async def look_ahead(
    plan: OutlookPlan,
    audits: Mapping[str, Audit],
    proxy: LanguageModel,
    *,
    latency: float | None = None,
    progress: Progress | None = None,
) -> Outlook:
    """Count what every audit would ask, and simulate what it would decide. Sends nothing.

    Args:
        plan: Documents, level, separations.
        audits: By registered name.
        proxy: Counts tokens.
        latency: Measured seconds per short answer of the target.
        progress: Called after each probed document.
    """
    # Without known-out documents an audit calibrates with auxiliary ones. One that learns takes
    # them from what its shadow leaves over: others, but as many of the packaged corpus.
    reference = stages_of(plan.audit, shadow=False).reference
    # 1. A sample of each kind stands for all of it; a copy is not asked about.
    kinds = (without_copies(plan.audit.documents), reference.documents)
    drawn = [_sample(documents, plan.sample, plan.seed) for documents in kinds]
    tick = _ticker(progress, len(audits) * sum(map(len, drawn)))
    methods = []
    # Audits alike in size and separation are simulated once.
    simulate = cache(
        partial(expected_power, inside_share=plan.inside_share, alpha=plan.audit.alpha)
    )
    for name, audit in audits.items():
        # 2. The audit's own probes count what it would ask.
        asked = [
            await _count(audit, part, len(whole), proxy, plan, tick)
            for part, whole in zip(drawn, kinds, strict=True)
        ]
        # Those that ask the same as another have no score, as in the run: known ones but the first.
        mine, same = set(kinds[0]), same_questions(audit, (*kinds[0], *kinds[1]))
        equal = [sum(one in mine for group in same for one in group)]
        equal.append(sum(len(group[mine.isdisjoint(group) :]) for group in same) - equal[0])
        asked = [replace(one, same_questions=n) for one, n in zip(asked, equal, strict=True)]
        documents, known_out = asked
        # 3. Expected verdicts, with as large a share scorable as in the sample.
        separations = plan.separations.get(name, {}) if documents.scorable else {}
        sizes = {"documents": documents.scorable, "known_out": known_out.scorable}
        methods.append(
            Expected(
                method=name,
                documents=documents,
                known_out=known_out,
                shadow_of_your_own=getattr(audit, "learns", False),
                power={label: simulate(one, **sizes) for label, one in separations.items()},
                shadow_seconds=await _shadow_seconds(audit, plan.audit),
            )
        )
    return Outlook(
        methods=tuple(methods),
        alpha=plan.audit.alpha,
        inside_share=plan.inside_share,
        calibration=reference.source,
        warning=reference.warning,
        tokens_by=proxy.name,
        sample_seed=plan.seed,
        in_flight=plan.audit.in_flight,
        seconds_per_short_answer=latency,
        price_in=plan.budget.price_in,
        price_out=plan.budget.price_out,
    )


async def rehearse(
    audit: Audit, documents: Sequence[Document], proxy: LanguageModel
) -> tuple[list[Outcome], Spent]:
    """Probe documents at a target that says nothing: what would be asked, and what it costs."""
    return await _drive(audit, documents, _Nobody(), proxy, 1)


async def refuse_unscorable(audit: Audit, stages: Mapping[str, Sequence[Document]]) -> None:
    """Refuse an audit of which no document could be scored, before anything is sent.

    Args:
        audit: The method.
        stages: Documents by stage; each must hold one that the audit has a question for.

    Raises:
        InputError: One of them holds none.
    """
    worker = Worker(_Nobody(), None, 1)
    for stage, documents in stages.items():
        reasons: Counter[str] = Counter()
        for document in documents:
            [found] = await worker.run(audit, [document], stage)
            if found.score.value is not None or found.queries:
                break
            reasons[found.score.reason or "no score"] += 1
        else:
            if documents:
                [(reason, n)] = reasons.most_common(1)
                raise InputError(
                    f"None of the {len(documents)} {stage} can be scored by {audit.name}, so"
                    f" nothing was sent ({n}: {reason}).",
                    "Give longer documents, or try another --method.",
                )


async def refuse_all_unscorable(audits: Sequence[Audit], plan: AuditPlan) -> None:
    """Refuse where no audit could score anything: see :func:`refuse_unscorable`.

    Args:
        audits: At least one.
        plan: The documents.

    Raises:
        InputError: All of them would be refused; the last one's reason.
    """
    stages = {"documents": plan.documents, "known-out documents": plan.known_out}
    for audit in audits[:-1]:
        with suppress(InputError):
            await refuse_unscorable(audit, stages)
            return
    await refuse_unscorable(audits[-1], stages)


def _sample(documents: Sequence[Document], n: int, seed: int) -> list[Document]:
    if len(documents) <= n:
        return list(documents)
    return random.Random(seed).sample(list(documents), n)


def _ticker(progress: Progress | None, total: int) -> Progress:
    """Count the documents of all audits together."""
    done = 0

    def tick(_stage: str, _done: int, _total: int) -> None:
        nonlocal done
        done += 1
        if progress:
            progress("counted", done, total)

    return tick


async def _count(
    audit: Audit,
    drawn: Sequence[Document],
    documents: int,
    proxy: LanguageModel,
    plan: OutlookPlan,
    tick: Progress,
) -> Workload:
    """Probe documents at nobody, and again at one who repeats where that brings more queries."""
    began, in_flight = time.monotonic(), plan.audit.in_flight
    until = None if plan.patience is None else began + plan.patience / 3  # two kinds, and repeats
    outcomes, spent = await _drive(audit, drawn, _Nobody(), proxy, in_flight, tick, until)
    own = (time.monotonic() - began) / max(1, len(outcomes))
    for _ in drawn[len(outcomes) :]:
        tick("counted", 0, 0)
    drawn = drawn[: len(outcomes)]
    # A first few documents show whether answers bring more queries; mostly they do not.
    loud = _Nobody([document.text for document in drawn])
    most = spent
    first, _ = await _drive(audit, drawn[:_FIRST], loud, proxy, in_flight)
    if any(a.queries != b.queries for a, b in zip(first, outcomes, strict=False)):
        until = until and time.monotonic() + (plan.patience or 0) / 6
        _, most = await _drive(audit, drawn, loud, proxy, in_flight, None, until)
    lost = Counter(
        outcome.score.reason or "no score"
        for outcome in outcomes
        if outcome.score.value is None and not outcome.queries
    )
    return Workload(documents, len(drawn), dict(lost), spent, most, own)


async def _drive(
    audit: Audit,
    documents: Sequence[Document],
    target: _Nobody,
    proxy: LanguageModel,
    in_flight: int,
    progress: Progress | None = None,
    until: float | None = None,
) -> tuple[list[Outcome], Spent]:
    """Probe documents, as many as there is time for but at least one, and count."""
    sent = answer = longest = 0

    def watch(_document: Document, query: Query, _answer: Answer) -> None:
        nonlocal sent, answer, longest
        sent += proxy.count_tokens(query.prompt)
        answer += query.max_tokens
        longest = max(longest, len(query.prompt))

    worker = Worker(target, None, in_flight, watch)
    outcomes: list[Outcome] = []
    step = len(documents) if until is None else 1
    while len(outcomes) < len(documents):
        batch = documents[len(outcomes) : len(outcomes) + step]
        outcomes += await worker.run(audit, batch, audit.name, progress)
        if until is not None and time.monotonic() > until:
            break
    queries, n = sum(outcome.queries for outcome in outcomes), max(1, len(outcomes))
    return outcomes, Spent(queries / n, sent / n, answer / n, longest)


async def _shadow_seconds(audit: Audit, plan: AuditPlan) -> float:
    """How long asking the shadow system takes, by two of its documents; 0 without one."""
    if not learns(audit):
        return 0.0
    shadow = build_shadow(auxiliary_of(plan), plan.shadow)
    worker, began = Worker(shadow.target, None, plan.in_flight), time.monotonic()
    pair = [shadow.inside[0], shadow.outside[0]]
    await worker.run(audit, pair, audit.name)
    each = (time.monotonic() - began) / len(pair)
    return each * (len(shadow.inside) + len(shadow.outside))
