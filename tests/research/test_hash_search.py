"""The search by sign hashes: what it finds, against its promise and against its definition."""

import math

import numpy as np
import pytest

from ragwitness.collusion.detectors import hashes
from ragwitness.privacy.account_pairs import largest_component, similar_pairs
from ragwitness.privacy.query_log import make_log
from research.coalitions import traffic, unit_rows
from research.hash_search import Hashing, bucketed_pairs


def test_hashes_find_the_share_they_promise() -> None:
    rng = np.random.default_rng(3)
    config = Hashing(tables=4, bits=8, reach=400)
    pairs, cosine = 400, 0.8
    one = unit_rows(rng, pairs, 64)
    side = unit_rows(rng, pairs, 64)
    side -= (side * one).sum(axis=1, keepdims=True) * one
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    other = cosine * one + math.sqrt(1 - cosine**2) * side
    names = [f"{who}{at}" for who in "ab" for at in range(pairs)]
    log = make_log(names, list(range(pairs)) * 2, np.concatenate([one, other]))
    found = bucketed_pairs(log, 0.79, config=config)
    alike = (1 - math.acos(cosine) / math.pi) ** config.bits  # in one table
    expected = 1 - (1 - alike) ** config.tables
    # tables are drawn once for all pairs: wider than binomial
    assert len(found.first) / pairs == pytest.approx(expected, abs=0.08)
    exact = similar_pairs(log, 0.79)
    assert {*zip(found.first, found.second, strict=True)} <= {
        *zip(exact.first, exact.second, strict=True)
    }


def test_hashes_keep_to_the_window_and_to_other_accounts() -> None:
    vectors = np.ones((4, 3))
    log = make_log(["a", "a", "b", "c"], [0, 1, 2, 100], vectors)
    assert [*bucketed_pairs(log, 0.9, window=10.0).second] == [1]
    assert len(largest_component(bucketed_pairs(log, 0.9))) == 3


@pytest.mark.parametrize("block", [7, 2048])
def test_a_bucket_s_neighbours_are_compared_up_to_the_reach(block: int, monkeypatch) -> None:
    """Against the definition, however the search is cut into blocks and strips."""
    monkeypatch.setattr("research.hash_search._BLOCK", block)
    monkeypatch.setattr("research.hash_search._STRIP", 3)
    log = traffic(np.random.default_rng(7), unit_rows(np.random.default_rng(8), 20, 10, 4))
    config = Hashing(tables=3, bits=2, reach=5, seed=1)
    known: dict[tuple[int, int], float] = {}
    for buckets in hashes(log, config.tables, config.bits, config.seed):
        for bucket in np.unique(buckets):
            inside = np.flatnonzero(buckets == bucket)
            for at, one in enumerate(inside):
                for other in inside[at + 1 : at + 1 + config.reach]:
                    pair = tuple(sorted((int(log.accounts[one]), int(log.accounts[other]))))
                    cosine = float(log.vectors[one] @ log.vectors[other])
                    if pair[0] != pair[1] and cosine >= 0.5:
                        known[pair] = max(known.get(pair, -1.0), cosine)
    found = bucketed_pairs(log, 0.5, config=config)
    assert {*zip(found.first.tolist(), found.second.tolist(), strict=True)} == {*known}
