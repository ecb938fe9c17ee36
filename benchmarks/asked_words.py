"""What the words find that a public model calls likely to be asked, beside the rarest word.

    python -m benchmarks.asked_words --data DIR [--draws 5]

The model is fitted on the public sides of benchmarks/usefulness.py alone: medical-qa for
HealthCareMagic, and for FairytaleQA the stories that are not asked below. ``own`` is the model of a
corpus's own public side, ``other`` that of the other corpus. The private sides are asked 1,000
questions each, at the number of groups of ``Placement.of``. The interval is over questions.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.groups import recall
from benchmarks.usefulness import pairs_of
from ragwitness.comparison.differences import paired_difference
from ragwitness.privacy.codes import Placement, asked_model

_CORPORA = ("healthcaremagic", "fairytaleqa")
_ASKED, _TOP = 1000, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    sides = {name: pairs_of(name, options.data) for name in _CORPORA}
    models = {}
    for name, (_, (texts, pairs)) in sides.items():
        questions: dict[int, list[str]] = {}
        for at, question in pairs:
            questions.setdefault(at, []).append(question)
        models[name] = asked_model([texts[at] for at in questions], [*questions.values()])
    print("| corpus | epsilon | groups | rarest | model | asked | gain |")
    print("|---|---|---|---|---|---|---|")
    for name, ((texts, pairs), _) in sides.items():
        for epsilon in (3.0, 10.0):
            rule = Placement.of(len(texts), _TOP, epsilon)
            hits = {
                which: recall(placement, texts, pairs[:_ASKED], options.draws)
                for which, placement in {
                    "rarest": rule,
                    "own": replace(rule, asked=models[name]),
                    "other": replace(rule, asked=models[next(n for n in models if n != name)]),
                }.items()
            }
            means = {
                which: row.reshape(options.draws, -1).mean(axis=0) for which, row in hits.items()
            }
            for which in ("own", "other"):
                cells = f"{_rate(means['rarest'])} | {which} | {_rate(means[which])}"
                gain = _rate(means[which] - means["rarest"])
                print(f"| {name} | {epsilon:g} | {rule.groups:,} | {cells} | {gain} |", flush=True)


def _rate(values: NDArray[np.float64]) -> str:
    rate = paired_difference(values, np.zeros_like(values), seed=0)
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


if __name__ == "__main__":
    main()
