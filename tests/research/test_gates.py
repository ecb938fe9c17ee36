"""P1, P2 and P3: they pass where theory holds, and fail where it is broken on purpose."""

from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from research.gates import Findings, band_of, judge
from research.scalar import Cell, SweepConfig, sweep


def _states(findings: Findings) -> dict[str, str]:
    return {gate.name[:2]: gate.state for gate in findings.gates}


def _moved(cell: Cell, value: float) -> Cell:
    area = replace(cell.area, value=value)
    return replace(cell, area=area, z=(value - cell.predicted) / cell.error)


@pytest.fixture(scope="module")
def measured() -> tuple[SweepConfig, tuple[Cell, ...]]:
    config = SweepConfig(epsilons=(1.0, 5.0, 10.0), trials=200_000, seed=11)
    return config, sweep(config)


def test_the_band_of_fifteen_cells() -> None:
    assert band_of(15) == pytest.approx(2.935, abs=1e-3)
    assert band_of(1) == pytest.approx(1.96, abs=1e-3)


def test_every_gate_passes_where_theory_holds(measured) -> None:
    findings = judge(*measured)
    assert _states(findings) == {"P1": "pass", "P2": "pass", "P3": "pass"}
    assert findings.outside == 0
    assert findings.chance == pytest.approx(0.0033, abs=1e-4)  # research, section 2
    for row in findings.rows:
        assert abs(row.slope - row.expected) < 3 * row.error
    assert findings.rows[-1].growth == pytest.approx(3.61, abs=0.12)  # 3 standard errors


def test_exact_noise_has_no_common_scale() -> None:
    config = SweepConfig(epsilons=(0.5, 10.0), calibration="exact", trials=100_000, seed=2)
    assert _states(judge(config, sweep(config))) == {"P1": "pass", "P2": "fail", "P3": "pass"}


def test_shared_noise_breaks_the_slope(measured) -> None:
    """Where accounts share their noise (M1 broken), pooling brings nothing: AUC stays at k = 1."""
    config, cells = measured
    flat = {c.epsilon: c.area.value for c in cells if c.accounts == 1}
    findings = judge(config, [_moved(c, flat[c.epsilon]) for c in cells])
    assert _states(findings)["P1"] == "fail"
    assert _states(findings)["P3"] == "fail"
    assert findings.outside >= 10  # of 12 with more than one account


def test_more_than_the_bound_allows_is_a_failure(measured) -> None:
    config, cells = measured
    above = judge(config, cells).ceilings[0] + 0.01
    findings = judge(config, [_moved(cells[0], above), *cells[1:]])
    gate = next(gate for gate in findings.gates if gate.name.startswith("P3"))
    assert gate.state == "fail"
    assert "(3.2)" in gate.why


def test_few_trials_resolve_nothing() -> None:
    config = SweepConfig((1, 4), (0.1,), trials=500)
    states = _states(judge(config, sweep(config)))
    assert states == {"P1": "not resolved", "P2": "not resolved", "P3": "not resolved"}


def test_saturated_cells_carry_no_slope() -> None:
    config = SweepConfig((1, 4), (160.0,), trials=500)
    findings = judge(config, sweep(config))
    assert findings.rows[0].cells == 0
    assert _states(findings)["P1"] == "not resolved"


def test_a_true_theory_fails_once_in_twenty() -> None:
    """P1 and P3 are 5 % tests of a family: over 200 sweeps few fail."""
    config = SweepConfig((1, 2, 4), (5.0, 10.0), trials=4000)
    failed = [0, 0]
    for seed in range(200):
        states = _states(judge(config, sweep(replace(config, seed=seed))))
        failed[0] += states["P1"] == "fail"
        failed[1] += states["P3"] == "fail"
    # P1: a slope and a misfit per row, each at 5 % / 6; P3: half of 5 %; and 3 sd above
    assert failed[0] <= 7 + 8
    assert failed[1] <= 5 + 7


def test_no_cell_is_refused() -> None:
    with pytest.raises(InputError):
        judge(SweepConfig(), [])
