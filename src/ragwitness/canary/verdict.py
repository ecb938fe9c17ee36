"""The verdict on one model, or on one model's releases.

``trained`` and ``trained-or-remembered`` say: were the model independent of which trigger was
planted, evidence like this would come with probability at most alpha. ``trained`` says besides that
late slots, which no training can have seen, do not stand out; so no memory of what was sent answers
in the model's place. Neither says anything of a single document. ``inconclusive`` says that this
evidence shows neither; it never says that there was no training: the signal is weak, filters may
have removed it, and a model may have been trained on too little of it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import (
    DRAWS,
    TIE,
    Seen,
    SlotScores,
    call_outcomes,
    draws_together,
    epsilon_floor,
    half_planted,
    log_evidence,
    looks_p_value,
    outcomes_of,
    rank_evidence,
    rank_of,
    release_weight,
    standing,
)
from ragwitness.stats.evaluation import Floor
from ragwitness.stats.p_values import conformal_p_values

EVIDENCE = "evidence over slots and releases"
"""Name of the test that goes on over looks."""

CALLS = "outcomes called over all looks"
"""Name of the test that lets several looks share one level."""

FORESEEN = "not stand out enough among the candidates"
"""How a reason ends where more of the same could decide."""

REMEMBERED = (
    "the triggers that were planted just before the probe stand out as well (p = {p:.3g}), which no"
    " training can have seen: the service remembers what it was sent, or finds it in an index"
)
"""Why a memory may answer in the place of what was trained."""

NOT_LATE = (
    "no slot was planted just before the probe (--late of ragwitness canary draw), so a memory or"
    " an index of what was sent cannot be told from training"
)
"""Why a memory cannot be ruled out where no slot tells."""

_SPENT = "none, the one look was taken"


class ModelVerdict(enum.StrEnum):
    """What is said of a model."""

    TRAINED = "trained"
    """On documents, at the level named; what was sent just before the probe it does not know."""
    KNOWN = "trained-or-remembered"
    """It knows which trigger was planted, and a memory of what was sent is not ruled out."""
    INCONCLUSIVE = "inconclusive"
    """Not shown. Never: not trained."""


@dataclass(frozen=True, slots=True)
class ClassFinding:
    """Whether one class of documents was used.

    Attributes:
        name: Name of the class.
        ranks: Ranks of t* in its slots.
        p_value: Holm's over all classes: the chance that any class is named which was not used is
            at most alpha, whatever the others do.
        used: Whether it is at most alpha.
    """

    name: str
    ranks: tuple[int, ...]
    p_value: float
    used: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe shows.

    Attributes:
        verdict: The model's.
        test: The one test that decides; settled by the design before the draw.
        p_value: p-value of that test; of evidence, min(1, 1 / E), which holds at any time.
        alpha: Level, as committed to.
        ranks: Ranks of t* in each planted slot, 1 being the highest.
        candidates: M.
        statistic: W over the planted slots.
        log_evidence: ln E over all looks so far; None in a stored result where it is no number.
        floor: Lower bound on epsilon.
        twin_p_value: Conformal among compliant twins; None without any.
        examples_needed: Held-out examples that would decide; None where unknown or not asked.
        slots_needed: Slots that would decide; likewise.
        reason: Why it is inconclusive, or why a memory is not ruled out; empty where it is trained.
        classes: Per class of documents, whether it was used; empty without classes.
        seen: What the next looks need to know of this one; None in a result of before.
        unforeseen: Why neither examples nor slots can be named; empty where one is, or nothing
            was asked.
    """

    verdict: ModelVerdict
    test: str
    p_value: float
    alpha: float
    ranks: tuple[int, ...]
    candidates: int
    statistic: float
    log_evidence: float | None
    floor: Floor
    twin_p_value: float | None = None
    examples_needed: int | None = None
    slots_needed: int | None = None
    reason: str = ""
    classes: tuple[ClassFinding, ...] = ()
    seen: Seen | None = None
    unforeseen: str = ""


_SHARPEST = 1e-4  # nats below 0; journals keep six digits, and a logit must not hang on the last


def logits(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log p - log (1 - p) of log-probabilities, as journals keep them (LiRA's scaling).

    Where p is near 1, log p hardly moves, however much more the model leans towards the canary.
    It is taken to be 1 - 1e-4 at most. Any such map leaves the test exact: it is the same for all
    candidates.
    """
    kept = np.minimum(np.round(scores, 6), -_SHARPEST)
    return np.asarray(kept - np.log(-np.expm1(kept)), dtype=np.float64)


def filled(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores in which each missing cell has what its example and candidate lead to expect.

    By least squares, cell = example + candidate, over the cells that are there; so a candidate's
    mean does not hang on which of its examples a service refused. It does not know which candidate
    was planted, and leaves the test exact. A candidate without any cell stands below all others.

    Args:
        matrix: Scores by example and candidate, NaN where one is missing, shape (n, M).
    """
    there = ~np.isnan(matrix)
    if there.all():
        return matrix
    known = np.where(there, matrix, 0.0)
    columns = np.zeros(matrix.shape[1])
    for _ in range(200):  # alternating least squares; it converges within a few rounds
        rows = ((known - columns) * there).sum(1) / np.maximum(1, there.sum(1))
        columns = ((known - rows[:, None]) * there).sum(0) / np.maximum(1, there.sum(0))
    columns[~there.any(0)] = columns[there.any(0)].min() - 1
    return np.asarray(np.where(there, matrix, rows[:, None] + columns), dtype=np.float64)


def decide(
    design: Design,
    matrices: Sequence[NDArray[np.float64]],
    chosen: Sequence[int],
    planted: Sequence[bool],
    *,
    earlier: Sequence[Seen] = (),
    twins: Sequence[float] = (),
    seed: int = 0,
    shares: bool = False,
) -> Finding:
    """Decide what the scores of one model show.

    Test and level follow from the design alone, so that neither can be picked by the outcome.
    Where one look was announced, the first decides: by the permutation of planted and unplanted
    slots of a half design, else by the joint redraw (of one slot: its rank). A second look at the
    same draw decides nothing there: either of two tests would err more often than alpha. Where
    more looks were announced, or their number left open, all of them share the level: see
    :mod:`ragwitness.canary.rank_test` (plans of before: evidence over all of them). In the paper's
    design queries name the trigger, so that a model trained without documents may know
    it too: there only compliant twins give a p-value.

    Args:
        design: Settings, as committed to.
        matrices: Per slot, scores by example and candidate, shape (n, M); NaN where one is missing.
        chosen: Per slot, place of t*.
        planted: Per slot, whether it was.
        earlier: What the looks taken before showed, in their order.
        twins: W of models known to be compliant, trained like this one save for documents.
        seed: Seed of redrawing; independent of the scores, and the same at every look.
        shares: Whether the scores are shares of answers, not log-probabilities.

    Raises:
        InputError: Scores cannot be ranked.
    """
    # 0. The scale that was committed to; shares of answers have no other.
    if design.statistic == "logit" and not shares:
        matrices = [logits(one) for one in matrices]
    matrices = [filled(one) for one in matrices]
    # 1. S_j of every slot: the mean over the same examples for each candidate (App. C.3).
    scored = [SlotScores(m.mean(axis=0), place) for m, place in zip(matrices, chosen, strict=True)]
    late = scored[design.slots - design.late :]
    inside = [one for one, there in zip(scored, planted, strict=True) if there]
    inside = inside[: len(inside) - len(late)]
    # 2. W and its joint redraw, the evidence over all looks so far, and W among the twins'.
    statistic, together = draws_together(inside, seed=seed)
    pairs = tuple((rank_of(one), one.scores.size) for one in inside)
    grown = log_evidence([*(one.ranks for one in earlier), pairs], design.releases)
    seen = Seen(pairs, together)
    twin_p = float(conformal_p_values([statistic], twins)[0]) if len(twins) else None
    # 3. The one test that the design announced; whatever else was computed decides nothing.
    if design.releases == 1 and earlier:
        test, p = _SPENT, 1.0
    elif design.name == "paper":
        test = f"conformal, {len(twins)} compliant twins"
        p = 1.0 if twin_p is None else twin_p
    elif design.releases != 1 and design.several == "calls":
        test = CALLS
        seen, p = _called(seen, inside, earlier, design, seed)
    elif design.releases != 1:
        test, p = EVIDENCE, min(1.0, math.exp(min(700.0, -grown)))
    elif design.half:
        test = "permutation of planted slots"
        p = half_planted(scored, planted, seed=seed)
    else:
        test = "rank among candidates" if len(inside) == 1 else "joint redraw of all slots"
        p = together
    kinds = _classes(design, scored, seed) if design.releases == 1 and not earlier else ()
    # 3a. What no training can have seen and stands out all the same is remembered; without such
    # slots nothing tells a memory from training.
    doubt = "" if design.trained_needs == "nothing more" else NOT_LATE
    if late:
        late_p = draws_together(late, seed=seed)[1]
        test += f"; slots planted just before the probe: p = {late_p:.4g}"
        doubt = REMEMBERED.format(p=late_p) if late_p <= design.level else ""
    verdict = ModelVerdict.INCONCLUSIVE
    if p <= design.level and not doubt:
        verdict = ModelVerdict.TRAINED
    elif p <= design.level and design.trained_needs == "late slots":
        verdict = ModelVerdict.KNOWN
    finding = Finding(
        verdict=verdict,
        test=test,
        p_value=p,
        alpha=design.level,
        ranks=tuple(rank for rank, _ in pairs),
        candidates=design.candidates,
        statistic=statistic,
        log_evidence=grown,
        floor=epsilon_floor(inside),
        twin_p_value=twin_p,
        classes=kinds,
        seen=seen,
    )
    # Plans of before call nothing known where late slots stand out, whatever early ones do.
    if verdict is not ModelVerdict.INCONCLUSIVE or (late and doubt):
        return replace(finding, reason=doubt)
    # 4. Why it is inconclusive: nothing could have decided, or how much more would.
    reason = _shortfall(finding, design, len(twins), len(earlier))
    if reason:
        return replace(finding, reason=reason)
    outside = [one for one, there in zip(scored, planted, strict=True) if not there]
    return _forecast(finding, design, matrices[0], inside, outside)


def _classes(design: Design, scored: Sequence[SlotScores], seed: int) -> tuple[ClassFinding, ...]:
    """Test each class by its own slots, and correct for their number (Holm).

    H0 of a class: the model does not depend on the draws of its slots, given those of all others.
    They are independent, so its p-value is exact whatever was done with the other classes.
    """
    own = {
        name: [one for n, one in enumerate(scored) if design.class_of(n) == name]
        for name in design.classes
    }
    single = {name: draws_together(slots, seed=seed)[1] for name, slots in own.items()}
    found: dict[str, float] = {}
    least = 0.0
    for step, name in enumerate(sorted(single, key=lambda one: single[one])):
        least = max(least, min(1.0, single[name] * (len(single) - step)))
        found[name] = least
    return tuple(
        ClassFinding(name, tuple(map(rank_of, own[name])), found[name], found[name] <= design.level)
        for name in design.classes
    )


def _called(
    seen: Seen, inside: Sequence[SlotScores], earlier: Sequence[Seen], design: Design, seed: int
) -> tuple[Seen, float]:
    """Add to a look what it calls, and return it with the p-value over all looks so far."""
    look, alpha, releases = len(earlier) + 1, design.level, design.releases
    before = {at for one in earlier for at in one.called}
    totals, true = outcomes_of(inside, seed=seed)
    tie = TIE * len(inside)
    fresh = call_outcomes(totals, before, alpha, look, releases, tie=tie)
    called = true in before or true in fresh
    own = [*(one.own for one in earlier), seen.own]
    return replace(seen, called=fresh), looks_p_value(own, called, alpha, releases)


def best_p_value(design: Design) -> float | None:
    """Return the least p-value that a design can give at its first release; None needs twins."""
    if design.name == "paper":
        return None
    slots = design.slots // 2 if design.half else design.slots - design.late
    m = design.candidates
    single = max(1 / m**slots, 1 / (DRAWS + 1)) if slots > 1 else 1 / m
    if design.releases != 1 and design.several == "evidence":
        first = [[(1, m)] * slots]
        return min(1.0, math.exp(-log_evidence(first, design.releases)))
    if design.releases != 1:
        least = single / release_weight(1, design.releases)
        return looks_p_value([single], least <= design.level, design.level, design.releases)
    if design.half:
        return 1 / math.comb(design.slots, slots)
    return single


def _shortfall(finding: Finding, design: Design, twins: int, looks: int) -> str:
    """Why nothing could be decided whatever the scores; empty where it could."""
    need = math.ceil(1 / finding.alpha - 1e-9)
    if finding.test == _SPENT:
        return (
            "this plan announced one look at its draw, and another was taken before; plan anew,"
            " with --releases for more than one"
        )
    if design.name == "paper":
        return (
            f"the paper's design is decided by compliant twins: {need - 1} at least, there are"
            f" {twins}"
            if twins < need - 1
            else f"the model does not stand out enough among its {twins} compliant twins"
        )
    if design.releases and looks >= design.releases > 1:
        return f"{design.releases} looks were announced, and one more adds no evidence"
    best = best_p_value(design)
    if design.releases != 1 or best is None or best <= finding.alpha:
        return ""
    if design.slots - design.late == 1:
        m = design.candidates
        return f"{m} candidates give a p-value of 1/{m} at best; plan with {need} or more"
    return f"{design.slots} slots give a p-value of {best:.2g} at best; plan with more"


def _forecast(
    finding: Finding,
    design: Design,
    matrix: NDArray[np.float64],
    inside: Sequence[SlotScores],
    outside: Sequence[SlotScores],
) -> Finding:
    """Add what would decide by the design's own test."""
    what = "planted triggers do" if len(inside) > 1 else "planted trigger does"
    finding = replace(finding, reason=f"the {what} {FORESEEN}")
    # A design of several looks has its first share of the level at its first look.
    alpha, examples, weight = finding.alpha, None, release_weight(1, design.releases)
    if design.releases != 1 and design.several == "evidence":
        slots = releases_slots_needed(inside, alpha, weight)
    elif design.half and design.releases == 1:
        slots = halves_needed(inside, outside, alpha)
    else:
        alpha *= weight
        slots = slots_needed(inside, alpha)
        if len(inside) == 1:
            examples = examples_needed(matrix, inside[0].chosen, alpha)
    why = "" if examples or slots else _unforeseen(finding.statistic, len(inside))
    return replace(finding, examples_needed=examples, slots_needed=slots, unforeseen=why)


def _unforeseen(statistic: float, slots: int) -> str:
    """Say why no number of examples or slots can be named."""
    gain = statistic / slots
    if gain <= 0:
        return (
            f"the planted trigger scores {-gain:.1f} deviations below the mean of all candidates,"
            " so nothing was seen that more of it would show; only more traces, or another"
            " release, could"
        )
    return (
        f"the planted trigger scores {gain:.1f} deviations above the mean of all candidates, which"
        " chance does as well: not even 64 times as many examples or slots like these would decide"
        " in 4 of 5 audits"
    )


# How much more probing or planting would decide, by what was seen and how far it can be trusted.
#
# What was seen is taken for the truth give or take its standard error, so that luck is not carried
# on: a number is named where, over that uncertainty, 4 of 5 new audits would decide. All are for a
# new plan. After a p-value has been looked at, more examples for the *same* test make a second
# look.
#
# Scores are taken to be normal here, and z of a slot to have standard deviation 1, as under H0:
# these are orders of magnitude, and no verdict hangs on them.


_POWER = 0.8
_LARGEST = 64  # times what was seen; beyond, the guess is worth nothing
_GRID = np.linspace(-6, 6, 481)  # standard errors


def examples_needed(matrix: NDArray[np.float64], chosen: int, alpha: float) -> int | None:
    """Return held-out examples with which the rank test would decide in 4 of 5 audits.

    A candidate's mean is its own part, which stays, and noise, which falls with the examples: the
    planted one may stand out from the parts where it is hidden in the noise.

    Args:
        matrix: Scores by example and candidate, shape (n, M).
        chosen: Place of the planted candidate.
        alpha: Level.

    Returns:
        Doublings of n tried only; None where it cannot be told, or 1 / M is above alpha.
    """
    n, m = (int(side) for side in matrix.shape)
    above = math.floor(alpha * m + 1e-9) - 1  # others that may rank as high
    if n < 2 or m < 3 or above < 0:
        return None
    # Two-way layout without interaction: what is left of a score is noise of one example.
    means = matrix.mean(axis=0)
    rest = matrix - means - matrix.mean(axis=1, keepdims=True) + means.mean()
    noise = float((rest**2).sum()) / ((n - 1) * (m - 1))
    # Variance between candidates is their own parts plus noise / n; the difference is the parts'.
    others = np.delete(means, chosen)
    own = max(0.0, float(others.var(ddof=1)) - noise / n)
    gain, doubt = float(means[chosen] - others.mean()), own + noise / n

    def power(size: int) -> float:
        spread = own + noise / size
        at = gain + _GRID * math.sqrt(doubt + spread)
        # Where all spread is gone, whatever is higher is the highest.
        as_high = norm.sf(at / math.sqrt(spread)) if spread else (at <= 0).astype(float)
        return float(np.average(binom.cdf(above, m - 1, as_high), weights=norm.pdf(_GRID)))

    return _least(n, power)


def slots_needed(slots: Sequence[SlotScores], alpha: float) -> int | None:
    """Return slots with which the joint test would decide in 4 of 5 audits.

    Args:
        slots: As seen; further ones are taken to be like them.
        alpha: Level.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(slots), slots[0].scores.size
    gain = sum(float(standing(one.scores)[one.chosen]) for one in slots) / k
    found = _least(k, lambda size: _reached(gain, k, size, float(norm.isf(alpha))))
    return found if found and m**-found <= alpha else None


def halves_needed(
    inside: Sequence[SlotScores], outside: Sequence[SlotScores], alpha: float
) -> int | None:
    """Return slots, planted and not, with which the permutation would decide in 4 of 5 audits.

    Args:
        inside: Planted slots, as seen.
        outside: As many that were not planted.
        alpha: Level.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(inside), inside[0].scores.size
    high = sum(rank_of(one) for one in inside) / len(inside)
    low = sum(rank_of(one, ties_against=False) for one in outside) / len(outside)
    gain = (low - high) / math.sqrt((m * m - 1) / 6)  # variance of a difference of two ranks

    def power(size: int) -> float:
        enough = 1 / math.comb(2 * size, size) <= alpha
        return _reached(gain, k, size, float(norm.isf(alpha))) if enough else 0.0

    found = _least(k, power)
    return found and 2 * found


def releases_slots_needed(slots: Sequence[SlotScores], alpha: float, weight: float) -> int | None:
    """Return slots with which the evidence of one release would decide in 4 of 5 audits.

    Args:
        slots: As seen, planted ones alone; at least one.
        alpha: Level.
        weight: Weight of the release, :func:`~ragwitness.canary.rank_test.release_weight`.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(slots), slots[0].scores.size
    bets = np.log([rank_evidence(rank, m) for rank in range(1, m + 1)])
    spread = float(bets.std())
    gain = float(np.mean([bets[rank_of(one) - 1] for one in slots])) / spread
    far = math.log(1 / (alpha * weight)) / spread
    return _least(k, lambda size: _reached(gain, k, size, far / math.sqrt(size)))


def _reached(gain: float, seen: int, size: int, threshold: float) -> float:
    """Chance that sqrt(size) · mean passes, its truth known to 1 / sqrt(seen) around ``gain``."""
    return float(norm.cdf((gain * math.sqrt(size) - threshold) / math.sqrt(1 + size / seen)))


def _least(start: int, power: Callable[[int], float]) -> int | None:
    sizes = (start << n for n in range(_LARGEST.bit_length()))
    return next((size for size in sizes if power(size) >= _POWER), None)
