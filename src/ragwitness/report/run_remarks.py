"""What a result says of how its run went: kept answers and a cap that ended it."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.report.spending import Spending
from ragwitness.runner.budget import OPTIONS
from ragwitness.runner.worker import Outcome


def answers_kept(outcomes: Sequence[Outcome]) -> list[str]:
    """Say so where answers were not asked for now."""
    queries = sum(outcome.queries for outcome in outcomes)
    kept = queries - sum(outcome.sent for outcome in outcomes)
    if not kept:
        return []
    return [
        f"{kept:,} of {queries:,} answers were kept from an earlier start of this run, not asked"
        " now; if the system has changed since, choose another folder with --run."
    ]


def unasked(spent: Spending, documents: int) -> list[str]:
    """Say so where a cap left documents without a score, and how to go on."""
    if spent.stopped_by is None:
        return []
    return [
        f"{spent.unasked} of {documents} documents, calibration included, were not or not wholly"
        f" asked about: {spent.stopped_by} cap reached. The same command with a higher"
        f" {OPTIONS[spent.stopped_by]} resumes; nothing is asked twice."
    ]
