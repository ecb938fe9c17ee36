"""The verdict on one model, or on one model's releases.

``trained`` says: were the model independent of which trigger was planted, evidence like this would
come with probability at most alpha. It says nothing of a single document. ``inconclusive`` says
that this evidence does not show training on documents; it never says that there was none: the
signal is weak, filters may have removed it, and a model may have been trained on too little of it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.decide.evidence import log_evidence
from ragwitness.canary.decide.forecast import examples_needed, slots_needed
from ragwitness.canary.decide.ranks import SlotScores, rank_of
from ragwitness.canary.decide.slots import DRAWS, draws_together, epsilon_floor, half_planted
from ragwitness.canary.design.draw import Design
from ragwitness.errors import InputError
from ragwitness.stats.conformal import conformal_p_values
from ragwitness.stats.epsilon import Floor

__all__ = ["Finding", "ModelVerdict", "best_p_value", "decide"]


class ModelVerdict(enum.StrEnum):
    """What is said of a model."""

    TRAINED = "trained"
    """On documents, at the level named."""
    INCONCLUSIVE = "inconclusive"
    """Not shown. Never: not trained."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe shows.

    Attributes:
        verdict: The model's.
        test: The one test that decides; settled by the design before the draw.
        p_value: Of that test; of evidence, min(1, 1 / E), which holds at any time.
        alpha: Level.
        ranks: Of t* in each planted slot, 1 being the highest.
        candidates: M.
        statistic: W over the planted slots.
        log_evidence: ln E over all releases so far.
        floor: Lower bound on epsilon.
        twin_p_value: Conformal among compliant twins; None without any.
        examples_needed: Held-out examples that would decide; None where unknown or not asked.
        slots_needed: Slots that would decide; likewise.
        reason: Why it is inconclusive, in one line; empty where it is not.
    """

    verdict: ModelVerdict
    test: str
    p_value: float
    alpha: float
    ranks: tuple[int, ...]
    candidates: int
    statistic: float
    log_evidence: float
    floor: Floor
    twin_p_value: float | None = None
    examples_needed: int | None = None
    slots_needed: int | None = None
    reason: str = ""


def decide(
    design: Design,
    matrices: Sequence[NDArray[np.float64]],
    chosen: Sequence[int],
    planted: Sequence[bool],
    *,
    alpha: float = 0.05,
    earlier: Sequence[Sequence[tuple[int, int]]] = (),
    twins: Sequence[float] = (),
    seed: int = 0,
) -> Finding:
    """Decide what the scores of one model show.

    The test follows from the design alone, so that it cannot be picked by its outcome: evidence
    over releases where not exactly one was announced, or one more than that is probed; of a half
    design the permutation of planted
    and unplanted; else the joint redraw (of one slot: its rank). In the paper's design queries
    name the trigger, so that a model trained without documents may know it too: there only
    compliant twins give a p-value.

    Args:
        design: Settings, as committed to.
        matrices: Per slot, scores by example and candidate, shape (n, M).
        chosen: Per slot, place of t*.
        planted: Per slot, whether it was.
        alpha: Level.
        earlier: Ranks of the releases probed before, each with M; see
            :func:`~ragwitness.canary.decide.evidence.log_evidence`.
        twins: W of models known to be compliant, trained like this one save for documents.
        seed: Of redrawing and resampling.

    Raises:
        InputError: alpha is no level, or scores cannot be ranked.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha:g}.")
    scored = [SlotScores(m.mean(axis=0), place) for m, place in zip(matrices, chosen, strict=True)]
    inside = [one for one, there in zip(scored, planted, strict=True) if there]
    together = draws_together(inside, seed=seed)
    pairs = [(rank_of(one), one.scores.size) for one in inside]
    grown = log_evidence([*earlier, pairs], design.releases)
    twin_p = float(conformal_p_values([together.statistic], twins)[0]) if len(twins) else None
    looked = design.releases != 1 or bool(len(earlier))
    test, p = (
        ("evidence over slots and releases", min(1.0, math.exp(min(700.0, -grown))))
        if looked and design.name != "paper"
        else _decisive(design, scored, planted, len(twins), twin_p, seed)
    )
    p = together.p_value if p is None else p
    trained = p <= alpha
    finding = Finding(
        verdict=ModelVerdict.TRAINED if trained else ModelVerdict.INCONCLUSIVE,
        test=test,
        p_value=p,
        alpha=alpha,
        ranks=tuple(rank for rank, _ in pairs),
        candidates=design.candidates,
        statistic=together.statistic,
        log_evidence=grown,
        floor=epsilon_floor(inside),
        twin_p_value=twin_p,
    )
    return finding if trained else _further(finding, design, matrices, inside, chosen, twins, seed)


def best_p_value(design: Design) -> float | None:
    """Return the least p-value that a design can give at its first release; None needs twins."""
    if design.name == "paper":
        return None
    slots, m = design.slots // 2 if design.half else design.slots, design.candidates
    if design.releases != 1:
        first = [[(1, m)] * slots]
        return min(1.0, math.exp(-log_evidence(first, design.releases)))
    if design.half:
        return 1 / math.comb(design.slots, slots)
    return max(1 / m**slots, 1 / (DRAWS + 1)) if slots > 1 else 1 / m


def _decisive(
    design: Design,
    scored: Sequence[SlotScores],
    planted: Sequence[bool],
    twins: int,
    twin_p: float | None,
    seed: int,
) -> tuple[str, float | None]:
    """The test of a design, and its p-value; None for the joint redraw's."""
    if design.name == "paper":
        if twin_p is None:
            return "compliant twins (there are none)", 1.0
        return f"conformal, {twins} compliant twins", twin_p
    if design.half:
        return "permutation of planted slots", half_planted(scored, planted, seed=seed).p_value
    return ("rank among candidates" if len(scored) == 1 else "joint redraw of all slots"), None


def _further(
    finding: Finding,
    design: Design,
    matrices: Sequence[NDArray[np.float64]],
    inside: Sequence[SlotScores],
    chosen: Sequence[int],
    twins: Sequence[float],
    seed: int,
) -> Finding:
    """Add what would decide, and why nothing does."""
    if design.name == "paper":
        need = math.ceil(1 / finding.alpha - 1e-9) - 1
        return replace(
            finding,
            reason=f"the paper's design is decided by compliant twins: {need} at least, there are"
            f" {len(twins)}",
        )
    rng = np.random.default_rng([seed, 2])
    if len(matrices) > 1 or design.releases != 1:
        return replace(
            finding,
            slots_needed=slots_needed(inside, finding.alpha, rng),
            reason="the planted triggers do not stand out enough in these slots",
        )
    if 1 / design.candidates > finding.alpha:
        return replace(
            finding,
            reason=f"{design.candidates} candidates give a p-value of 1/{design.candidates} at"
            f" best; plan with {math.ceil(1 / finding.alpha - 1e-9)} or more",
        )
    return replace(
        finding,
        examples_needed=examples_needed(matrices[0], chosen[0], finding.alpha, rng),
        slots_needed=slots_needed(inside, finding.alpha, rng),
        reason="the planted trigger does not stand out enough among the candidates",
    )
