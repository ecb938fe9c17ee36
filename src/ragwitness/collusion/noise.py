"""The noise that follows from a budget per account, by the calibrations in use."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.calibration import classic_sigma, leading_sigma
from ragwitness.privacy.accounting.gaussian import sigma_for

__all__ = ["CALIBRATIONS", "Calibration", "noise_for"]

Calibration: TypeAlias = Literal["classic", "leading", "exact"]
CALIBRATIONS: tuple[Calibration, ...] = ("classic", "leading", "exact")
"""``classic``: the paper's (3.1) with (3.4). ``leading``: sigma = S / eps_q, behind (3.7).
``exact``: the least noise with which q answers keep the budget."""


def noise_for(
    calibration: str, epsilon: float, delta: float, queries: int, sensitivity: float = 1.0
) -> float:
    """Return sigma.

    Args:
        calibration: One of :data:`CALIBRATIONS`.
        epsilon: Budget per account.
        delta: Failure probability per account.
        queries: Of each account.
        sensitivity: L2 change of one answer when one document changes.

    Raises:
        InputError: An unknown calibration, a value outside its range, or a budget per query for
            which (3.4) does not hold.
    """
    if calibration == "exact":
        return sigma_for(epsilon, delta, queries, sensitivity)
    if calibration not in CALIBRATIONS:
        raise InputError(
            f"There is no calibration {calibration!r}.", f"Available: {', '.join(CALIBRATIONS)}."
        )
    classic = calibration == "classic"
    return (classic_sigma if classic else leading_sigma)(epsilon, delta, queries, sensitivity)
