"""Recall@10 against the joint budget: the paper's noise beside the noise that is needed.

python experiments/collusion/frontier.py --data DIR

Doctors' answers are indexed, patients' questions ask; a question is answered where its own
dialogue's answer is among the 10 ids returned. Scores are noised before the selection.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from texts import HERE, OUT, embedded, rows

from ragwitness.comparison.differences import paired_difference
from ragwitness.privacy.bounds import noise_plan
from ragwitness.privacy.ranges import score_sensitivity
from ragwitness.report.document import Axis, Line
from ragwitness.report.document import LinesPanel as Panel
from ragwitness.report.html import lines_svg
from ragwitness.stats.rates import Rate

_CLIP = (0.05, 0.999)  # quantiles of the scores of auxiliary questions, between which scores stay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    own = config["frontier"]
    kept = rows(options.data, own["corpus"], 10_000, config["seed"])
    scores = (
        embedded("questions", [row["question"] for row in kept])
        @ embedded("answers", [row["answer"] for row in kept]).T
    )
    half = len(scores) // 2  # bounds of the clipping come from questions that are not counted
    low, high = (float(np.quantile(scores[:half], q)) for q in _CLIP)
    asked, true = scores[half:].astype(np.float64), np.arange(half, len(scores))
    found = [
        _point(config, asked, true, epsilon, accounts, queries, (low, high))
        for accounts, queries in own["settings"]
        for epsilon in own["epsilons"]
    ]
    told = {
        "documents": asked.shape[1],
        "questions": len(asked),
        "draws": own["draws"],
        "without noise": _rate(_hits(asked, true, 0.0, own["k"], 1, config["seed"])),
        "chance": own["k"] / asked.shape[1],
        "clipped to": [low, high],
        "points": found,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "frontier.json").write_text(json.dumps(told, indent=1) + "\n")
    (HERE / "frontier.svg").write_text(_figure(told, own["settings"]))
    _print(told)


def _point(
    config: dict[str, Any],
    asked: NDArray[np.float64],
    true: NDArray[np.int64],
    epsilon: float,
    accounts: int,
    queries: int,
    clip: tuple[float, float],
) -> dict[str, Any]:
    own, seed = config["frontier"], config["seed"]
    plan = noise_plan(epsilon, config["delta"], queries, accounts)
    width = score_sensitivity("add-remove", clip)
    exact = _hits(asked, true, plan.exact, own["k"], own["draws"], seed)
    clipped = _hits(np.clip(asked, *clip), true, plan.exact * width, own["k"], own["draws"], seed)
    point = {
        "epsilon": epsilon,
        "accounts": accounts,
        "queries": queries,
        "sigma exact": plan.exact,
        "sigma paper": plan.paper,
        "exact": _rate(exact),
        "exact, clipped": _rate(clipped),
        "paper": None,
        "gained": None,
    }
    if plan.paper is not None:
        paper = _hits(asked, true, plan.paper, own["k"], own["draws"], seed)
        point["paper"] = _rate(paper)
        gained = paired_difference(exact, paper, seed=seed)
        point["gained"] = [gained.value, gained.low, gained.high]
    return point


def _hits(
    scores: NDArray[np.float64],
    true: NDArray[np.int64],
    sigma: float,
    k: int,
    draws: int,
    seed: int,
) -> NDArray[np.float64]:
    """Share of the draws in which a question's own answer is returned, shape (questions,)."""
    rng = np.random.default_rng(seed)  # the same noise for every sigma
    hits = np.zeros(len(scores))
    for _ in range(draws):
        noisy = scores + sigma * rng.standard_normal(scores.shape)
        bar = np.partition(noisy, -k, axis=1)[:, -k]
        hits += noisy[np.arange(len(scores)), true] >= bar
    return hits / draws


def _rate(hits: NDArray[np.float64]) -> list[float]:
    """Mean with its interval over questions."""
    rate: Rate = paired_difference(hits, np.zeros_like(hits))
    return [rate.value, max(0.0, rate.low), rate.high]


def _figure(told: dict[str, Any], settings: list[list[int]]) -> str:
    panels = []
    for accounts, queries in settings:
        mine = [p for p in told["points"] if (p["accounts"], p["queries"]) == (accounts, queries)]
        ends = (mine[0]["epsilon"], mine[-1]["epsilon"])
        lines = [Line("without noise", tuple((e, told["without noise"][0]) for e in ends), 5)]
        for name, colour in (("exact, clipped", 2), ("exact", 0), ("paper", 1)):
            points = tuple((p["epsilon"], *p[name]) for p in mine if p[name] is not None)
            lines.append(Line(name, points, colour))
        title = f"k = {accounts}, q = {queries}"
        x = Axis("joint epsilon", log=True)
        panels.append(Panel(title, x, Axis("recall@10"), tuple(lines), 0.0))
    return lines_svg("What privacy against a coalition leaves of retrieval", panels)


def _print(told: dict[str, Any]) -> None:
    print(
        f"{told['questions']} questions, {told['documents']} documents; without noise"
        f" {_text(told['without noise'])}; chance {told['chance']:.3f};"
        f" clipped to {told['clipped to'][0]:.2f}..{told['clipped to'][1]:.2f}"
    )
    print("| k x q | epsilon | sigma paper | exact | times | paper | exact | clipped | gained |")
    print("|---|---|---|---|---|---|---|---|---|")
    for p in told["points"]:
        paper = p["sigma paper"]
        print(
            f"| {p['accounts']} x {p['queries']} | {p['epsilon']:g}"
            f" | {'' if paper is None else format(paper, '.3g')} | {p['sigma exact']:.3g}"
            f" | {'' if paper is None else format(paper / p['sigma exact'], '.2f')}"
            f" | {_text(p['paper'])} | {_text(p['exact'])} | {_text(p['exact, clipped'])}"
            f" | {_text(p['gained'], '+')} |"
        )


def _text(rate: list[float] | None, sign: str = "") -> str:
    if rate is None:
        return ""
    return f"{rate[0]:{sign}.3f} [{rate[1]:{sign}.3f}, {rate[2]:{sign}.3f}]"


if __name__ == "__main__":
    main()
