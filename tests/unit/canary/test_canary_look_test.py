"""Calls over several looks: never more than alpha allows, never fewer than the union bound gives.

The opponents: ties, looks that agree, looks that leap from one outcome to another, and candidates
that every release likes by nature.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragwitness.canary.rank_test import (
    Seen,
    SlotScores,
    call_outcomes,
    looks_p_value,
    rank_of,
    release_weight,
    room,
)


@pytest.mark.parametrize("releases", [0, 2, 3, 7])
@pytest.mark.parametrize("kind", range(3))
def test_what_is_called_stays_within_alpha_and_holds_what_the_union_bound_calls(
    releases: int, kind: int
) -> None:
    rng = np.random.default_rng([releases, kind])
    for m in (10, 40, 128, 300):
        called: set[int] = set()
        base = rng.normal(size=m)
        for look in range(1, (releases or 12) + 1):
            scores = [rng.normal(size=m), base + 0.2 * rng.normal(size=m),
                      rng.integers(0, 4, size=m).astype(float)][kind]  # fmt: skip
            fresh = call_outcomes(scores, called, 0.05, look, releases)
            assert not called & set(fresh)
            called |= set(fresh)
            assert len(called) <= math.floor(0.05 * m + 1e-9)
            if releases:
                assert len(called) <= room(m, 0.05, look, releases)
            ranks = [rank_of(SlotScores(scores, at)) for at in range(m)]
            bound = 0.05 * release_weight(look, releases) * m + 1e-9
            assert {at for at in range(m) if ranks[at] <= bound} <= called


def test_what_was_called_before_costs_nothing_and_what_is_left_over_is_kept() -> None:
    scores = np.arange(60.0)
    first = call_outcomes(scores, (), 0.05, 1, 3)
    assert first == (59,)
    # Two looks that agree: the second goes one further down.
    assert call_outcomes(scores, first, 0.05, 2, 3) == (58,)
    # A tie of three is called whole or not at all, and its room is there at the next look.
    tied = np.where(scores >= 57, 99.0, scores)
    assert call_outcomes(tied, (), 0.05, 1, 3) == ()
    assert sorted(call_outcomes(tied, (), 0.05, 3, 3)) == [57, 58, 59]


def test_with_an_open_end_what_stands_out_is_called_at_any_look() -> None:
    rng = np.random.default_rng(1)
    called: set[int] = set()
    for look in range(1, 41):
        scores = rng.normal(size=128)
        if look == 40:
            scores[5] += 12
        called |= set(call_outcomes(scores, called, 0.05, look, 0))
        if look == 14:
            assert len(called) == 5
    assert 5 in called or len(called) == 6
    late = np.zeros(128)
    late[9] = 1.0
    # After the 14th look there is room for one more, and what stands out takes it at once.
    assert call_outcomes(late, {1, 2, 3, 4, 8}, 0.05, 14, 0) == (9,)
    assert call_outcomes(rng.normal(size=128), {1, 2, 3, 4, 8}, 0.05, 14, 0) == ()
    assert call_outcomes(late, {1, 2, 3, 4, 8, 11}, 0.05, 90, 0) == ()


def test_the_p_value_is_the_union_bound_where_called_and_above_alpha_where_not() -> None:
    assert looks_p_value([0.3, 0.001], True, 0.05, 2) == 0.002
    assert looks_p_value([0.3, 0.04], True, 0.05, 2) == 0.05
    assert looks_p_value([0.3, 0.04], False, 0.05, 2) == pytest.approx(0.13)
    # Not called although a bound would: the room went to what stood out before.
    assert looks_p_value([0.3, 0.001], False, 0.05, 0) == pytest.approx(0.056)
    assert looks_p_value([0.5], False, 0.05, 0) == 1.0
    assert looks_p_value([0.5, 0.5, 1e-9], False, 0.05, 2) == 1.0  # one look too many
    assert Seen(()).own == 1.0
