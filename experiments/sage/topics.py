"""Private topics beside private evolution at equal epsilon, without a model.

    python experiments/sage/topics.py --data DIR [--texts N] [--repeats N]

Two figures of the texts that came out: the mean cosine (word weights of the public texts) of a
record with its nearest text, and the share of the records' public words that stand in any text.
Beside them as many public texts drawn at random. The noise is the operating system's.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragwitness.audits.synthesis import NamedRows
from ragwitness.defenses.synthetic.guard import GuardConfig, SyntheticGuard
from ragwitness.defenses.synthetic.private.evolution import (
    Candidates,
    PrivateConfig,
    PrivateEvolution,
)
from ragwitness.defenses.synthetic.private.sources import content_words, word_weights
from ragwitness.defenses.synthetic.private.topics import PrivateTopics
from ragwitness.text.documents import load_documents
from ragwitness.types import Document

_EPSILONS = (1.0, 4.0, 10.0)


def texts_of(method: PrivateTopics | PrivateEvolution, documents: Sequence[Document]) -> list[str]:
    """Return the texts that one run makes."""
    guard = SyntheticGuard((), (), GuardConfig(pii="none"))
    steps = method.make_all(documents, guard, NamedRows(None, "record of votes"))
    try:
        next(steps)
    except StopIteration as stop:
        return [one.text for one in stop.value.made if one.text]
    raise RuntimeError("it asked a model")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    documents = load_documents(given.data / "healthcaremagic.jsonl").documents
    pool = list(
        dict.fromkeys(d.text for d in load_documents(given.data / "medical-qa.jsonl").documents)
    )
    random.Random(0).shuffle(pool)
    pool = pool[:1200]
    embed = word_weights(pool)
    vectors = embed([one.text for one in documents])
    known = {word for text in pool for word in content_words(text)}
    words = Counter(w for one in documents for w in content_words(one.text) if w in known)

    def told(texts: Sequence[str]) -> tuple[float, float]:
        near = float((vectors @ embed(texts).T).max(axis=1).mean()) if texts else 0.0
        held = {word for text in texts for word in content_words(text)}
        return near, sum(n for w, n in words.items() if w in held) / words.total()

    def row(name: str, runs: list[list[str]]) -> None:
        found = np.array([told(one) for one in runs])
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
        size = np.mean([len(one) for one in runs])
        length = np.mean([len(text.split()) for one in runs for text in one])
        print(
            f"| {name} | {size:.0f} | {length:.0f} | {mean[0]:.3f} ({spread[0]:.3f}) |"
            f" {mean[1]:.3f} ({spread[1]:.3f}) |",
            flush=True,
        )

    print(f"{len(documents)} records, {len(pool)} public texts, {given.repeats} runs each")
    rng = random.Random(1)
    row("public, at random", [rng.sample(pool, given.texts) for _ in range(given.repeats)])
    candidates = Candidates(tuple(pool), "words", lambda: embed)
    for epsilon in _EPSILONS:
        budget = PrivateConfig(epsilon, texts=given.texts)
        for kind in (PrivateEvolution, PrivateTopics):
            made = [texts_of(kind(budget, candidates), documents) for _ in range(given.repeats)]
            row(f"{kind.name}, epsilon {epsilon:g}", made)


if __name__ == "__main__":
    main()
