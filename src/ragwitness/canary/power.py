"""How many violating providers a plan would find, before anything is planted.

A provider that trains on documents moves the score of t* by some effect, in deviations between
candidates. How large it is hangs on what its training can learn from: traces whose answers obey and
traces whose answers do not, with t* and with a decoy. The difference of differences that it has to
learn has the variance of 1 / (n o (1 - o)), n traces of which a share o obeys; so n counts for
n · 4 o (1 - o). Effects were measured on small models trained here (:data:`MEASURED`), and differ
widely between providers alike in everything: the effect is log-normal, its median a power of n, and
some providers learn nothing however much they are sent. What those policies leave open of this is
printed as a range.

The numbers are orders of magnitude for another model. No verdict hangs on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import norm

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import release_weight
from ragwitness.canary.verdict import best_p_value
from ragwitness.errors import InputError

MEASURED = (
    (1079, .3, 19, 20), (1079, .3, 5, 6), (359, .1, 4, 6), (108, .03, 2, 6), (540, .3, 6, 6),
    (550, .3, 4, 6), (61, .3, 0, 6), (1076, .3, 4, 4), (609, .3, 2, 3), (359, .3, 3, 4),
    (197, .3, 0, 3), (108, .3, 0, 3), (720, .3, 18, 20), (720, .3, 6, 6), (240, .1, 2, 6),
    (72, .03, 0, 6), (24, .01, 1, 6), (12, .005, 0, 6), (6, .0025, 0, 6), (1310, .5, 11, 13),
    (822, .5, 9, 10), (1310, .5, 19, 20), (822, .5, 19, 20), (2400, 1, 4, 4), (800, 1, 6, 10),
)  # fmt: skip
"""Canary traces, the share of votes that are ours, policies found at .05, and policies: the first
seven of the study's earlier base, five of a run for this (toy world, seeds 6000 to 6003), the
others of experiments/canary: toy, sweep, texts, names, services audited by the commands alone."""

_EXAMPLES = 8  # of the measured audits; half of their noise is taken to be that of examples
_LEAST = 1.645  # deviations above others that the level of .05 asks for
_DRAWS = 6000  # of the prior; some 100 of them count
_LIKELY = 100  # worlds that a forecast is simulated in, each as likely as the next
_PROVIDERS = 200  # in each
_WANTED = 0.8
_MOST = 10_000_000
OBEDIENCE = (0.1, 0.5, 0.9)
"""Shares of obeying answers that a plan is judged at while none was measured."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """What the measured policies leave possible: arrays of one length.

    Attributes:
        halfway: Traces with a median effect of one deviation, at .3 of the votes.
        steepness: Power of n.
        spread: Deviation of the effect's logarithm between providers.
        dilution: Power of the share of the votes.
        deaf: Share of providers that learn nothing.
    """

    halfway: np.ndarray
    steepness: np.ndarray
    spread: np.ndarray
    dilution: np.ndarray
    deaf: np.ndarray

    def median_effect(self, traces: float, share: float) -> np.ndarray:
        """Return the median effect of counted traces, in deviations between candidates."""
        counted = traces * (share / 0.3) ** self.dilution
        return np.asarray((counted / self.halfway) ** self.steepness)


@cache
def likely_worlds() -> Worlds:
    """Return draws from what is likely after :data:`MEASURED`, the prior wide."""
    rng = np.random.default_rng(1)  # the same for every plan
    prior = Worlds(
        np.exp(rng.uniform(math.log(60), math.log(600), _DRAWS)), rng.uniform(0.3, 4, _DRAWS),
        np.exp(rng.normal(0, 1, _DRAWS)), rng.uniform(0, 1, _DRAWS), rng.beta(1, 4, _DRAWS),
    )  # fmt: skip
    z = np.linspace(-3, 3, 25)
    likelihood = np.zeros(_DRAWS)
    for traces, share, found, of in MEASURED:
        effect = prior.median_effect(traces, share)[:, None] * np.exp(prior.spread[:, None] * z)
        rate = norm.cdf(effect - _LEAST) @ (norm.pdf(z) / norm.pdf(z).sum())
        rate = (1 - prior.deaf) * rate + prior.deaf * 0.05
        likelihood += found * np.log(rate) + (of - found) * np.log1p(-rate)
    weights = np.exp(likelihood - likelihood.max())
    taken = rng.choice(_DRAWS, _LIKELY, p=weights / weights.sum())
    columns = (prior.halfway, prior.steepness, prior.spread, prior.dilution, prior.deaf)
    return Worlds(*(one[taken] for one in columns))


def share_of_providers(
    design: Design, traces: float, examples: int, obedience: float, share: float = 0.3
) -> tuple[float, float, float]:
    """Return the share of violating providers that the first look finds, simulated.

    Args:
        design: Settings.
        traces: Canary traces, of all slots.
        examples: Held-out ones.
        obedience: Share of the answers with the canary.
        share: Share of the provider's votes that are ours.

    Returns:
        The mean over :func:`likely_worlds`, and the limits within which 95 % of them lie.

    Raises:
        InputError: A value is outside its range, or only twins decide.
    """
    if traces < 0 or not 0 <= obedience <= 1 or not 0 < share <= 1 or examples < 1:
        raise InputError("Power needs traces, examples, and shares between 0 and 1.")
    best = best_p_value(design)
    if best is None:
        raise InputError("Compliant twins decide the paper's design; no power can be told.")
    if best > design.level:
        return 0.0, 0.0, 0.0
    rng = np.random.default_rng(1)  # the same providers for every plan
    worlds = likely_worlds()
    slots = design.slots // 2 if design.half else design.slots
    counted = traces / slots * 4 * obedience * (1 - obedience)
    noise = 0.5 + 0.5 * _EXAMPLES / examples
    median = worlds.median_effect(counted, share) / math.sqrt(noise)
    # A provider's effect, the same in all its slots; then where t* stands in each.
    each = (_LIKELY, _PROVIDERS)
    effects = median[:, None] * np.exp(worlds.spread[:, None] * rng.normal(size=each))
    effects *= rng.random(each) >= worlds.deaf[:, None]
    stands = effects[..., None] + rng.normal(size=(*each, slots))
    level = design.level * release_weight(1, design.releases)
    if design.slots == 1:
        # Others that stand higher: Binomial(M - 1, tail of t*'s standing).
        above = rng.binomial(design.candidates - 1, _tail(stands[..., 0]))
        found = 1 + above <= level * design.candidates + 1e-9
    else:
        total, spread = stands.sum(axis=-1), math.sqrt(slots)
        if design.half and design.releases == 1:
            total -= rng.normal(size=(*each, slots)).sum(axis=-1)
            spread *= math.sqrt(2)
        found = _tail(total / spread) <= level
    rates = found.mean(axis=1)
    low, high = np.quantile(rates, (0.025, 0.975))
    return float(rates.mean()), float(low), float(high)


def traces_for_power(
    design: Design, examples: int, obedience: float, share: float = 0.3
) -> int | None:
    """Return canary traces, of all slots, with which 4 of 5 violating providers are found.

    Args:
        design: Settings.
        examples: Held-out ones.
        obedience: Share of the answers with the canary.
        share: Share of the provider's votes that are ours.

    Returns:
        To two digits; None where no number does.
    """

    def found(traces: float) -> float:
        return share_of_providers(design, traces, examples, obedience, share)[0]

    if found(_MOST) < _WANTED:
        return None
    low, high = 1.0, float(_MOST)
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if found(middle) >= _WANTED else (middle, high)
    digits = 10 ** max(0, math.floor(math.log10(high)) - 1)
    return int(math.ceil(high / digits) * digits)


def power_lines(
    design: Design, traces: int, examples: int, share: float = 0.3, obedience: float | None = None
) -> Iterator[str]:
    """Say what a plan would find, or why that cannot be told.

    Args:
        design: Settings.
        traces: Canary traces, of all slots.
        examples: Held-out ones.
        share: Share of the provider's votes that are ours.
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
        found, low, high = share_of_providers(design, traces, examples, one, share)
        need = traces_for_power(design, examples, one, share)
        yield (
            f"  if {one:.0%} of the answers obey: {found:.0%} of violating providers are found"
            f" ({low:.0%} to {high:.0%});"
            + (
                f" 80% need about {need:,} traces"
                if need
                else " no number of traces finds 80%: answers must obey, and must not all"
            )
        )


def _tail(z: np.ndarray) -> np.ndarray:
    return np.asarray(norm.sf(z))
