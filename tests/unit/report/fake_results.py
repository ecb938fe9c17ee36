"""Results that look like real ones, for the tests of the reports and for looking at them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import AuditResult, Calibration
from ragwitness.stats.evaluation import evaluate

WORDS = (
    "the swelling around her left|ankle",
    "was prescribed 40 mg of|omeprazole",
    "since the operation in late|October",
    "a dull ache below the|sternum",
    "suggested a course of|physiotherapy",
    "asked whether the|biopsy",
    "cannot sleep because of|tinnitus",
)


def fake_evidence(rng: random.Random, member: bool) -> tuple[Evidence, ...]:
    found = []
    for text in rng.sample(WORDS, 6):
        before, word = text.split("|")
        high = rng.uniform(0.7, 0.999) if member else rng.uniform(0.01, 0.2)
        low = high if member or rng.random() < 0.5 else 0.0
        found.append(Evidence(word, before, Interval(low, high), rng.uniform(0.0004, 0.08)))
    return tuple(found)


def fake_verdict(
    rng: random.Random, i: int, member: bool | None, calibration: Sequence[float]
) -> Verdict:
    inside = rng.random() < 0.5 if member is None else member
    if i % 41 == 40:
        reason = "only 2 words: too short to ask about"
        return Verdict(
            f"record-{i:04d}", Decision.INCONCLUSIVE, None, None, 0, reason=reason, member=member
        )
    score = rng.gauss(3.4 if inside else 0.2, 1.0)
    p = (1 + sum(other >= score for other in calibration)) / (len(calibration) + 1)
    p_out = min(1.0, max(0.001, (score + 1) / 6))
    decision = Decision.IN if p <= 0.02 else Decision.OUT if p_out < 0.3 else Decision.INCONCLUSIVE
    why = "the answers fit both" if decision is Decision.INCONCLUSIVE else None
    return Verdict(
        f"record-{i:04d}",
        decision,
        p,
        score,
        9,
        q_value=min(1.0, 2 * p),
        p_out=p_out,
        classifier=1 / (1 + 2.7 ** (1.8 - score)),
        evidence=fake_evidence(rng, inside),
        reason=why,
        member=member,
    )


def fake_result(n: int = 200, *, known: bool = True, seed: int = 1) -> AuditResult:
    rng = random.Random(seed)
    calibration = tuple(rng.gauss(0.2, 1.0) for _ in range(400))
    verdicts = tuple(
        fake_verdict(rng, i, i % 2 == 0 if known else None, calibration) for i in range(n)
    )
    scored = [v for v in verdicts if v.score is not None and v.p_value is not None]
    evaluation = None
    if known and n > 4:
        evaluation = evaluate(
            [v.score or 0.0 for v in scored],
            [bool(v.member) for v in scored],
            decisions=[(v.classifier or 0.0) > 0.5 for v in scored],
            p_values=[v.p_value or 0.0 for v in scored],
            alpha=0.05,
            unscorable=n - len(scored),
        )
    return AuditResult(
        method="s-rag (probing)",
        target="lab:documents.jsonl (4 documents retrieved, reader 22M)",
        alpha=0.05,
        started="2026-11-21T02:40:11Z",
        seconds=102.3,
        queries=5_412,
        verdicts=verdicts,
        calibration=Calibration(
            "auxiliary",
            400,
            False,
            "The p-values hold if the auxiliary documents are like the audited documents that "
            "are outside; they were not drawn from the same source.",
            calibration,
        ),
        evaluation=evaluation,
        settings={
            "Method": "s-rag, probing, m = 10 intervals, k = 10 words per query",
            "Proxy": "embedded reader without context (22M parameters)",
            "Classifier": "logistic regression on 20 features, trained on 400 shadow documents",
            "correction": "Benjamini-Hochberg over 200 documents",
            "Calibration": "auxiliary, 400 documents",
            "Seed": "0",
            "Documents": "documents.jsonl (200 rows, 0 skipped)",
        },
        warnings=(
            "The target returned only the 5 likeliest words for 12 of 200 documents: their "
            "probabilities are bounds, and verdicts on them are weaker.",
        ),
        ragwitness="0.1.0",
    )
