"""The rows of the study as a table: ``python -m research.canary.rows rows.jsonl``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.stats.evaluation import auc_interval
from ragwitness.stats.rates import proportion_interval


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of a Markdown table for each condition: Eq. 1, and the rank test beside it.

    AUROC is over policies, violating against compliant, with DeLong's interval; shares of policies
    with p at most .05 have exact ones.
    """
    yield (
        "| condition (violating + compliant) | AUROC of Eq. 1 | AUROC of the standing (ours) |"
        " violating with p ≤ .05 | compliant |"
    )
    yield "|---|---|---|---|---|"
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] != "base":
            groups.setdefault(row["key"].rsplit(" ", 2)[0], []).append(row)
    for group in groups.values():
        arms = np.array([row["violating"] for row in group])
        found = np.array([row["rank"] <= 0.05 * len(row["means"]) for row in group])
        scores = (np.array([row[name] for row in group]) for name in ("eq1", "standing"))
        cells = [auroc_text(each, arms) for each in scores]
        cells += [_share(found[arms == arm]) for arm in (True, False)]
        one = group[0]
        name = f"{one['kind']}, {one['votes']} votes, rho = {one['rate']}, {one['corpus']}"
        yield f"| {name} ({arms.sum()} + {(~arms).sum()}) | {' | '.join(cells)} |"


def auroc_text(scores: np.ndarray, arms: np.ndarray) -> str:
    """Return the AUROC of violating against compliant policies with DeLong's interval.

    Args:
        scores: One of each policy, shape (n,).
        arms: True for violating ones, shape (n,).
    """
    if not 0 < arms.sum() < len(arms):
        return "-"
    above = scores[arms][:, None] - scores[~arms][None, :]
    low, high = auc_interval(scores, arms)
    return f"{((above > 0) + 0.5 * (above == 0)).mean():.2f} [{low:.2f}, {high:.2f}]"


def _share(found: np.ndarray) -> str:
    if not len(found):
        return "-"
    low, high = proportion_interval(int(found.sum()), len(found))
    return f"{found.sum()} of {len(found)} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    print("\n".join(summary([json.loads(line) for line in lines])))
