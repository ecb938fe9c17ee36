"""How often ``collusion estimate`` is wrong about benign logs of real questions, by their shape.

    python -m benchmarks.benign_logs --data DIR [--logs 200] [--shapes own burst …]

Questions are FairytaleQA's, embedded by MiniLM; a topic is a story. A log has 16 accounts of 6
queries, the ordinary traffic 80 accounts of another day: half a log of any shape comes from the
same rule as the ordinary traffic, except in ``circle``. No account colludes in any of them but in
``coalition``, which shows what is found.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.detectors import Settings
from ragwitness.collusion.estimate import LogComparison, estimate
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.query_log import make_log
from ragwitness.stats.rates import proportion_interval

_DAY, _HOUR = 86_400.0, 3600.0
_ACCOUNTS, _QUERIES, _ORDINARY = 16, 6, 80
_BOT = "Is the service up?"
_ESTIMATORS = ("pairs", "means", "spectral", "communities")
SHAPES = {
    "own": "each account asks about three stories of its own",
    "burst": "a third of the accounts asks about one story for an hour",
    "homework": "a third of the accounts asks the same 3 of its 6 questions",
    "circle": "a narrower circle (6 stories) than the ordinary traffic (all)",
    "bots": "every sixth account asks one fixed question alone",
    "coalition": "*a coalition*: a quarter of the accounts asks one question, the others as above",
}

_Window = tuple[list[str], NDArray[np.float64], NDArray[np.float64]]


class Questions:
    """Real questions by story.

    Args:
        data: Folder of fairytaleqa.jsonl.
    """

    def __init__(self, data: Path) -> None:
        with (data / "fairytaleqa.jsonl").open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        asked = {row["question"]: row["story"] for row in rows}
        embedder = load_embedder("minilm")
        self.vectors = np.asarray(embedder.embed([*asked]), np.float64)
        self.bot = np.asarray(embedder.embed([_BOT]), np.float64)[0]
        stories = np.array([*asked.values()])
        self.of_story = [np.flatnonzero(stories == story) for story in np.unique(stories)]

    def window(
        self, shape: str, prefix: str, accounts: int, topics: Any, rng: np.random.Generator
    ) -> _Window:
        """One day: accounts, times and vectors, the stories asked about among ``topics``."""
        times = rng.uniform(0, _DAY, (accounts, _QUERIES))
        vectors = np.empty((accounts, _QUERIES, self.vectors.shape[1]))
        for at in range(accounts):
            own = rng.choice(topics, 3, replace=False)
            picked = [rng.choice(self.of_story[story]) for story in rng.choice(own, _QUERIES)]
            vectors[at] = self.vectors[picked]
        group, morning = rng.permutation(accounts)[: accounts // 3], 9 * _HOUR
        if shape == "burst":
            story = self.of_story[rng.integers(len(self.of_story))]
            for at in group:
                few = len(story) < _QUERIES
                vectors[at] = self.vectors[rng.choice(story, _QUERIES, replace=few)]
                times[at] = morning + rng.uniform(0, _HOUR, _QUERIES)
        if shape == "homework":
            same = self.vectors[rng.choice(len(self.vectors), 3, replace=False)]
            for at in group:
                # Spelling and casing differ a little from one account to the other.
                moved = same + 0.02 * rng.standard_normal(same.shape) / np.sqrt(same.shape[1])
                vectors[at, :3] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
                times[at, :3] = morning + rng.uniform(0, _HOUR, 3)
        if shape == "bots":
            vectors[::6] = self.bot
        if shape == "coalition":
            one = self.vectors[rng.integers(len(self.vectors))]
            moved = one + 0.02 * rng.standard_normal(vectors[::4].shape) / np.sqrt(one.size)
            vectors[::4] = moved / np.linalg.norm(moved, axis=2, keepdims=True)
        names = [f"{prefix}{at}" for at in range(accounts) for _ in range(_QUERIES)]
        return names, times.ravel(), vectors.reshape(-1, self.vectors.shape[1])

    def compared(self, shape: str, days: int, seed: int) -> LogComparison:
        """Judge one benign log against ordinary traffic of its shape, of so many other days."""
        rng = np.random.default_rng((seed, days, [*SHAPES].index(shape)))
        every = np.arange(len(self.of_story))
        usual = "own" if shape == "coalition" else shape
        parts = [self.window(usual, "o", _ORDINARY, every, rng) for _ in range(days)]
        ordinary = make_log(
            [name for part in parts for name in part[0]],
            np.concatenate([day * _DAY + part[1] for day, part in enumerate(parts)]),
            np.concatenate([part[2] for part in parts]),
        )
        topics = rng.choice(every, 6, replace=False) if shape == "circle" else every
        names, times, vectors = self.window(shape, "a", _ACCOUNTS, topics, rng)
        found = estimate(
            make_log(names, times, vectors),
            Settings(seed=seed, rounds=1),  # of the estimators' own null, which is not read here
            names=_ESTIMATORS,
            ordinary=ordinary,
        )
        if found.comparison is None:
            raise SystemExit("There is ordinary traffic, and yet no comparison.")
        return found.comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--days", type=int, nargs="+", default=[22])
    parser.add_argument("--shapes", nargs="+", default=[*SHAPES], choices=SHAPES)
    options = parser.parse_args()
    questions = Questions(options.data)
    print(
        f"{len(questions.vectors)} questions about {len(questions.of_story)} stories;"
        f" {_ACCOUNTS} accounts of {_QUERIES}, {_ORDINARY} ordinary ones"
    )
    print("| benign logs | days | suspicious (3) | named |")
    print("|---|---|---|---|")
    for days in options.days:
        for shape in options.shapes:
            seeds = range(options.logs)
            judged = [questions.compared(shape, days, seed) for seed in seeds]
            cells = [_rate(sum(one.suspicious for one in judged), options.logs)]
            cells.append(_rate(sum(len(one.suspects) for one in judged), options.logs * _ACCOUNTS))
            print(f"| {SHAPES[shape]} | {days} | {' | '.join(cells)} |", flush=True)


def _rate(hits: int, n: int) -> str:
    low, high = proportion_interval(hits, n)
    return f"{hits} of {n} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
