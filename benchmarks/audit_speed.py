"""Audit speed in process: documents per second in both modes, and their ratio.

python benchmarks/audit_speed.py [documents]
"""

from __future__ import annotations

import asyncio
import sys
import time

from ragwitness.membership.methods.srag import SRag, SRagConfig
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.worker import Worker
from ragwitness.text.sample import load_sample


def main() -> None:
    """Probe the same documents in both modes, without a journal."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    corpus = load_sample()
    target = LabTarget(build_system(corpus[:600]))
    proxy = load_language_model("reader")
    seconds = {}
    for mode in ("few", "probing"):
        audit = SRag(proxy, SRagConfig(mode=mode))  # type: ignore[arg-type]
        start = time.perf_counter()
        outcomes = asyncio.run(Worker(target).run(audit, corpus[:n], mode))
        seconds[mode] = time.perf_counter() - start
        queries = sum(outcome.queries for outcome in outcomes) / n
        print(f"{mode}: {n / seconds[mode]:.2f} documents/s, {queries:.1f} queries/document")
    print(f"probing / few: {seconds['probing'] / seconds['few']:.1f}x the time")


if __name__ == "__main__":
    main()
