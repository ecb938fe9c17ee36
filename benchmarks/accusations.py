"""How often documents that are outside are accused, from the stored scores of a finished run.

    python benchmarks/accusations.py RESULT CORPUS [--case LABEL] [--splits 2000]

RESULT is the table.json of `ragwitness lab reproduce`, or the result.json of `ragwitness evaluate`;
CORPUS is the file that it divided. No target is asked. Scores of the audited documents outside are
divided at random into 50, 100 or 200 that calibrate and 40 in question.

Over all divisions of one pool the mean share with p <= alpha cannot exceed alpha, whatever the
scores are; equal scores keep it below. What can differ between methods, and what one auditor sees,
is the spread of single audits, and how often an audit accuses anybody after correction.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.membership.measure import divide
from ragwitness.stats.p_values import benjamini_hochberg, conformal_p_values, largest_tie
from ragwitness.stats.rates import proportion_interval
from ragwitness.text.documents import load_documents

_CALIBRATE, _ASKED, _LEVELS = (50, 100, 200), 40, (0.05, 0.01)


def cases(stored: Mapping[str, Any], label: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the evaluations of a table, or the one that a file holds."""
    for case in stored.get("cases", [stored]):
        name = case.get("label", "")
        if name.startswith(label):
            yield name, case


def outside(case: Mapping[str, Any], corpus: Path) -> set[str]:
    """Return the ids of the audited documents outside: the same division of the corpus again.

    Raises:
        SystemExit: The corpus is another one.
    """
    sizes, seed = case["sizes"], int(case["settings"]["seed"])
    split = divide(
        load_documents(corpus).documents,
        members=sizes["members"],
        non_members=sizes["non-members"],
        calibration=sizes["calibration outside"],
        seed=seed,
        shadow=False,
    )
    ids = {one.id for one in split.non_members}
    audited = ids | {one.id for one in split.members}
    for name, audit in case["audits"].items():
        if lost := set(audit["scores"]) - audited:
            raise SystemExit(f"{name} scored {min(lost)}, which is not of this corpus' division.")
    return ids


def rates(scores: Sequence[float], calibrate: int, splits: int) -> dict[float, tuple[float, ...]]:
    """By level: mean share with p <= alpha, its 2.5 and 97.5 %, and accusing audits of all.

    Args:
        scores: Of documents outside, shape (n,).
        calibrate: Documents of them that calibrate.
        splits: Random divisions.
    """
    values, rng = np.asarray(scores, dtype=np.float64), np.random.default_rng(0)
    shares: dict[float, list[float]] = {level: [] for level in _LEVELS}
    accused = dict.fromkeys(_LEVELS, 0)
    for _ in range(splits):
        mixed = rng.permutation(values)
        p = conformal_p_values(mixed[calibrate : calibrate + _ASKED], mixed[:calibrate])
        q = benjamini_hochberg(p)
        for level in _LEVELS:
            shares[level].append(float(np.mean(p <= level)))
            accused[level] += bool((q <= level).any())
    return {
        level: (
            float(np.mean(own)),
            *map(float, np.percentile(own, (2.5, 97.5))),
            accused[level] / splits,
        )
        for level, own in shares.items()
    }


def main() -> None:
    """Print a row for each method, number of calibration documents and level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path, nargs="?")
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--case", default="")
    parser.add_argument("--splits", type=int, default=2000)
    options = parser.parse_args()
    if options.result is None or options.corpus is None:
        print("skipped: give a stored result and the corpus that it divided")
        return
    heads = ("case", "audit", "outside", "largest tie", "calibrate", "alpha", "p ≤ alpha",
             "in 95 % of audits", "audits that accuse anybody")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for label, case in cases(json.loads(options.result.read_text()), options.case):
        ids = outside(case, options.corpus)
        for name, audit in case["audits"].items():
            scores = [score for one, score in audit["scores"].items() if one in ids]
            for calibrate in _CALIBRATE:
                if calibrate + _ASKED > len(scores):
                    print(
                        f"| {label} | {name} | {len(scores)} | too few to calibrate {calibrate} |"
                    )
                    continue
                found = rates(scores, calibrate, options.splits)
                for level, (mean, low, high, accusing) in found.items():
                    start, end = proportion_interval(round(accusing * options.splits),
                                                     options.splits)  # fmt: skip
                    print(
                        f"| {label} | {name} | {len(scores)} | {largest_tie(scores)} | {calibrate}"
                        f" | {level:g} | {mean:.4f} | {low:.3f} to {high:.3f}"
                        f" | {accusing:.4f} [{start:.4f}, {end:.4f}] |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
