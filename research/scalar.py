"""The scalar attack (sections 3.5 and 4.1): k accounts repeat one probe and pool their answers.

Each answer is the score gap of the document, or 0 without it, plus Gaussian noise (3.3). The mean
of all kq answers is sufficient, and normal again with standard deviation sigma / sqrt(kq): a
trial draws that mean, not its kq answers. A test compares both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of, mu_of
from ragwitness.privacy.ranges import positive, probability, whole
from research.separation import Area, Calibration, area_of, noise_for, spread

_MOST_TRIALS = 20_000_000  # 1 GB of samples and their orders


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """What is varied and what is held.

    Attributes:
        accounts: Coalition sizes k.
        epsilons: Budgets per account.
        queries: q of each account within a window.
        delta: Failure probability per account.
        gap: Score with the document minus score without it.
        sensitivity: What the noise was calibrated for; a gap above it is refused.
        calibration: How the noise follows from the budget per account.
        trials: Paired worlds per cell.
        seed: Seed of the noise; each cell has its own stream.
    """

    accounts: tuple[int, ...] = (1, 2, 4, 8, 16)
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    queries: int = 1000
    delta: float = 1e-6
    gap: float = 1.0
    sensitivity: float = 1.0
    calibration: Calibration = "classic"
    trials: int = 1_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is outside its range, by name."""
        if not self.accounts or not self.epsilons:
            raise InputError("A sweep needs at least one coalition size and one epsilon.")
        if len({*self.accounts}) < len(self.accounts) or len({*self.epsilons}) < len(self.epsilons):
            raise InputError("A coalition size or an epsilon is given twice.")
        for k in self.accounts:
            whole("accounts", k)
        for epsilon in self.epsilons:
            positive("epsilon", epsilon)
        whole("queries", self.queries)
        probability("delta", self.delta)
        positive("sensitivity", self.sensitivity)
        if positive("gap", self.gap) > self.sensitivity:
            raise InputError(
                f"A gap of {self.gap:g} is above the sensitivity of {self.sensitivity:g}, which"
                " the noise is calibrated for."
            )
        if whole("trials", self.trials, 2) > _MOST_TRIALS:
            raise InputError(f"trials must be at most {_MOST_TRIALS:,}, not {self.trials:,}.")
        whole("seed", self.seed, 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One coalition size at one budget.

    Attributes:
        epsilon: Budget per account.
        accounts: k.
        sigma: Standard deviation of the noise.
        mu: Distance of the pooled means in standard deviations: sqrt(kq) gap / sigma.
        area: Measured AUC.
        predicted: Phi(mu / sqrt 2).
        error: Exact standard error of the AUC where the prediction holds.
        z: Measured minus predicted, in units of ``error``.
    """

    epsilon: float
    accounts: int
    sigma: float
    mu: float
    area: Area
    predicted: float
    error: float
    z: float


def sweep(
    config: SweepConfig, progress: Callable[[int, int], None] | None = None
) -> tuple[Cell, ...]:
    """Measure every cell, epsilon by epsilon.

    Args:
        config: What is varied.
        progress: Called with cells done and cells in all.

    Raises:
        InputError: The calibration has no noise for a budget.
    """
    wanted = [(epsilon, k) for epsilon in config.epsilons for k in config.accounts]
    cells = []
    for at, (epsilon, k) in enumerate(wanted):
        cells.append(_cell(config, epsilon, k, at))
        if progress is not None:
            progress(at + 1, len(wanted))
    return tuple(cells)


def _cell(config: SweepConfig, epsilon: float, k: int, at: int) -> Cell:
    sigma = noise_for(config.calibration, epsilon, config.delta, config.queries, config.sensitivity)
    mu = mu_of(sigma, k * config.queries, config.gap)
    rng = np.random.default_rng((config.seed, at))
    # in units of sigma / sqrt(kq), which no order depends on
    absent = rng.standard_normal(config.trials)
    present = rng.standard_normal(config.trials) + mu
    area = area_of(present, absent)
    predicted, error = auc_of(mu), spread(mu, config.trials)
    return Cell(
        epsilon=epsilon,
        accounts=k,
        sigma=sigma,
        mu=mu,
        area=area,
        predicted=predicted,
        error=error,
        z=(area.value - predicted) / error if error > 0 else 0.0,
    )
