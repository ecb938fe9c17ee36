"""An approximate index before the noise (section 4.8): what the user sees, what the auditor sees.

python experiments/collusion/hnsw.py

HNSW picks candidates without noise; noise decides among them. In the world without the target its
slot is no candidate of the target's own probe, so a single hit proves that it is there: no
privacy at all, whatever the noise. A flat scan noises every slot, and keeps the budget.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

import numpy as np
from texts import HERE, OUT

from ragwitness.collusion.separation import noise_for
from ragwitness.collusion.topk import TopHits, hit_probability, transfer_factor
from ragwitness.privacy.accounting.gaussian import mu_of
from ragwitness.privacy.accounting.inference import auc_of
from research.regimes import planted_index


def main() -> None:
    try:
        import faiss
    except ImportError:
        print("skipped: needs faiss, pip install 'ragwitness[faiss]'")
        return
    config = tomllib.loads((HERE / "config.toml").read_text())
    own = config["hnsw"]
    faiss.omp_set_num_threads(1)
    sigma = noise_for("classic", own["epsilon"], config["delta"], own["queries"])
    rng = np.random.default_rng(config["seed"])
    probe, index, decoy = planted_index(rng, own["documents"], own["dim"])
    without = index.copy()
    without[0] = decoy
    flat = TopHits(*(_flat(world, probe, sigma, own["top"]) for world in (index, without)))
    graph = TopHits(*(_hnsw(world, probe, sigma, own, faiss) for world in (index, without)))
    told: dict[str, Any] = {
        "sigma": sigma,
        "flat": [flat.present, flat.absent],
        "hnsw": [graph.present, graph.absent],
        "rows": [],
    }
    eta = transfer_factor(own["top"], own["documents"])
    print(
        f"sigma {sigma:.1f}; eta {eta:.4f}; hit probability flat {flat.present:.2e} against"
        f" {flat.absent:.2e}, HNSW {graph.present:.2e} against {graph.absent:.2e}"
    )
    print("| k | auditor: pooled scores | user: hits, flat | by eta | user: hits, HNSW |")
    print("|---|---|---|---|---|")
    for k in own["accounts"]:
        pooled = k * own["queries"]
        mu = mu_of(sigma, pooled)
        row = [auc_of(mu), flat.area(pooled), auc_of(eta * mu), graph.area(pooled)]
        told["rows"].append(
            {"k": k, "auditor": row[0], "flat": row[1], "eta": row[2], "hnsw": row[3]}
        )
        print(f"| {k} | " + " | ".join(f"{value:.4f}" for value in row) + " |")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "hnsw.json").write_text(json.dumps(told, indent=1) + "\n")


def _flat(index: np.ndarray, probe: np.ndarray, sigma: float, top: int) -> float:
    scores = index @ probe
    return hit_probability(float(scores[0]), scores[1:], sigma, top)


def _hnsw(
    index: np.ndarray, probe: np.ndarray, sigma: float, own: dict[str, Any], faiss: Any
) -> float:
    graph = faiss.IndexHNSWFlat(own["dim"], own["links"], faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = own["effort"]
    graph.hnsw.efSearch = own["effort"]
    graph.add(index.astype(np.float32))
    _, found = graph.search(probe[None].astype(np.float32), own["effort"])
    candidates = found[0][found[0] >= 0]
    if 0 not in candidates:
        return 0.0
    others = index[candidates[candidates != 0]] @ probe
    return hit_probability(float(index[0] @ probe), others, sigma, own["top"])


if __name__ == "__main__":
    main()
