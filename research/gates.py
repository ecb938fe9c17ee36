"""The paper's predictions (section 3.8) as tests with a stated error rate.

P1 and P3 are gates, P2 is a diagnostic. The paper asks each of 15 cells to lie within one
standard error, which a true prediction passes once in 300 times; here every test is at 5 % over
the number of cells (Bonferroni). P1 is tested where it is exact: sqrt(2) Phi^-1(AUC) =
mu_1 sqrt(k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import joint_budget
from ragwitness.privacy.gaussian import auc_limit
from research.inference import mu_of_auc
from research.scalar import Cell, SweepConfig

State: TypeAlias = Literal["pass", "fail", "not resolved"]
_LEVEL = 0.05
_FEWEST_WRONG = 10  # pairs out of order per trial count, from where on the scale is linear


@dataclass(frozen=True, slots=True)
class GateRow:
    """One budget over all coalition sizes.

    Attributes:
        epsilon: Budget per account.
        slope: Slope of sqrt(2) Phi^-1(AUC) on sqrt(k), through the origin.
        error: Its standard error.
        expected: mu_1, by theory.
        misfit: p-value of the departure from a line; 1 with a single cell.
        growth: AUC excess at the largest k over that at the smallest.
        cells: Number of cells that the slope rests on; saturated ones (AUC near 1) carry no slope.
    """

    epsilon: float
    slope: float
    error: float
    expected: float
    misfit: float
    growth: float
    cells: int


@dataclass(frozen=True, slots=True)
class TheoryGate:
    """One prediction and what the cells say of it."""

    name: str
    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What a sweep says.

    Attributes:
        band: Bonferroni bound of |z| over all cells.
        outside: Cells beyond it.
        within_one: Cells within one standard error, the paper's criterion.
        chance: Probability that all are, where every prediction holds.
        rows: One row for each epsilon.
        ceilings: Largest AUC that the paper's joint bound allows, per cell.
        gates: P1, P3 and the diagnostic P2.
    """

    band: float
    outside: int
    within_one: int
    chance: float
    rows: tuple[GateRow, ...]
    ceilings: tuple[float, ...]
    gates: tuple[TheoryGate, ...]


def band_of(family: int) -> float:
    """Return the bound that |z| stays below in all of ``family`` tests with 95 %."""
    from scipy.special import ndtri

    return float(-ndtri(_LEVEL / (2 * family)))


def judge(config: SweepConfig, cells: Sequence[Cell]) -> Findings:
    """Judge the cells of one sweep.

    Raises:
        InputError: There is no cell.
    """
    if not cells:
        raise InputError("There is no cell to judge.")
    # One band for all cells, Bonferroni; then slope (P1), tightness (P3), collapse (P2).
    band = band_of(len(cells))
    rows = tuple(_row(epsilon, cells) for epsilon in config.epsilons)
    # The largest AUC under Theorem 3.4 at its own delta, (k + 1) delta.
    most = (joint_budget(c.epsilon, config.delta, config.queries, c.accounts) for c in cells)
    ceilings = tuple(auc_limit(joint.epsilon, joint.delta) for joint in most)
    return Findings(
        band=band,
        outside=sum(abs(cell.z) >= band for cell in cells),
        within_one=sum(abs(cell.z) <= 1 for cell in cells),
        chance=math.erf(1 / math.sqrt(2)) ** len(cells),
        rows=rows,
        ceilings=ceilings,
        gates=(
            _slope_gate(rows, band),
            _tightness_gate(cells, ceilings, band),
            _collapse(rows, len(cells)),
        ),
    )


def _row(epsilon: float, cells: Sequence[Cell]) -> GateRow:
    mine = [cell for cell in cells if cell.epsilon == epsilon]
    used = [cell for cell in mine if not _saturated(cell)]
    # Weighted least squares through the origin on the probit scale, delta method for the errors.
    x = np.sqrt([cell.accounts for cell in used])
    found = np.array([mu_of_auc(cell.area.value) for cell in used])
    # d mu / d AUC = sqrt(2) / phi(mu / sqrt 2)
    scale = np.array([2 * math.sqrt(math.pi) * math.exp(cell.mu**2 / 4) for cell in used])
    weight = 1 / (scale * np.array([cell.error for cell in used])) ** 2
    total = float((weight * x * x).sum())
    slope = float((weight * x * found).sum() / total) if used else math.nan
    first, last = (choose(mine, key=lambda c: c.accounts) for choose in (min, max))
    expected = mine[0].mu / math.sqrt(mine[0].accounts)
    return GateRow(
        epsilon=epsilon,
        slope=slope,
        error=1 / math.sqrt(total) if used else math.nan,
        expected=expected,
        misfit=_tail(float((weight * (found - slope * x) ** 2).sum()), len(used) - 1),
        growth=(last.area.value - 0.5) / (first.area.value - 0.5 or math.nan),
        cells=len(used),
    )


def _saturated(cell: Cell) -> bool:
    """Whether so few pairs are out of order that the probit scale is not normal."""
    few = _FEWEST_WRONG / cell.area.n
    return min(1 - cell.area.value, cell.area.value, 1 - cell.predicted) < few


def _tail(statistic: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def _slope_gate(rows: Sequence[GateRow], band: float) -> TheoryGate:
    """P1: one slope per budget, positive, and the predicted one."""
    from scipy.special import ndtr

    name = "P1 slope"
    usable = [row for row in rows if row.cells]
    for row in usable:
        z = (row.slope - row.expected) / row.error
        if row.misfit < 2 * float(ndtr(-band)):
            why = f"at epsilon {row.epsilon:g} the cells lie on no line (p = {row.misfit:.2g})"
            return TheoryGate(name, "fail", why)
        if abs(z) >= band:
            why = f"at epsilon {row.epsilon:g} the slope is {z:+.1f} standard errors off mu_1"
            return TheoryGate(name, "fail", why)
    weak = [row for row in rows if not row.cells or row.slope < band * row.error]
    if weak:
        named = ", ".join(f"{row.epsilon:g}" for row in weak)
        why = f"no slope above 0 can be told at epsilon {named}: more trials, or AUCs below 1"
        return TheoryGate(name, "not resolved", why)
    return TheoryGate(name, "pass", "linear in sqrt(k) with slope mu_1 at every epsilon")


def _tightness_gate(cells: Sequence[Cell], ceilings: Sequence[float], band: float) -> TheoryGate:
    """P3: not below the attack's own prediction, above chance, and below the joint bound."""
    name = "P3 tightness"
    for cell, ceiling in zip(cells, ceilings, strict=True):
        where = f"at epsilon {cell.epsilon:g}, k = {cell.accounts}"
        if cell.z <= -band:
            return TheoryGate(name, "fail", f"{where} the AUC is below (3.10): z = {cell.z:.1f}")
        if cell.area.value - band * cell.area.error > ceiling:
            return TheoryGate(name, "fail", f"{where} the AUC is above what (3.2) allows")
    dim = [cell for cell in cells if cell.area.value <= 0.5 + band * cell.area.error]
    if dim:
        # standard error at chance: sqrt(1 / 6n)
        needed = (band / min(cell.predicted - 0.5 for cell in dim)) ** 2 / 6
        why = f"chance explains {len(dim)} of {len(cells)} cells too"
        return TheoryGate(name, "not resolved", f"{why}; some {needed:.1e} trials would tell")
    return TheoryGate(name, "pass", "every cell lies above chance, at its prediction, below (3.2)")


def _collapse(rows: Sequence[GateRow], family: int) -> TheoryGate:
    """P2: whether all budgets share one curve over sqrt(k) epsilon."""
    name = "P2 collapse"
    usable = [row for row in rows if row.cells]
    if len(usable) < 2:
        return TheoryGate(name, "not resolved", "needs two epsilons with AUCs below 1")
    # mu_1 / epsilon of every budget against their common mean, chi-square.
    ratios = np.array([row.slope / row.epsilon for row in usable])
    weights = np.array([(row.epsilon / row.error) ** 2 for row in usable])
    common = float((weights * ratios).sum() / weights.sum())
    p = _tail(float((weights * (ratios - common) ** 2).sum()), len(usable) - 1)
    said = f"mu_1 / epsilon is {', '.join(f'{ratio:.4f}' for ratio in ratios)}; p = {p:.2g}"
    if p < _LEVEL / family:
        return TheoryGate(name, "fail", f"{said}: the curves differ, as they do off classic noise")
    weak = any(row.slope < 2 * row.error for row in usable)
    return TheoryGate(name, "not resolved" if weak else "pass", said)
