"""S-RAG with probabilities estimated from samples, against the same audit with log-probabilities.

    python benchmarks/sampling.py [--members 20] [--corpus FILE] [--modes single,probing]

A lab system over 100 documents; members of it and as many documents outside are scored without a
classifier. Fewer samples are the first of the most and cost nothing more. Answers are kept
under build/: a broken run goes on.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragwitness.asking.journal import Journal
from ragwitness.asking.worker import Outcome, Worker
from ragwitness.membership.srag import SRag, SRagConfig
from ragwitness.models.registry import load_language_model
from ragwitness.rag.build import build_system
from ragwitness.rag.config import RagConfig
from ragwitness.rag.target import LabTarget
from ragwitness.stats.evaluation import auc
from ragwitness.stats.intervals import auc_interval
from ragwitness.text.documents import load_documents
from ragwitness.text.sample import load_sample
from ragwitness.types import Document

_SAMPLES = (5, 10, 20)
_STORED = 100
_OUT = Path("build/benchmarks/sampling")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--corpus", help="Documents; default: the generated corpus.")
    parser.add_argument("--modes", default="single,probing")
    given = parser.parse_args()
    documents = load_documents(given.corpus).documents if given.corpus else load_sample()
    order = np.random.default_rng(0).permutation(len(documents))
    drawn = [documents[i] for i in order[: _STORED + given.members]]
    audited = [*drawn[: given.members], *drawn[_STORED:]]
    for mode in given.modes.split(","):
        asyncio.run(_compare(mode, drawn[:_STORED], audited, given.members))


async def _compare(
    mode: str, stored: Sequence[Document], audited: Sequence[Document], members: int
) -> None:
    proxy = load_language_model("reader")
    target = LabTarget(build_system(list(stored), RagConfig()))
    _OUT.mkdir(parents=True, exist_ok=True)
    with Journal(_OUT / "answers.jsonl") as journal:
        worker = Worker(target, journal, 4)
        exact: list[Outcome] | None = None
        for samples in (0, *_SAMPLES):
            audit = SRag(proxy, SRagConfig(mode=mode, sampled=samples))  # type: ignore[arg-type]
            outcomes = await worker.run(audit, audited, audit.name)
            exact = exact or outcomes
            print(audit.name, _auc(outcomes, members), _covered(exact, outcomes), sep="; ")


def _auc(outcomes: Sequence[Outcome], members: int) -> str:
    """The AUC of the audit's own score; a document without one counts as outside."""
    known = [o.score.value for o in outcomes if o.score.value is not None]
    lowest = min(known) - 1.0
    values = np.array([lowest if o.score.value is None else o.score.value for o in outcomes])
    labels = np.arange(len(values)) < members
    low, high = auc_interval(values, labels)
    queries = sum(o.queries for o in outcomes) / len(outcomes)
    return (
        f"AUC {auc(values, labels):.3f} ({low:.3f} to {high:.3f}), n = {members} +"
        f" {len(values) - members}, {len(values) - len(known)} without a score,"
        f" {queries:.1f} queries per document"
    )


def _covered(exact: Sequence[Outcome], sampled: Sequence[Outcome]) -> str:
    """How often a sampled interval holds the probability that the log-probabilities give."""
    inside = total = 0
    for one, other in zip(exact, sampled, strict=True):
        known = {(e.word, e.before): e.probability for e in one.score.evidence}
        for e in other.score.evidence:
            p = known.get((e.word, e.before))
            read = (e.probability.low, e.probability.high) != (0.0, 1.0)
            if p is not None and p.low == p.high and read:
                total += 1
                inside += e.probability.low <= p.low <= e.probability.high
    return f"{inside} of {total} probabilities inside their interval"


if __name__ == "__main__":
    main()
