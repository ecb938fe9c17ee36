"""Costs and power of audits before the first query.

No formula could drift away from the audits: their own probes run in the worker of a real run, at a
stand-in that sends nothing.
"""

from __future__ import annotations

import bisect
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Audit, Capability, Document, Query
from ragwitness.membership.plan import AuditPlan, learns, stages_of
from ragwitness.membership.results.forecast import Expected, Outlook, Spent, Workload
from ragwitness.models.base import LanguageModel
from ragwitness.runner.budget import Budget
from ragwitness.runner.worker import Outcome, Progress, Worker
from ragwitness.stats.power import AuditPower, Binormal, expected_power
from ragwitness.text.overlap import without_copies

_SAMPLE = 10  # documents of each kind that are probed; they stand for all others
_FIRST = 3  # documents that show whether an audit asks again after an answer
_AUCS = (0.7, 0.8, 0.9, 0.95, 0.99)  # assumed separations of members from others


class _Nobody:
    """Stands in for a target: says nothing, or repeats the end of the question.

    Args:
        texts: Texts that it repeats, like a target that holds them.
    """

    name = "nobody"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = "\0".join(texts)

    async def ask(self, query: Query) -> Answer:
        """Answer without asking anybody."""
        # The longest end of the prompt that a document holds, as a quoting target would say.
        quotation = _quoted_end(query.prompt, self._texts)
        return Answer(quotation, finish_reason="length" if quotation else "stop")

    async def close(self) -> None:
        """There is nothing to close."""


def _quoted_end(prompt: str, texts: str) -> str:
    """Return the longest end of a prompt that the texts contain."""
    # If the texts contain an end, they contain every shorter one: bisection finds the longest.
    positions = range(len(prompt) + 1)
    start = bisect.bisect_left(positions, True, key=lambda i: prompt[i:] in texts)
    return prompt[start:]


async def look_ahead(
    plan: AuditPlan,
    audits: Mapping[str, Audit],
    proxy: LanguageModel,
    *,
    budget: Budget = Budget(),  # noqa: B008  # frozen
    latency: float | None = None,
    progress: Progress | None = None,
) -> Outlook:
    """Count the queries of every audit, and simulate its verdicts. Sends nothing.

    Args:
        plan: Documents and level.
        audits: By registered name.
        proxy: Counts tokens.
        budget: Prices of the target's tokens, where they are known.
        latency: Measured seconds per short answer of the target.
        progress: Called after each probed document.
    """
    # Without known-out documents an audit calibrates with auxiliary ones. An audit that learns
    # takes others, which its shadow system leaves over, but equally many of the packaged corpus.
    reference = stages_of(plan, shadow=False).reference
    # 1. A sample of each kind stands for all of it; copies cost nothing.
    kinds = (without_copies(plan.documents), reference.documents)
    samples = [_sample(documents) for documents in kinds]
    tick = _ticker(progress, len(audits) * sum(map(len, samples)))
    # Audits with equally many documents are simulated once.
    simulate = cache(lambda asked, known: _powers(plan.alpha, asked, known))
    methods = []
    for name, audit in audits.items():
        # 2. The audit's own probes are counted.
        documents, known_out = [
            await _count(audit, sample, len(rows), proxy, plan.in_flight, tick)
            for sample, rows in zip(samples, kinds, strict=True)
        ]
        # 3. Expected verdicts, with the sample's share of scorable documents.
        ranked = documents.scorable and not plan.references
        power = simulate(documents.scorable, known_out.scorable) if ranked else {}
        methods.append(Expected(name, documents, known_out, learns(audit), power))
    return Outlook(
        methods=tuple(methods),
        alpha=plan.alpha,
        calibration=reference.source,
        warning=reference.warning,
        tokens_by=proxy.name,
        in_flight=plan.in_flight,
        seconds_per_short_answer=latency,
        price_in=budget.price_in,
        price_out=budget.price_out,
    )


def _powers(alpha: float, documents: int, known_out: int) -> dict[str, AuditPower]:
    """Return the expected verdicts by AUC."""
    return {
        f"AUC {auc:g}".replace("0.", "."): expected_power(
            Binormal(auc), documents=documents, known_out=known_out, alpha=alpha
        )
        for auc in _AUCS
    }


async def rehearse(
    audit: Audit, documents: Sequence[Document], proxy: LanguageModel
) -> tuple[list[Outcome], Spent]:
    """Probe documents at a target that says nothing, and return the outcomes and their cost."""
    return await _drive(audit, documents, _Nobody(), proxy, 1)


async def refuse_unscorable(audit: Audit, plan: AuditPlan, calibrating: Sequence[Document]) -> None:
    """Refuse an audit that could score no document, before anything is sent.

    Args:
        audit: The method.
        plan: Its documents in question; one of them must have a question.
        calibrating: Those that calibrate; one of them must, unless e-values decide without them.

    Raises:
        InputError: None has a question.
    """
    needed = () if plan.references else calibrating
    stages = {"documents": plan.documents, "known-out documents": needed}
    # One scorable document of a stage is enough.
    worker = Worker(_Nobody(), None, 1)
    for stage, documents in stages.items():
        reasons: Counter[str] = Counter()
        for document in documents:
            [outcome] = await worker.run(audit, [document], stage)
            if outcome.score.value is not None or outcome.queries:
                break
            reasons[outcome.score.reason or "no score"] += 1
        else:
            if documents:
                [(reason, n)] = reasons.most_common(1)
                raise InputError(
                    f"None of the {len(documents)} {stage} can be scored by {audit.name}, so"
                    f" nothing was sent ({n}: {reason}).",
                    "Give longer documents, or try another --method.",
                )


def _sample(documents: Sequence[Document]) -> list[Document]:
    if len(documents) <= _SAMPLE:
        return list(documents)
    return random.Random(0).sample(list(documents), _SAMPLE)


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
    sample: Sequence[Document],
    documents: int,
    proxy: LanguageModel,
    in_flight: int,
    tick: Progress,
) -> Workload:
    """Probe documents at a silent target, and at a repeating one if that brings more queries."""
    outcomes, spent = await _drive(audit, sample, _Nobody(), proxy, in_flight, tick)
    repeating, highest = _Nobody([document.text for document in sample]), spent
    # The first few documents show whether answers bring more queries; mostly they do not.
    first, _ = await _drive(audit, sample[:_FIRST], repeating, proxy, in_flight)
    if any(a.queries != b.queries for a, b in zip(first, outcomes, strict=False)):
        _, highest = await _drive(audit, sample, repeating, proxy, in_flight)
    # A method that lists its questions puts them all where answers bring something.
    listed = getattr(audit, "questions", lambda _: ())
    most = sum(len(listed(document)) for document in sample) / max(1, len(sample))
    if spent.queries < most > highest.queries:
        times = most / spent.queries
        highest = Spent(most, times * spent.sent, times * spent.answer, spent.longest)
    reasons = Counter(
        outcome.score.reason or "no score"
        for outcome in outcomes
        if outcome.score.value is None and not outcome.queries
    )
    return Workload(documents, len(sample), dict(reasons), spent, highest)


async def _drive(
    audit: Audit,
    documents: Sequence[Document],
    target: _Nobody,
    proxy: LanguageModel,
    in_flight: int,
    progress: Progress | None = None,
) -> tuple[list[Outcome], Spent]:
    """Probe documents, and count queries and tokens."""
    # The worker shows every query, so that none is forgotten.
    sent = answer = longest = 0

    def watch(_document: Document, query: Query, _answer: Answer) -> None:
        nonlocal sent, answer, longest
        sent += proxy.count_tokens(query.prompt)
        answer += query.max_tokens
        longest = max(longest, len(query.prompt))

    worker = Worker(target, None, in_flight, watch)
    outcomes = await worker.run(audit, documents, audit.name, progress)
    queries, n = sum(outcome.queries for outcome in outcomes), max(1, len(outcomes))
    return outcomes, Spent(queries / n, sent / n, answer / n, longest)
