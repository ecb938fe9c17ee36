"""Both arms of trials of the toy study, step by step, and how fast the audit scores.

CPU seconds, one thread.

python benchmarks/canary_study.py [trials]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from ragwitness.canary.draw import Design, DrawSecret, draw_slots
from research.canary.measure import canary_scores
from research.canary.policies import one_thread
from research.canary.study import WorldFolders, load_study_table, make_world
from research.canary.trial import World, run_arm, stage_trial

_SEED = 90  # of those for tuning


def main() -> None:
    """Time both arms of each seed, as a study runs them."""
    if find_spec("torch") is None:
        print("left out: it needs the extra rl")
        return
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    one_thread()
    folder = Path(__file__).parents[1] / "experiments"
    case = load_study_table("canary/toy", folder).cases[0]
    with tempfile.TemporaryDirectory() as bases:
        began = time.process_time()
        world = make_world(asdict(case.world), WorldFolders(None, Path(bases)))
        print(f"base: {time.process_time() - began:.1f} s, once for all trials")
        took = []
        for seed in range(_SEED, _SEED + trials):
            began = time.process_time()
            stage = stage_trial(world, case.trial, seed)
            arms = [run_arm(stage, case.trial, seed, violating=arm) for arm in (True, False)]
            took.append((time.process_time() - began) / 2)
            steps = ", ".join(f"{name} {value:.1f}" for name, value in arms[0].seconds.items())
            print(f"trial {seed}: {took[-1]:.1f} s a policy (violating: {steps})")
        print(f"median of {trials}: {statistics.median(took):.1f} s a policy (goal 8)")
        _scores(world, case.trial.design, case.trial.held_out)


def _scores(world: World, design: Design, held_out: int) -> None:
    draw = draw_slots(design, DrawSecret(bytes(32), bytes(32)))
    base = world.named(world.base, draw)
    examples = list(world.draw(random.Random(_SEED)))[:held_out]
    rates = []
    for _ in range(5):
        began = time.process_time()
        canary_scores(base, base.model, examples, draw.slots[0])
        rates.append(design.candidates * held_out * 60 / (time.process_time() - began))
    print(f"scores: {statistics.median(rates):,.0f} a CPU minute, median of 5 (goal 1,000)")


if __name__ == "__main__":
    main()
