"""How near texts chosen by noisy votes come to the private records, by epsilon.

    python experiments/sage/private.py --data DIR [--private FILE] [--public N] [--texts N]

Each record's cosine (MiniLM) with the nearest text, against as many public texts drawn at random.
The vectors are kept; the noise is the operating system's and new in every repeat.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Document
from ragwitness.models.model_registry import load_embedder
from ragwitness.stats.evaluation import bootstrap_interval
from ragwitness.synthesis.generator import NamedRows
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private.evolution import (
    Candidates,
    PrivateConfig,
    PrivateEvolution,
)
from ragwitness.text.documents import load_documents

_OUT = Path("build/experiments/sage/private")
_EPSILONS = (1.0, 4.0, 10.0)
_BATCH = 32


def vectors(name: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed once; a file holds the vectors."""
    path = _OUT / f"{name}-{len(texts)}.npy"
    if not path.exists():
        embedder = load_embedder("minilm")
        found = [embedder.embed(texts[n : n + _BATCH]) for n in range(0, len(texts), _BATCH)]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.concatenate(found))
    held: NDArray[np.float32] = np.load(path)
    return held


def chosen(
    documents: Sequence[Document],
    pool: Sequence[str],
    known: dict[str, NDArray[np.float32]],
    private: PrivateConfig,
) -> list[str]:
    """Return the texts that one run chooses."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([known[text] for text in texts])

    method = PrivateEvolution(private, Candidates(tuple(pool), "minilm", lambda: embed))
    steps = method.make_all(
        documents,
        SyntheticGuard((), (), GuardConfig(pii="none")),
        NamedRows(None, "record of votes"),
    )
    try:
        next(steps)
    except StopIteration as stop:
        return [one.text for one in stop.value.made if one.text]
    raise RuntimeError("it asked a model")


def best(cosines: NDArray[np.float32], count: int) -> float:
    """Return the mean cosine of the texts that are each the most useful after those before."""
    reached = np.zeros(len(cosines), np.float32)
    for _ in range(count):
        gains = np.maximum(cosines - reached[:, None], 0).sum(axis=0)
        reached = np.maximum(reached, cosines[:, int(gains.argmax())])
    return float(reached.mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--private", default="healthcaremagic.jsonl")
    parser.add_argument("--public", type=int, default=1200)
    parser.add_argument("--texts", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    documents = load_documents(given.data / given.private).documents
    pool = [d.text for d in load_documents(given.data / "medical-qa.jsonl").documents]
    pool = list(dict.fromkeys(pool))
    random.Random(0).shuffle(pool)
    pool = pool[: given.public]
    private = vectors(Path(given.private).stem, [d.text for d in documents])
    public = vectors("public", pool)
    known = dict(zip(pool, public, strict=True))
    known |= dict(zip((d.text for d in documents), private, strict=True))
    cosines = private @ public.T
    place = {text: n for n, text in enumerate(pool)}
    rng = np.random.default_rng(0)

    def near(texts: Sequence[int]) -> NDArray[np.float32]:
        return cosines[:, list(texts)].max(axis=1)

    draws = [rng.permutation(len(pool))[: given.texts] for _ in range(10 * given.repeats)]
    chance = np.mean([near(draw) for draw in draws], axis=0)
    print(f"{len(documents)} records, {len(pool)} public texts, {given.texts} chosen")
    print(f"| at random ({len(draws)} draws) | {given.texts} | {chance.mean():.4f} | | |")
    print(
        f"| best, without privacy (greedy) | {given.texts} | {best(cosines, given.texts):.4f} | | |"
    )
    for epsilon in _EPSILONS:
        budget = PrivateConfig(epsilon, texts=given.texts)
        runs = [chosen(documents, pool, known, budget) for _ in range(given.repeats)]
        each = np.array([near([place[text] for text in run]) for run in runs])
        gain = each.mean(axis=0) - chance
        low, high = bootstrap_interval(
            lambda rows, gain=gain: gain[rows].mean(), np.ones(len(gain), bool)
        )
        size = np.mean([len(run) for run in runs])
        spread = each.mean(axis=1).std(ddof=1)
        print(
            f"| epsilon {epsilon:g} (sd {float(budget.variance) ** 0.5:.2f}) | {size:.1f} |"
            f" {each.mean():.4f} | {gain.mean():+.4f} ({low:+.4f} to {high:+.4f}) | {spread:.4f} |"
        )


if __name__ == "__main__":
    main()
