"""Power before planting: told between rows that were measured, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.canary import power
from ragwitness.canary.draw import Design
from ragwitness.canary.power import MEASURED, TRAININGS, MeasuredRow, found_share, power_lines
from ragwitness.core.errors import InputError

ROWS = (
    MeasuredRow("preference", 16, 1.0, 4, 10),
    MeasuredRow("preference", 32, 1.0, 11, 12),
    MeasuredRow("preference", 100, 1.0, 12, 12),
    MeasuredRow("supervised", 64, 1.0, 5, 6),
)


@pytest.fixture
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "MEASURED", ROWS)


@pytest.mark.usefixtures("_rows")
def test_a_forecast_stays_between_the_rows_that_were_measured() -> None:
    low, high = found_share("preference", 32, 1.0) or (0, 0)
    assert (low, high) == pytest.approx((0.573, 0.999), abs=1e-3)  # 97.5 %: of two rows
    of_32 = high
    assert (found_share("preference", 50, 1.0) or (0, 0))[0] == low
    assert (found_share("preference", 20, 1.0) or (0, 0))[1] == high
    # Fewer votes or a smaller share than any row: an upper limit, and no lower one.
    for votes, share in ((8, 1.0), (32, 0.3), (32, 0.01), (16, 0.0001)):
        limits = found_share("preference", votes, share) or (1, 0)
        assert limits[0] == 0 < limits[1] < 1
    assert (found_share("preference", 32, 0.01) or (0, 0))[1] == of_32
    # More votes than any row: a lower limit, and no upper one.
    assert (found_share("preference", 200, 1.0) or (0, 0))[1] == 1.0
    # No row on either side, or another training: not measured.
    for kind, votes, share in (("preference", 4800, 0.0001), ("reward", 64, 1.0)):
        assert found_share(kind, votes, share) is None
    for votes, share in ((-1, 1.0), (5, 0.0), (5, 1.5)):
        with pytest.raises(InputError):
            found_share("preference", votes, share)


@pytest.mark.usefixtures("_rows")
def test_one_vote_in_ten_thousand_is_not_measured_and_said_as_such() -> None:
    """It said that 81 % of providers are found, with "0% of the provider's votes ours"."""
    lines = list(power_lines(Design(), 4800, 0.0001))
    assert "1 in 10,000 of all votes" in lines[0]
    assert all("not measured; measured: " in one for one in lines[1:])
    assert len(lines) == 1 + len(TRAININGS)
    assert not any("%" in one.partition("measured: ")[0] for one in lines[1:])


@pytest.mark.usefixtures("_rows")
def test_nothing_is_told_without_a_share_or_far_from_the_measured_obedience() -> None:
    assert "--share says what part" in next(power_lines(Design(), 32))
    for obedience in (0.0, 0.1, 0.95, 1.0):
        [line] = power_lines(Design(), 32, 1.0, obedience)
        assert "not measured where" in line
    lines = list(power_lines(Design(), 32, 1.0, 0.6))
    assert "57% to 100% of violating providers" in lines[1]
    for design, said in ((Design(candidates=8), "the p-value is 0.125 at best"),):
        [line] = power_lines(design, 32, 1.0)
        assert said in line


@pytest.mark.usefixtures("_rows")
def test_votes_are_counted_by_slot() -> None:
    assert "16 canary votes a slot" in next(power_lines(Design(slots=4), 64, 1.0))


def test_a_row_between_many_others_is_covered_at_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """More votes find no more here: the worst case, in which every neighbour's end could err."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(500):
        found = rng.binomial(40, 0.5, size=9).tolist()
        rows = [MeasuredRow("reward", 10 + n, 1.0, one, 40) for n, one in enumerate(found)]
        monkeypatch.setattr(power, "MEASURED", (*rows[:4], *rows[5:]))
        low, high = found_share("reward", 14, 1.0) or (1, 0)
        covered += low <= 0.5 <= high
    assert covered >= binom.ppf(0.001, 500, 0.95)


def test_each_stored_row_is_covered_by_its_neighbours() -> None:
    """Left out one at a time: where its neighbours say anything, its own share lies within."""
    assert MEASURED
    told = 0
    for row in MEASURED:
        others = tuple(one for one in MEASURED if one is not row)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(power, "MEASURED", others)
            limits = found_share(row.training, row.votes, row.share)
        if limits is not None:
            told += 1
            assert limits[0] <= row.found / row.policies <= limits[1]
    for row in MEASURED:  # and each row's own forecast holds its own share
        low, high = found_share(row.training, row.votes, row.share) or (1, 0)
        assert low <= row.found / row.policies <= high
