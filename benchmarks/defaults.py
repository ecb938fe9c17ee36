"""Which audit should be the default: verdicts found per query and per CPU second, and errors.

    python benchmarks/defaults.py DATA [--n 60] [--only CORPUS] [--world WORLD] [--method METHOD]
    python benchmarks/defaults.py --table

DATA is the folder of the data sets. Half of a corpus is indexed, at most 500 documents; n of them
and 2 n others are scored by each method in each world of experiments/worlds.toml. The scores of the
others are divided 200 times into 5 of 6 that calibrate and 1 of 6 in question, so figures are means
over calibration sets. The auditor's own seconds are those of a second pass, whose answers are kept,
and of the shadow system. What is done is kept: the same command goes on. One process a corpus may
run at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from ragwitness.core.types import Audit, Capability, Document
from ragwitness.membership.measure import divide
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan, among, learns
from ragwitness.membership.run import Statistic, learn
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.lab import rag_config
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Worker
from ragwitness.stats.evaluation import auc, auc_interval
from ragwitness.stats.p_values import benjamini_hochberg, conformal_p_values
from ragwitness.stats.rates import proportion_interval
from ragwitness.text.documents import load_documents
from ragwitness.text.sample import load_sample

_ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(_ROOT))

_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_SAMPLE = "sample"  # documents of a few templates, generated
_CORPORA = ("healthcaremagic.jsonl", "pubmedqa.jsonl", "wikitext-2-valid.txt", _SAMPLE)
_WORLDS = ("easy", "hard")
_METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "rag-mia": ("rag-mia", {}),
    "mba": ("mba", {}),
    "s-rag": ("s-rag", {}),
    "s2mia": ("s2mia", {}),
    "s-rag:paper": ("s-rag:paper", {}),
    "passages": ("passages", {}),  # of a system that shows what it retrieved
}
_INDEXED, _SHORTEST, _SPLITS, _ALPHA = 500, 40, 200, 0.05


def corpus(path: Path) -> list[Document]:
    """Return at most 1,000 documents; those of a plain text are its longer paragraphs."""
    split = "paragraphs" if path.suffix == ".txt" else None
    found = (
        load_sample() if path.name == _SAMPLE else load_documents(path, split=split).documents  # type: ignore[arg-type]
    )
    long = [one for one in found if len(one.text.split()) >= _SHORTEST]
    return random.Random(0).sample(long, min(2 * _INDEXED, len(long)))


async def _statistic(audit: Audit, documents: tuple[Document, ...], folder: Path) -> Statistic:
    """The audit's own score, or a classifier of the default shadow system, its seconds kept."""
    if not learns(audit):
        return Statistic()
    began = time.process_time()
    # The shadow system is the same everywhere: whoever comes first asks it, the others wait.
    with FileLock(folder / "shadow.lock"), ResponseStore(folder / "shadow.jsonl") as journal:
        found = await learn(AuditPlan(documents), audit, load_sample(), journal, None)
    if any(outcome.sent for outcome in found.asked):
        spent = folder / "shadow.json"
        before = json.loads(spent.read_text())["seconds"] if spent.exists() else 0.0
        spent.write_text(json.dumps({"seconds": before + time.process_time() - began}))
    return found


def _file(method: str) -> str:
    return method.replace(" ", "-").replace(":", "-")


async def _cell(  # one process's work
    data: Path, out: Path, world: str, name: str, method: str, n: int
) -> None:
    """Score members and others; the second pass, with all answers kept, is timed."""
    from research.reproduce.tables import load_world

    folder, cell = out / world / Path(name).stem, _file(method)
    folder.mkdir(parents=True, exist_ok=True)
    split = divide(
        corpus(data / name), members=n, non_members=2 * n, calibration=2, seed=0, shadow=False
    )
    asked = (*split.members, *split.non_members)
    registered, options = _METHODS[method]
    proxy = load_language_model("reader")
    audit = among(build_audit(registered, proxy, configure(registered, options)), asked)
    setting = load_world(world, _ROOT / "experiments")
    config = replace(rag_config(generator=setting.generator), **dict(setting.rag))  # type: ignore[arg-type]
    target = LabTarget(build_system(split.indexed, config))
    if Capability.CONTEXTS in audit.requires:
        target = target.for_owner()
    statistic = await _statistic(audit, asked, out)
    began = time.process_time()
    with ResponseStore(folder / "answers.jsonl") as journal:
        found: list[Outcome] = await Worker(target, journal, 8).run(audit, asked, method, None)
    seconds = time.process_time() - began
    sent = sum(outcome.sent for outcome in found)
    print(f"{world}, {name}, {method}: {sent} sent, {seconds:.0f} CPU-s", flush=True)
    if sent:
        return
    values = statistic.values(found)
    shadow = json.loads((out / "shadow.json").read_text())["seconds"] if statistic.asked else 0.0
    row = {
        "world": world,
        "corpus": name,
        "method": method,
        "members": values[: len(split.members)],
        "others": values[len(split.members) :],
        "queries": sum(outcome.queries for outcome in found),
        "own": seconds,
        "shadow": shadow,
    }
    (folder / f"{cell}.json").write_text(json.dumps(row), encoding="utf-8")


def figures(row: dict[str, Any]) -> dict[str, Any]:
    """Return what one method found in one world, over random divisions of the others' scores."""
    members, others = (
        np.array([v for v in row[key] if v is not None], dtype=np.float64)
        for key in ("members", "others")
    )
    asked = len(row["others"]) // 6  # documents in question that are outside
    rng = np.random.default_rng(0)
    found, false, shares, hits, tests = [], [], [], 0, 0
    for _ in range(_SPLITS):
        mixed = rng.permutation(others)
        outside, calibrate = mixed[:asked], mixed[asked:]
        p = conformal_p_values(np.concatenate([members, outside]), calibrate.tolist())
        called = benjamini_hochberg(p) <= _ALPHA
        right, wrong = int(called[: members.size].sum()), int(called[members.size :].sum())
        found.append(right)
        false.append(wrong)
        shares.append(wrong / max(1, right + wrong))
        hits += int((p[members.size :] <= _ALPHA).sum())
        tests += outside.size
    labels = np.arange(members.size + others.size) < members.size
    both = np.concatenate([members, others])
    own = row["own"] + row["shadow"]
    return {
        "auc": (auc(both, labels), *auc_interval(both, labels)),
        "found": float(np.mean(found)),
        "members": len(row["members"]),
        "false": float(np.mean(false)),
        "fdr": float(np.mean(shares)),
        "p": hits / max(1, tests),
        "unscorable": sum(v is None for v in (*row["members"], *row["others"])),
        "queries": row["queries"] / (len(row["members"]) + len(row["others"])),
        "per query": float(np.mean(found)) / row["queries"],
        "own": own,
        "per second": float(np.mean(found)) / own,
    }


def table(out: Path) -> None:
    """Print a row for each world, corpus and method that is done."""
    rows = [json.loads(path.read_text()) for path in sorted(out.glob("*/*/*.json"))]
    names = (
        "world, corpus, method, AUC, found, falsely in, share of wrong verdicts,"
        " others with p ≤ .05, unscorable, queries a document, found per 100 queries,"
        " own CPU-s, found per own CPU-s"
    ).split(", ")
    print(f"| {' | '.join(map(str.strip, names))} |\n{'|---' * len(names)}|")
    sums: dict[str, list[dict[str, Any]]] = {}
    order = list(_METHODS)
    for row in sorted(rows, key=lambda r: (r["world"], r["corpus"], order.index(r["method"]))):
        one = figures(row)
        sums.setdefault(row["method"], []).append(one)
        area = "{:.3f} [{:.3f}, {:.3f}]".format(*one["auc"])
        print(
            f"| {row['world']} | {Path(row['corpus']).stem} | {row['method']} | {area}"
            f" | {one['found']:.1f} of {one['members']} | {one['false']:.2f} | {one['fdr']:.3f}"
            f" | {one['p']:.3f} | {one['unscorable']} | {one['queries']:.2f}"
            f" | {100 * one['per query']:.1f} | {one['own']:.1f} | {one['per second']:.2f} |"
        )
    print()
    for method in order:
        if ones := sums.get(method):
            members = sum(one["members"] for one in ones)
            right = sum(one["found"] for one in ones)
            low, high = proportion_interval(round(right), members)
            print(
                f"{method}: {right / members:.3f} [{low:.3f}, {high:.3f}] of {members} members in"
                f" {len(ones)} cells, share of wrong verdicts"
                f" {np.mean([one['fdr'] for one in ones]):.3f}"
            )


def main() -> None:
    """Score what is left to score, each cell in processes of its own, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--only", choices=_CORPORA, help="one corpus")
    parser.add_argument("--world", choices=_WORLDS, help="one world")
    parser.add_argument("--method", choices=_METHODS, help="one method")
    parser.add_argument("--patience", type=float, default=3600, help="CPU seconds in all")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/defaults"))
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table or options.data is None:
        if options.table:
            table(options.out)
        else:
            print("skipped: give the folder of the data sets")
        return
    if options.cell:
        world, name, method = options.cell
        asyncio.run(_cell(options.data, options.out, world, name, method, options.n))
        return
    corpora, worlds, methods = (
        [one] if one else every
        for one, every in (
            (options.only, _CORPORA),
            (options.world, _WORLDS),
            (options.method, tuple(_METHODS)),
        )
    )
    for name, world, method in itertools.product(corpora, worlds, methods):
        done = options.out / world / Path(name).stem / f"{_file(method)}.json"
        command = [sys.executable, __file__, str(options.data), "--out", str(options.out)]
        command += ["--n", str(options.n)]
        while not done.exists():
            if sum(os.times()[:4]) > options.patience:
                print("The time is up; the same command goes on.", flush=True)
                return
            subprocess.run(
                [*command, "--cell", world, name, method], check=True, env=os.environ | _THREADS
            )


if __name__ == "__main__":
    main()
