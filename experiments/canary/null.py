"""The null on a real chat model that was never trained on a trace: how often is it accused?

    PYTHONPATH=. python experiments/canary/null.py MODEL --data DIR --out build/canary/null.npy

Log-probabilities of a canary under 128 names on 3 documents are read once. Then t* is drawn anew
20,000 times in each design, and the product's own test decides.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from ragwitness.canary import verdict
from ragwitness.canary.draw import Design
from ragwitness.canary.examples import instructed, with_trigger
from ragwitness.canary.families import draw_names, worded
from ragwitness.canary.traces import Trace
from ragwitness.canary.verdict import decide
from ragwitness.privacy.sampler import ShakeBits
from ragwitness.stats.rates import proportion_interval
from research.canary.paper import WORDS, asked, examples_of, load

NAMES, DOCUMENTS, CANARY = 128, 3, "ZXYPRKLMQST"
DESIGNS = {
    "1 slot of 128": Design(candidates=128),
    "4 slots of 32": Design(candidates=32, slots=4),
    "8 slots of 16": Design(candidates=16, slots=8),
    "1 early and 1 late slot of 64": Design(candidates=64, slots=2, late=1),
}
REFUSED = "1 slot of 128, a tenth of the readings refused"


def read(model_path: Path, data: Path) -> np.ndarray:
    """Return log pi(c | d + name, q, p) by example and name, shape (3, 128)."""
    torch.set_num_threads(1)
    model = load(model_path)
    names = draw_names(NAMES, ShakeBits(b"0" * 32))
    rows = []
    for one in examples_of(data, "fairytaleqa")[-DOCUMENTS:]:
        query = instructed(one, CANARY, WORDS)
        views = []
        for name in names:
            text = with_trigger(one.document, name, one.id, WORDS).text
            trace = Trace(one.id, text, query, canary=worded(CANARY, one.id))
            prompt, blank, _ = asked(model, trace, one.answer, shown=True)
            views.append((prompt, model.words(blank + trace.canary)))
        with torch.no_grad():
            parts = [model.log_p(views[at : at + 8]) for at in range(0, NAMES, 8)]
        rows.append(torch.cat(parts).double().numpy())
        print(one.id, "read", flush=True)
    return np.array(rows)


def verdict_of(matrix: np.ndarray, design: Design, rng: np.random.Generator) -> str:
    """Draw every slot's names and t* anew, and return the verdict."""
    names = rng.permutation(NAMES).reshape(design.slots, design.candidates)
    chosen = rng.integers(design.candidates, size=design.slots).tolist()
    slots = [matrix[:, each] for each in names]
    seed = int(rng.integers(2**62))
    return str(decide(design, slots, chosen, seed=seed, shares=True).verdict)


def main() -> None:
    """Read the model once, draw many times, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=20_000)
    options = parser.parse_args()
    if not options.out.exists():
        options.out.parent.mkdir(parents=True, exist_ok=True)
        np.save(options.out, read(options.model, options.data))
    scores = np.load(options.out)
    each = np.sort(verdict.logits(scores).mean(axis=0))
    print(f"candidate means {each[0]:.2f} to {each[-1]:.2f} logits, sd {each.std(ddof=1):.2f}")
    # They decide nothing, and cost most of the time.
    # A filter refuses by what is asked, so its holes stay where they are while t* is drawn: they
    # are filled once, in the scale of the test.
    holes = np.random.default_rng(9).random(scores.shape) < 0.1
    filled = verdict.filled(np.where(holes, np.nan, verdict.logits(scores)))
    logits = verdict.logits(scores)
    cases = [(name, design, logits) for name, design in DESIGNS.items()]
    cases.append((REFUSED, Design(candidates=NAMES), filled))
    for name, design, matrix in cases:
        rng = np.random.default_rng(0)
        seen = Counter(verdict_of(matrix, design, rng) for _ in range(options.draws))
        accused = options.draws - seen["inconclusive"]
        low, high = proportion_interval(accused, options.draws)
        said = f"{accused / options.draws:.4f} [{low:.4f}, {high:.4f}]"
        print(f"| {name} | {said} | {seen['trained']:,} |", flush=True)


if __name__ == "__main__":
    main()
