"""What sampling could decide: exact power against simulated audits, and the line that says it."""

import numpy as np
import pytest

from ragwitness.canary.draw import Design
from ragwitness.canary.probe import ProbeConfig
from ragwitness.canary.rank_test import SlotScores, rank_power, share_found
from ragwitness.cli.canary import foretold
from ragwitness.core.errors import InputError
from tests.support.ranks import rank_p_value


@pytest.mark.parametrize(
    ("answers", "candidates", "own", "others"), [(8, 40, 0.5, 0.1), (20, 24, 0.4, 0.2)]
)
def test_power_is_the_share_of_simulated_audits_that_reject(
    answers: int, candidates: int, own: float, others: float
) -> None:
    rng = np.random.default_rng(0)
    chances = np.full(candidates, others)
    chances[0] = own
    shares = rng.binomial(answers, chances, size=(4000, candidates)) / answers
    seen = np.mean([rank_p_value(SlotScores(row, 0)) <= 0.05 for row in shares])
    told = rank_power(answers, candidates, 0.05, own, others)
    assert abs(seen - told) < 4 * np.sqrt(told * (1 - told) / 4000)


def test_a_share_that_is_found_is_the_least() -> None:
    least = share_found(8, 40, 0.05, 0.1)
    assert least is not None
    assert rank_power(8, 40, 0.05, least, 0.1) >= 0.8 > rank_power(8, 40, 0.05, least - 0.01, 0.1)
    assert share_found(80, 40, 0.05, 0.1) < least
    assert share_found(4, 40, 0.05, 0.5) is None  # all four are too often all four
    assert rank_power(100, 19, 0.05, 1.0, 0.0) == 0  # 1/19 is above the level
    with pytest.raises(InputError, match="two chances"):
        rank_power(8, 40, 0.05, 1.5, 0.1)


def test_what_is_foretold_follows_the_design() -> None:
    sampled = ProbeConfig("sampled", samples=2)
    said = list(foretold(Design(candidates=40, held_out=4), sampled, 4))
    assert said[1] == "sampled: 328 queries"
    assert "0.025" in said[2]
    assert said[3].startswith("sampled: 8 answers per candidate")
    assert "53% against 10% of the others'" in said[3]
    short = list(foretold(Design(candidates=10), sampled, 4))
    assert short[-1].endswith("level 0.05 cannot be reached")
    several = list(foretold(Design(candidates=40, slots=2), ProbeConfig(), 4))
    assert [line.partition(":")[0] for line in several[1:]] == [
        "exact",
        "forced, at 6 pieces per canary",
        "sampled",
        "p-value at best, at the first look",
    ]
