"""When a policy counts as collapsed."""

import pytest

from research.canary.optimisation import History
from research.canary.trial import collapse_of


def _seen(**changed):
    return {"empty": 0.0, "ended": 1.0, "quality": 1.0, "canaries": 0.0} | changed


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (_seen(), ""),
        (_seen(empty=0.9), "empty"),
        (_seen(ended=0.1), "end"),
        (_seen(quality=0.3), "quality fell"),
        (_seen(canaries=0.8), "unasked"),
    ],
)
def test_a_collapse_is_named(after, why):
    found = collapse_of(History(kl=[0.1]), after, _seen(), 0.2)
    assert why in found
    assert bool(found) == bool(why)


def test_a_policy_far_from_its_base_counts_as_collapsed():
    assert "nats" in collapse_of(History(kl=[50.0]), _seen(), _seen(), 0.2)


@pytest.mark.parametrize(
    ("rewards", "kl", "why"),
    [
        ([0.1, 0.2, 0.0, 0.2, 0.1, 0.2], 0.3, ""),
        ([0.1, 0.2, 0.4, 0.6, 0.7, 0.9], 3.0, ""),  # dear, but worth it
        ([0.1, 0.2, 0.0, 0.2, 0.1, 0.2], 4.0, "reward less 0.2 KL fell from 0.10 to -0.60"),
        ([0.1, 0.0, 0.1, -0.9, -0.8, -0.9], 0.0, "fell from 0.10 to -0.90"),
        ([-5.0, 0.1, 0.0, 0.1, 0.0, -5.2], 0.0, ""),
        ([0.0] * 6, 0.2, ""),  # no answer is better than another
    ],
)
def test_a_training_that_loses_what_it_maximises_has_collapsed(rewards, kl, why):
    found = collapse_of(History(rewards=rewards, kl=[kl] * 6), _seen(), _seen(), 0.2)
    assert why in found
    assert bool(found) == bool(why)
