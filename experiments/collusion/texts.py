"""Vectors of the corpora, embedded once and kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.models.model_registry import load_embedder

__all__ = ["HERE", "OUT", "embedded", "rows"]

HERE = Path(__file__).parent
OUT = Path("build/experiments/collusion")


def rows(data: Path, file: str, most: int, seed: int) -> list[dict[str, str]]:
    """Rows of a corpus in random order."""
    found = [json.loads(line) for line in (data / file).read_text().split("\n") if line]
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[at] for at in order][:most]


def embedded(name: str, texts: list[str]) -> NDArray[np.float32]:
    """Return unit vectors by MiniLM, shape (texts, 384)."""
    path = OUT / f"{name}.npy"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        embed = load_embedder("minilm").embed
        parts = [embed(texts[at : at + 64]) for at in range(0, len(texts), 64)]
        np.save(path, np.concatenate(parts))
    return np.asarray(np.load(path))
