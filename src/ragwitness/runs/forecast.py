"""What audits would cost, and what they could show, before the first query.

Nothing is computed from formulas that an audit could drift away from: its own probes are driven
by the same worker as in a run, at a stand-in that sends nothing.
"""

from __future__ import annotations

import bisect
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ragwitness.models import LanguageModel
from ragwitness.runs.calibration import choose_reference, distinct
from ragwitness.runs.outlook import Asked, Expected, Outlook, OutlookPlan, Spent
from ragwitness.runs.units import auxiliary_of
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.stats.power import Power, Separation, expected_power
from ragwitness.types import Answer, Audit, Capability, Document, Query

__all__ = ["look_ahead"]

_Simulated: TypeAlias = dict[tuple[Separation, int, int], Power]
"""Audits alike in size and separation are simulated once."""

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
        said = _quoted_end(query.prompt, self._texts)
        return Answer(said, finish_reason="length" if said else "stop")

    async def close(self) -> None:
        """There is nothing to close."""


def _quoted_end(prompt: str, texts: str) -> str:
    """Return the longest end of a prompt that stands in the texts."""
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
    reference = choose_reference(distinct(plan.audit.known_out), False, auxiliary_of(plan.audit))
    drawn = [
        _sample(documents, plan.sample, plan.seed)
        for documents in (plan.audit.documents, reference.documents)
    ]
    tick = _ticker(progress, len(audits) * sum(map(len, drawn)))
    methods = []
    simulated: _Simulated = {}
    for name, audit in audits.items():
        asked = [
            await _count(audit, part, len(whole), proxy, plan.audit.in_flight, tick)
            for part, whole in zip(drawn, (plan.audit.documents, reference.documents), strict=True)
        ]
        methods.append(_expected(plan, name, audit, asked, simulated))
    return Outlook(
        methods=tuple(methods),
        alpha=plan.audit.alpha,
        inside_share=plan.inside_share,
        calibration=reference.source,
        warning=reference.warning,
        unit=proxy.name,
        seed=plan.seed,
        in_flight=plan.audit.in_flight,
        latency=latency,
        budget=plan.budget,
    )


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
    in_flight: int,
    tick: Progress,
) -> Asked:
    """Probe documents at nobody, and again at one who repeats where that brings more queries."""
    outcomes, spent = await _drive(audit, drawn, _Nobody(), proxy, in_flight, tick)
    loud = _Nobody([document.text for document in drawn])
    most = spent
    first, _ = await _drive(audit, drawn[:_FIRST], loud, proxy, in_flight)
    if any(a.queries != b.queries for a, b in zip(first, outcomes, strict=False)):
        _, most = await _drive(audit, drawn, loud, proxy, in_flight)
    lost = Counter(
        outcome.score.reason or "no score"
        for outcome in outcomes
        if outcome.score.value is None and not outcome.queries
    )
    return Asked(documents, len(drawn), dict(lost), spent, most)


async def _drive(
    audit: Audit,
    documents: Sequence[Document],
    target: _Nobody,
    proxy: LanguageModel,
    in_flight: int,
    progress: Progress | None = None,
) -> tuple[list[Outcome], Spent]:
    sent = answer = 0

    def watch(_document: Document, query: Query, _answer: Answer) -> None:
        nonlocal sent, answer
        sent += proxy.count_tokens(query.prompt)
        answer += query.max_tokens

    worker = Worker(target, None, in_flight, watch)
    outcomes = await worker.run(audit, documents, audit.name, progress)
    queries, n = sum(outcome.queries for outcome in outcomes), max(1, len(documents))
    return outcomes, Spent(queries / n, sent / n, answer / n)


def _expected(
    plan: OutlookPlan, name: str, audit: Audit, asked: Sequence[Asked], simulated: _Simulated
) -> Expected:
    documents, known_out = asked
    separations = plan.separations.get(name, {}) if documents.scorable else {}
    power = {}
    for label, separation in separations.items():
        key = (separation, documents.scorable, known_out.scorable)
        if key not in simulated:
            simulated[key] = expected_power(
                separation,
                documents=documents.scorable,
                known_out=known_out.scorable,
                inside_share=plan.inside_share,
                alpha=plan.audit.alpha,
            )
        power[label] = simulated[key]
    return Expected(
        method=name,
        documents=documents,
        known_out=known_out,
        learns=getattr(audit, "learns", False),
        power=power,
        auc={label: separation.auc for label, separation in separations.items()},
    )
