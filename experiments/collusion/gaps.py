"""The gap of real document pairs under a trained embedder (section 4.5), over many pairs.

python experiments/collusion/gaps.py --data DIR

For pairs of different documents of one corpus, drawn at random and taken as nearest neighbours:
the gap 1 - cos that the paper's probe (the target's own vector) sees, the gap sqrt(2 - 2 cos) of
the best probe there is (along the difference), and what either means for the AUC.
"""

from __future__ import annotations

import argparse
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from texts import HERE, OUT, embedded, rows

from ragwitness.privacy.gaussian import auc_of
from research.separation import noise_for

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    own = config["gaps"]
    sigma = noise_for("classic", own["epsilon"], config["delta"], own["queries"])
    found: dict[str, Any] = {}
    for file, wanted in own["corpora"].items():
        kept = rows(options.data, file, wanted["texts"], config["seed"])
        texts = [row[wanted["field"]] for row in kept]
        name = wanted.get("vectors", f"{Path(file).stem}-{len(texts)}")
        _, once = np.unique(texts, return_index=True)
        vectors = embedded(name, texts)[np.sort(once)].astype(np.float64)
        rng = np.random.default_rng(config["seed"])
        first = rng.integers(0, len(vectors), own["pairs"])
        second = (first + rng.integers(1, len(vectors), own["pairs"])) % len(vectors)
        cosines = np.einsum("ij,ij->i", vectors[first], vectors[second])
        near = vectors @ vectors.T
        np.fill_diagonal(near, -1)
        found[Path(file).stem] = {
            "texts": len(vectors),
            "random pairs": _told(cosines, own, sigma),
            "nearest neighbours": _told(near.max(axis=1), own, sigma),
        }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "gaps.json").write_text(json.dumps(found, indent=1) + "\n")
    _print(found)


def _told(cosines: NDArray[np.float64], own: dict[str, Any], sigma: float) -> dict[str, Any]:
    gaps, best = 1 - cosines, np.sqrt(np.maximum(0, 2 - 2 * cosines))
    scale = {k: math.sqrt(k * own["queries"]) / sigma for k in own["accounts"]}
    areas = {k: np.array([auc_of(mu * max(gap, 0.0)) for gap in gaps]) for k, mu in scale.items()}
    growth = (areas[max(scale)].mean() - 0.5) / (areas[min(scale)].mean() - 0.5)
    return {
        "n": len(cosines),
        "gap": dict(zip(map(str, _QUANTILES), np.quantile(gaps, _QUANTILES).tolist(), strict=True)),
        "best probe over own vector": float(np.median(best / np.maximum(gaps, 1e-9))),
        "mean AUC by k": {str(k): float(area.mean()) for k, area in areas.items()},
        "AUC at largest k, 5 % to 95 %": np.quantile(areas[max(scale)], [0.05, 0.95]).tolist(),
        "growth of the mean excess": float(growth),
    }


def _print(found: dict[str, Any]) -> None:
    print("| corpus | pairs | n | gap 5 % | median | 95 % | best probe | AUC k=1 | k=16 | growth |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for corpus, kinds in found.items():
        for kind in ("random pairs", "nearest neighbours"):
            one = kinds[kind]
            gap, area = one["gap"], list(one["mean AUC by k"].values())
            print(
                f"| {corpus} | {kind} | {one['n']:,} | {gap['0.05']:.3f} | {gap['0.5']:.3f}"
                f" | {gap['0.95']:.3f} | {one['best probe over own vector']:.2f}x | {area[0]:.4f}"
                f" | {area[-1]:.4f} | {one['growth of the mean excess']:.2f} |"
            )


if __name__ == "__main__":
    main()
