"""The first five lines of a verdict: what follows from what, and whose word the rest is.

``outcomes.toml`` has the sentences for each kind of sealed file and each outcome.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from ragwitness.attest.verdict import BundleVerdict

_LONGEST = 200


@cache
def outcome_table() -> dict[str, Any]:
    """Return the sentences by kind and outcome."""
    return tomllib.loads(Path(__file__).with_name("outcomes.toml").read_text(encoding="utf-8"))


def odds(epsilon: float, delta: float) -> int:
    """Return how often of 100 the best guess between two neighbouring databases is right, at most.

    An (epsilon, delta) mechanism lets a test be right with probability at most
    (e^epsilon + delta) / (1 + e^epsilon) where both are equally likely (Kairouz et al. 2015).
    """
    wrong = (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
    return math.ceil(round(100 * (1 - wrong), 9))


def odds_line(epsilon: float, delta: float, accounts: int, relation: str) -> str:
    """Return an epsilon as odds, in one sentence."""
    secret = (
        "which of two documents the index holds"
        if relation == "replace"
        else "whether the index holds a document"
    )
    return (
        f"Somebody who knows everything else and pools {accounts:,} accounts guesses right {secret}"
        f" at most {odds(epsilon, delta)} times of 100 (50 is chance; epsilon {epsilon:.3g},"
        f" delta {delta:.2g})."
    )


def first_lines(
    verdict: BundleVerdict, kind: str, figures: str, **values: object
) -> tuple[str, ...]:
    """Return five lines: what follows, whose word the rest is, the figures, the limits, what next.

    Args:
        verdict: Outcome and reason.
        kind: Kind of file: ``"audit"``, ``"leak"``, ``"canary"`` or ``"window"``.
        figures: The figures in words, of a pass.
        values: System, signer and number of records, by the names in the table.
    """
    table, outcome = outcome_table(), verdict.outcome
    row = table[kind][outcome]
    missing = verdict.why.removeprefix("consistent in itself, but ")
    reasons = {
        "failed": verdict.failures[0].failure if verdict.failures else "",
        "missing": missing if len(missing) <= _LONGEST else f"{missing[:_LONGEST]}…",
    }
    return (
        row["says"].format(**reasons, **values),
        table[kind]["word"].format(**values),
        figures if outcome == "pass" else "No figure of this file is confirmed.",
        row["not_said"],
        table["next"][outcome],
    )
