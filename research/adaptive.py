"""Coalitions that choose where they probe (§4.9), and such as waste probes elsewhere (§4.6).

An adaptive coalition: later accounts choose their probes from earlier answers (§4.9).

The paper leaves this open. With a known target nothing is gained: repeating its probe is optimal.
Adaptivity pays where the target is one of C candidates, e.g. paraphrases or suspected documents:
groups of accounts ask about all candidates still in play, then drop the lower half (sequential
halving), so that most answers go to the true one. The statistic is the exact Bayes ratio

log mean_j exp(gap S_j / sigma^2 - n_j gap^2 / (2 sigma^2))

with S_j the sum of the n_j answers about candidate j; how probes were chosen cancels out of it.
Theorem 3.4 and the exact account bound every such coalition, by kq answers on the one target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of, mu_of
from ragwitness.privacy.ranges import positive, whole
from research.separation import Area, area_of

Values = NDArray[np.float64]
Strategy: TypeAlias = Literal["even", "halving"]
STRATEGIES: tuple[Strategy, ...] = ("even", "halving")
"""Every candidate the same number of queries; or halving, group of accounts by group."""
_MOST = 50_000_000  # trials times candidates


@dataclass(frozen=True, slots=True)
class AdaptiveConfig:
    """A coalition that looks for one of several documents.

    Attributes:
        candidates: C; in the one world a random one of them is in the index, in the other none.
        accounts: k; halving needs at least ceil(log2 C) of them, one group per round.
        queries: q of each.
        sigma: Of the noise.
        gap: Score of a probe with its document minus without it; other candidates add nothing.
        trials: Paired worlds.
        seed: Of the noise.
    """

    candidates: int
    accounts: int
    queries: int
    sigma: float
    gap: float = 1.0
    trials: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is outside its range."""
        whole("candidates", self.candidates, 2)
        whole("accounts", self.accounts)
        whole("queries", self.queries)
        positive("sigma", self.sigma)
        positive("gap", self.gap)
        whole("trials", self.trials, 2)
        if self.trials * self.candidates > _MOST:
            raise InputError(f"trials times candidates must be at most {_MOST:,}.")
        if self.accounts * self.queries < self.candidates * self.rounds:
            raise InputError(
                f"{self.accounts * self.queries} queries are too few for {self.candidates}"
                " candidates."
            )

    @property
    def rounds(self) -> int:
        """Of halving: after each but the last half of the candidates is dropped."""
        return max(1, math.ceil(math.log2(self.candidates)))


@dataclass(frozen=True, slots=True)
class Hunt:
    """What a strategy achieves.

    Attributes:
        area: AUC of the Bayes ratio.
        most: AUC of a coalition that knows the target: all kq answers on it.
        on_target: Mean share of the queries that went to the true candidate, where there is one.
    """

    area: Area
    most: float
    on_target: float


def hunt(config: AdaptiveConfig, strategy: Strategy) -> Hunt:
    """Measure one strategy.

    Raises:
        InputError: An unknown strategy, or halving with fewer accounts than rounds.
    """
    present, share = ratios(config, strategy, present=True)
    absent, _ = ratios(config, strategy, present=False)
    mu = mu_of(config.sigma, config.accounts * config.queries, config.gap)
    return Hunt(area_of(present, absent), auc_of(mu), share)


def ratios(config: AdaptiveConfig, strategy: Strategy, *, present: bool) -> tuple[Values, float]:
    """Simulate one world.

    The true candidate is the first: candidates are exchangeable, and ties are broken at random.

    Returns:
        Log Bayes ratio, shape (trials,), and the mean share of queries on the first candidate.

    Raises:
        InputError: An unknown strategy, or halving with fewer accounts than rounds.
    """
    if strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InputError(f"There is no strategy {strategy!r}.", f"Available: {known}.")
    rng = np.random.default_rng((config.seed, STRATEGIES.index(strategy), int(present)))
    shape = (config.trials, config.candidates)
    sums, counts = np.zeros(shape), np.zeros(shape)
    active = np.ones(shape, dtype=bool)
    for width, each in _plan(config, strategy):
        if width < config.candidates:
            active = _best(sums, counts, active, width)
        noise = config.sigma * math.sqrt(each) * rng.standard_normal(shape)
        if present:
            noise[:, 0] += each * config.gap
        sums += np.where(active, noise, 0.0)
        counts += np.where(active, each, 0)
    power = (config.gap * sums - counts * config.gap**2 / 2) / config.sigma**2
    top = power.max(axis=1)
    ratio = top + np.log(np.exp(power - top[:, None]).mean(axis=1))
    return ratio, float((counts[:, 0] / counts.sum(axis=1)).mean())


def _plan(config: AdaptiveConfig, strategy: Strategy) -> list[tuple[int, int]]:
    """Candidates in play and queries about each of them, round by round."""
    total = config.accounts * config.queries
    if strategy == "even":
        return [(config.candidates, total // config.candidates)]
    if config.accounts < config.rounds:
        raise InputError(
            f"Halving {config.candidates} candidates takes {config.rounds} groups of accounts,"
            f" and there are {config.accounts}."
        )
    sizes = [len(part) for part in np.array_split(np.arange(config.accounts), config.rounds)]
    widths = [max(2, math.ceil(config.candidates / 2**at)) for at in range(config.rounds)]
    return [
        (width, size * config.queries // width)
        for width, size in zip(widths, sizes, strict=True)
        if size * config.queries >= width
    ]


def _best(sums: Values, counts: Values, active: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Keep the candidates in play with the highest mean answer."""
    means = np.where(active, sums / np.maximum(counts, 1), -np.inf)
    kept = np.argpartition(-means, width - 1, axis=1)[:, :width]
    chosen = np.zeros_like(active)
    np.put_along_axis(chosen, kept, True, axis=1)
    return chosen


# How answers are pooled: by likelihood, by the mean, and with probes wasted elsewhere (§4.6).
#
# A weighted sum of answers with gaps g and weights w separates the worlds by
# mu = sum(w g) / (sigma sqrt(sum w^2)); the likelihood ratio is the sum with w = g, the best of
# them. Where all gaps are equal the mean is that sum.

Pooling: TypeAlias = Literal["everything", "on-target"]


def effective_accounts(accounts: int, on_target: int, pooling: Pooling = "everything") -> float:
    """Return how many accounts with every probe on target tell as much.

    The others probe a direction that holds nothing (the paper's adversary C). With the share
    alpha on target, the mean of everything is worth alpha^2 k accounts; a coalition that knows
    its own probes pools those on target alone, as the likelihood ratio does, and is worth
    alpha k. The paper measures the first.

    Args:
        accounts: k.
        on_target: Of them.
        pooling: What goes into the mean.

    Raises:
        InputError: A value is outside its range.
    """
    k = whole("accounts", accounts)
    aimed = whole("accounts on target", on_target, 0)
    if aimed > k:
        raise InputError(f"{aimed} of {k} accounts cannot be on target.")
    if pooling == "everything":
        return aimed * aimed / k
    if pooling == "on-target":
        return float(aimed)
    raise InputError(f"There is no pooling {pooling!r}.", "Use everything or on-target.")
