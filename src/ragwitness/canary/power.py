"""How many violating providers a plan would find, before anything is planted.

A provider that trains on documents moves the score of t* by some effect, in deviations between
candidates. How large it is hangs on what its training can learn from: traces whose answers obey and
traces whose answers do not, with t* and with a decoy. The difference of differences that it has to
learn has the variance of 1 / (n o (1 - o)), n traces of which a share o obeys; so n counts for
n · 4 o (1 - o). Effects were measured on small models trained here (:data:`MEASURED`), and differ
widely between providers alike in everything: the effect is log-normal, its median a power of n.

The numbers are orders of magnitude for another model. No verdict hangs on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import release_weight
from ragwitness.canary.verdict import best_p_value
from ragwitness.errors import InputError

MEASURED = (
    (1079, 19, 20), (1079, 5, 6), (359, 4, 6), (108, 2, 6), (540, 6, 6), (550, 4, 6), (61, 0, 6),
    (1076, 4, 4), (609, 2, 3), (359, 3, 4), (197, 0, 3), (108, 0, 3),
)  # fmt: skip
"""Canary traces, policies found at .05, and policies: the first seven of the study's earlier base,
the others of a run for this (toy world, seeds 6000 to 6003; ranks of the gain over the base). Half
of the answers obeyed, 3 votes in 10 were ours, 128 candidates, 8 examples."""

HALFWAY, STEEPNESS, SPREAD = 255.9, 2.42, 1.90
"""Traces with a median effect of one deviation, its power of n, and the deviation of its logarithm:
the likeliest for :data:`MEASURED` (refitted by a test)."""

_SHARE, _DILUTION = 0.3, 0.7  # 1.9 against 7.0 nats at half the share: one pair of conditions
_EXAMPLES = 8  # of the measured audits; half of their noise is taken to be that of examples
_PROVIDERS = 2000
_WANTED = 0.8
_MOST = 10_000_000
OBEDIENCE = (0.1, 0.5, 0.9)
"""Shares of obeying answers that a plan is judged at while none was measured."""


def median_effect(traces: float, obedience: float, share: float, examples: int) -> float:
    """Return the median effect of a slot's traces, in deviations between candidates.

    Args:
        traces: Of the slot, true and decoys together.
        obedience: Share of the answers with the canary.
        share: Of the provider's votes that are ours.
        examples: Held-out ones.

    Raises:
        InputError: A value is outside its range.
    """
    if traces < 0 or not 0 <= obedience <= 1 or not 0 < share <= 1 or examples < 1:
        raise InputError("Power needs traces, examples, and shares between 0 and 1.")
    counted = traces * 4 * obedience * (1 - obedience) * (share / _SHARE) ** _DILUTION
    noise = 0.5 + 0.5 * _EXAMPLES / examples
    return float((counted / HALFWAY) ** STEEPNESS / math.sqrt(noise))


def share_of_providers(
    design: Design, traces: int, examples: int, obedience: float, share: float = _SHARE
) -> float:
    """Return the share of violating providers that the first look finds, simulated.

    Args:
        design: Settings.
        traces: Canary traces, of all slots.
        examples: Held-out ones.
        obedience: Share of the answers with the canary.
        share: Of the provider's votes that are ours.

    Raises:
        InputError: A value is outside its range, or only twins decide.
    """
    best = best_p_value(design)
    if best is None:
        raise InputError("Compliant twins decide the paper's design; no power can be told.")
    rng = np.random.default_rng(1)  # the same providers for every plan
    slots = design.slots // 2 if design.half else design.slots
    effect = median_effect(traces / slots, obedience, share, examples)
    if best > design.level:
        return 0.0
    # A provider's effect, the same in all its slots; then where t* stands in each.
    effects = effect * np.exp(SPREAD * rng.normal(size=(_PROVIDERS, 1)))
    stands = effects + rng.normal(size=(_PROVIDERS, slots))
    level = design.level * release_weight(1, design.releases)
    if design.slots == 1:
        # Others that stand higher: Binomial(M - 1, tail of t*'s standing).
        above = rng.binomial(design.candidates - 1, _tail(stands[:, 0]))
        return float((1 + above <= level * design.candidates + 1e-9).mean())
    total = stands.sum(axis=1)
    spread = math.sqrt(slots)
    if design.half and design.releases == 1:
        total -= rng.normal(size=(_PROVIDERS, slots)).sum(axis=1)
        spread *= math.sqrt(2)
    return float((_tail(total / spread) <= level).mean())


def traces_for_power(
    design: Design, examples: int, obedience: float, share: float = _SHARE
) -> int | None:
    """Return canary traces, of all slots, with which 4 of 5 violating providers are found.

    Args:
        design: Settings.
        examples: Held-out ones.
        obedience: Share of the answers with the canary.
        share: Of the provider's votes that are ours.

    Returns:
        To two digits; None where no number does.
    """
    found = partial(_found, design, examples, obedience, share)
    if found(_MOST) < _WANTED:
        return None
    low, high = 1.0, float(_MOST)
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if found(middle) >= _WANTED else (middle, high)
    digits = 10 ** max(0, math.floor(math.log10(high)) - 1)
    return int(math.ceil(high / digits) * digits)


def power_lines(
    design: Design,
    traces: int,
    examples: int,
    share: float = _SHARE,
    obedience: float | None = None,
) -> Iterator[str]:
    """Say what a plan would find, or why that cannot be told.

    Args:
        design: Settings.
        traces: Canary traces, of all slots.
        examples: Held-out ones.
        share: Of the provider's votes that are ours.
        obedience: As measured; None for a range.
    """
    best = best_p_value(design)
    if best is None:
        yield "power: cannot be told; compliant twins decide the paper's design"
        return
    if best > design.level:
        yield f"power: 0; the p-value is {best:.3g} at best, and the level {design.alpha}"
        return
    yield (
        f"power: {traces:,} canary traces, {examples:,} examples, {share:.0%} of the provider's"
        " votes ours; simulated from small models that were trained here, an order of magnitude"
    )
    for one in (obedience,) if obedience is not None else OBEDIENCE:
        found = share_of_providers(design, traces, examples, one, share)
        need = traces_for_power(design, examples, one, share)
        yield (
            f"  if {one:.0%} of the answers obey: {found:.0%} of violating providers are found;"
            + (
                f" 80% need about {need:,} traces"
                if need
                else " no number of traces finds 80%: answers must obey, and must not all"
            )
        )


def _found(design: Design, examples: int, obedience: float, share: float, traces: float) -> float:
    return share_of_providers(design, round(traces), examples, obedience, share)


def _tail(z: np.ndarray) -> np.ndarray:
    from scipy.stats import norm

    return np.asarray(norm.sf(z))
