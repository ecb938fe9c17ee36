"""How often is a document accused that is not in the system?

    python experiments/false-positives/run.py --data DIR [--audits a,b] [--scale 1.0]
    python experiments/false-positives/run.py --table

Half of a corpus is indexed; documents of the other half are scored by every audit, some to
calibrate, the rest as if they were in question. Answers are kept: a broken run goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from ragwitness.core.types import Decision
from ragwitness.membership.measure import CorpusSplit, divide
from ragwitness.membership.method_registry import AUDITS, build_audit, configure
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.run import Statistic, learn
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.membership.verdicts import judge
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Worker
from ragwitness.stats.p_values import conformal_p_values
from ragwitness.stats.rates import proportion_interval
from ragwitness.text.documents import load_documents

_HERE = Path(__file__).parent
_OUT = Path("build/experiments/false-positives")
_LEVELS = (0.05, 0.01)


def _split(config: dict[str, Any], data: Path, scale: float) -> CorpusSplit:
    documents = load_documents(data / config["corpus"]).documents
    audited, calibration = (
        max(20, round(config[key] * scale)) for key in ("audited", "calibration")
    )
    return divide(
        documents, members=2, non_members=audited, calibration=calibration, seed=config["seed"]
    )


async def _audit(config: dict[str, Any], data: Path, name: str, scale: float) -> None:
    split = _split(config, data, scale)
    audit = build_audit(name, load_language_model("reader"), configure(name))
    audit = among(audit, (*split.non_members, *split.known_out))
    target = LabTarget(build_system(split.indexed, RagConfig()))
    # min-k and min-k++ read the same answers.
    with ResponseStore(_OUT / f"{name.removesuffix('++')}.answers.jsonl") as journal:
        statistic = Statistic()
        if getattr(audit, "learns", False):
            auxiliary = load_documents(data / config["auxiliary"]).documents
            plan = AuditPlan(documents=split.non_members, shadow=ShadowConfig())
            shadow = auxiliary[: config["auxiliary_size"]]
            statistic = await learn(plan, audit, shadow, journal, None)
        worker = Worker(target, journal, 4)
        known = await worker.run(audit, split.known_out, name, None)
        asked = await worker.run(audit, split.non_members, name, None)
    outside = [value for value in statistic.values(known) if value is not None]
    accused = {
        f"{level:g}": sum(
            verdict.decision is Decision.IN
            for verdict in judge(statistic.judged(asked), outside=outside, inside=(), alpha=level)
        )
        for level in _LEVELS
    }
    found = {
        "audit": name,
        "calibration": outside,
        "audited": [value for value in statistic.values(asked) if value is not None],
        "unscorable": sum(value is None for value in statistic.values(asked)),
        "reasons": Counter(o.score.reason or "" for o in asked if o.score.value is None),
        "accused": accused,
        "queries": sum(outcome.queries for outcome in asked) / max(1, len(asked)),
    }
    (_OUT / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    print(f"{name}: done", flush=True)


def _rates(values: NDArray[np.float64], outside: int, splits: int) -> dict[float, float]:
    """Mean false-positive rate over random divisions into calibration and audited."""
    rng = np.random.default_rng(0)
    hits = dict.fromkeys(_LEVELS, 0.0)
    for _ in range(splits):
        mixed = rng.permutation(values)
        p = conformal_p_values(mixed[outside:], mixed[:outside])
        for level in _LEVELS:
            hits[level] += float(np.mean(p <= level)) / splits
    return hits


def _range(alpha: float, outside: int, audited: int) -> tuple[float, float]:
    """95 % of what exchangeable documents give, the draw of the calibration set included.

    The rate beyond m calibration scores is Beta(k, m + 1 - k), k = floor(alpha (m + 1)), if no two
    scores tie; of n audited documents the false positives are then beta-binomial.
    """
    k = math.floor(alpha * (outside + 1) + 1e-9)
    if not k:
        return 0.0, 0.0
    found = betabinom(audited, k, outside + 1 - k)
    return float(found.ppf(0.025)) / audited, float(found.ppf(0.975)) / audited


def _table(splits: int) -> None:
    columns = "audit, calibration, audited, queries, unscorable, p ≤ .05, p ≤ .01"
    columns += (
        ", range at .05, range at .01, all splits .05, all splits .01, accused .05, accused .01"
    )
    print(f"| {columns.replace(', ', ' | ')} |")
    print("|---" * 13 + "|")
    for path in sorted(_OUT.glob("*.json")):
        found = json.loads(path.read_text())
        outside, audited = found["calibration"], found["audited"]
        if min(len(outside), len(audited)) < 2:
            print(f"| {found['audit']} | too few scored |")
            continue
        p = conformal_p_values(audited, outside)
        cells = []
        for level in _LEVELS:
            hits = int(np.sum(p <= level))
            low, high = proportion_interval(hits, p.size)
            cells.append(f"{hits / p.size:.3f} [{low:.3f}, {high:.3f}]")
        for level in _LEVELS:
            low, high = _range(level, len(outside), p.size)
            cells.append(f"{low:.3f} to {high:.3f}")
        mean = _rates(np.array([*outside, *audited]), len(outside), splits)
        cells += [f"{mean[level]:.4f}" for level in _LEVELS]
        cells += [f"{found['accused'][f'{level:g}']}" for level in _LEVELS]
        print(f"| {found['audit']} | {len(outside)} | {len(audited)} | {found['queries']:.1f}"
              f" | {found['unscorable']} | " + " | ".join(cells) + " |")  # fmt: skip


def main() -> None:
    """Run the audits named, or print the table of the finished ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--audits", default="all")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    config = tomllib.loads((_HERE / "config.toml").read_text())
    if options.table:
        _table(config["splits"])
        return
    if not options.data or not options.data.is_dir():
        raise SystemExit("skipped: give the folder of the data sets with --data")
    _OUT.mkdir(parents=True, exist_ok=True)
    names = list(AUDITS) if options.audits == "all" else options.audits.split(",")
    for name in names:
        if not (_OUT / f"{name}.json").exists():
            asyncio.run(_audit(config, options.data, name, options.scale))


if __name__ == "__main__":
    main()
