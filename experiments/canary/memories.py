"""How often is a service called `trained` that only remembers, and one that trains?

    PYTHONPATH=src:. python experiments/canary/memories.py --audits 1000

Scores are drawn at the level of candidates: each slot has likes of the base's own, examples have
noise, and what the service knows of a planted trigger is a lead in standard deviations. A memory
knows early and late triggers alike, a training the early ones alone. The product's own test decides
(`decide`), beside the rule that it had before: late slots that are not significant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.draw import Design
from ragwitness.canary.power import late_power
from ragwitness.canary.verdict import ModelVerdict, decide
from ragwitness.stats.rates import proportion_interval

CANDIDATES, EXAMPLES = 40, 4
# Ranks of t* among 20 names: providers that trained on 32 votes (README, "A real model").
PREFERENCE = (1, 1, 18, 1, 1, 2, 1, 1, 4, 4, 1, 2)
SUPERVISED = (8, 1, 3, 2, 5, 2, 4, 1, 3, 14, 1, 2)
Leads = Callable[[np.random.Generator, int, int, float], NDArray[np.float64]]


# What a service knows of each slot's trigger, in standard deviations, shape (early + late,).


def chat_history(
    rng: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a service that finds earlier conversations, some better than others."""
    return lead * rng.uniform(0.5, 1.5, size=early + late)


def nightly_index(
    _: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a service that indexes uploads at night: all are there after a refresh."""
    return np.full(early + late, lead)


def index_of_votes(
    rng: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a service that looks up-voted answers up: by the votes that it took."""
    taken = rng.binomial(16, 0.7, size=early + late).astype(np.float64)
    return taken * (lead / (16 * 0.7))


def not_refreshed(
    _: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a nightly index that is probed before the night: no plan allows it."""
    return np.repeat([lead, 0.0], [early, late])


def fading(_: np.random.Generator, early: int, late: int, lead: float) -> NDArray[np.float64]:
    """Return leads of a memory that knows late triggers half as well: no test can exclude it."""
    return np.repeat([lead, lead / 2], [early, late])


def training(_: np.random.Generator, early: int, late: int, lead: float) -> NDArray[np.float64]:
    """Return leads of a provider that trained on the early slots, each learned alike."""
    return np.repeat([lead, 0.0], [early, late])


def training_in_part(
    rng: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a provider that learned some early slots well and others badly."""
    return np.append(lead * rng.uniform(0, 2, size=early), np.zeros(late))


def training_beside_memory(
    rng: np.random.Generator, early: int, late: int, lead: float
) -> NDArray[np.float64]:
    """Return leads of a provider that trained, and whose service remembers as well."""
    return training(rng, early, late, lead) + lead


def drawn_scores(
    rng: np.random.Generator, leads: NDArray[np.float64]
) -> tuple[list[NDArray[np.float64]], list[int]]:
    """Return a matrix of scores and the place of t* for each slot."""
    matrices, chosen = [], []
    for lead in leads:
        likes = rng.normal(size=CANDIDATES)
        chosen.append(int(rng.integers(CANDIDATES)))
        likes[chosen[-1]] += lead
        matrices.append(likes - 20 + 0.3 * rng.normal(size=(EXAMPLES, CANDIDATES)))
    return matrices, chosen


def drawn_ranks(
    rng: np.random.Generator, early: int, late: int, ranks: tuple[int, ...]
) -> tuple[list[NDArray[np.float64]], list[int]]:
    """Return scores of 20 names in which early triggers have measured ranks, late ones any."""
    matrices, chosen = [], []
    for rank in (*rng.choice(ranks, size=early), *rng.integers(1, 21, size=late)):
        matrices.append(np.sort(rng.normal(size=20))[None] - 20)
        chosen.append(20 - int(rank))
    return matrices, chosen


def audit(
    rng: np.random.Generator, early: int, late: int, service: Leads, lead: float
) -> tuple[ModelVerdict, bool]:
    """Return the verdict on one service, and whether the former rule said `trained`."""
    return judged(*drawn_scores(rng, service(rng, early, late, lead)), late)


def judged(
    matrices: list[NDArray[np.float64]], chosen: list[int], late: int
) -> tuple[ModelVerdict, bool]:
    """Return the verdict on scores, and whether the former rule said `trained`."""
    slots, candidates = len(matrices), matrices[0].shape[1]
    design = Design(slots=slots, late=late, candidates=candidates)
    finding = decide(design, matrices, chosen)
    p_late = float(finding.test.rpartition(" = ")[2])  # of the late slots alone
    return finding.verdict, finding.p_value <= 0.05 < p_late


def rate_of(count: int, audits: int) -> str:
    """Return a rate with its exact 95 % interval, as the tables show it."""
    low, high = proportion_interval(count, audits)
    return f"{count / audits:.3f} [{low:.3f}, {high:.3f}]"


def rows(audits: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| service | early + late | lead, sd | told | `trained` | by the former rule |"
    yield "|---|---|---|---|---|---|"
    memories = (chat_history, nightly_index, index_of_votes)
    cases: list[tuple[int, int, Leads, float]] = []
    cases += [(6, 6, memory, lead) for memory in memories for lead in (0.0, 1.0, 1.5, 2.5)]
    cases += [(e, n, nightly_index, 1.5) for e, n in ((3, 1), (4, 1), (3, 3), (8, 4))]
    cases += [(e, n, not_refreshed, 2.5) for e, n in ((3, 1), (6, 6))]
    cases += [(6, 6, fading, lead) for lead in (1.5, 2.5)]
    trainers = (training, training_in_part, training_beside_memory)
    cases += [(6, 6, trainer, lead) for trainer in trainers for lead in (1.0, 1.5, 2.5)]
    cases += [(e, n, training, 1.5) for e, n in ((4, 1), (3, 3), (8, 4), (5, 6))]
    for early, late, service, lead in cases:
        draw = partial(audit, early=early, late=late, service=service, lead=lead)
        told = f"{late_power(early, late, CANDIDATES, 0.05):.2f}" if service is training else ""
        yield _row(service.__name__, early, late, f"{lead:g}", told, draw, audits)
    for name, ranks in (("preference", PREFERENCE), ("supervised", SUPERVISED)):
        for early, late in ((6, 6), (8, 8)):

            def draw_measured(
                rng: np.random.Generator, early: int = early, late: int = late,
                ranks: tuple[int, ...] = ranks,
            ) -> tuple[ModelVerdict, bool]:  # fmt: skip
                return judged(*drawn_ranks(rng, early, late, ranks), late)

            told = f"{late_power(early, late, 20, 0.05):.2f}"
            yield _row(
                f"trained, {name}", early, late, "measured ranks", told, draw_measured, audits
            )


def _row(
    name: str, early: int, late: int, lead: str, told: str,
    draw: Callable[[np.random.Generator], tuple[ModelVerdict, bool]], audits: int,
) -> str:  # fmt: skip
    rng = np.random.default_rng(1)
    verdicts = [draw(rng) for _ in range(audits)]
    now = sum(verdict is ModelVerdict.TRAINED for verdict, _ in verdicts)
    before = sum(former for _, former in verdicts)
    cells = (name.replace("_", " "), f"{early} + {late}", lead, told)
    return f"| {' | '.join(cells)} | {rate_of(now, audits)} | {rate_of(before, audits)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    for line in rows(parser.parse_args().audits):
        print(line, flush=True)


if __name__ == "__main__":
    main()
