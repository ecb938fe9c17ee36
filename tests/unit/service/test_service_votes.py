"""Answers by votes: accounting by enumeration, the filter for life, and the attack of a review."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import discrete_laplace, system_bits
from ragwitness.service.policy import Claim
from ragwitness.service.private import TenantMeter
from ragwitness.service.store import open_store
from ragwitness.service.tenants import create_tenant, erase_tenant
from ragwitness.service.votes import VotePromise, ballot, voted_words
from ragwitness.stats.rates import proportion_interval


class Ballots:
    """Votes in memory."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def use(self, names: list[str], most: int) -> set[str]:
        voters = {name for name in names if self.used.get(name, 0) < most}
        self.used |= {name: self.used.get(name, 0) + 1 for name in voters}
        return voters


def repeat(_question: str, text: str) -> str:
    return text


def chances(count: int, promise: VotePromise) -> tuple[float, float]:
    """The exact chances that a word of so many votes is released, and that it is not."""
    q = math.exp(-1 / promise.scale)
    weights = {k: q ** abs(k) for k in range(-900, 901)}
    above = sum(w for k, w in weights.items() if count + k >= promise.least)
    below = sum(w for k, w in weights.items() if count + k < promise.least)
    return above / (above + below), below / (above + below)


@pytest.mark.parametrize(
    "promise", [VotePromise(), VotePromise(1.0, 1e-5, 2, 3), VotePromise(0.5, 1e-3, 1, 1)]
)
def test_one_document_more_moves_any_release_by_no_more_than_was_promised(
    promise: VotePromise,
) -> None:
    """By enumeration: its words are counted once more, or exist with it alone."""
    epsilon, delta = promise.epsilon / promise.uses, promise.delta / promise.uses
    worst = 0.0
    for count in range(1, 2 * promise.least):
        with_it, without = chances(count + 1, promise), chances(count, promise)
        worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(with_it, without, strict=True)))
    assert promise.words * worst <= epsilon * (1 + 1e-9)
    assert promise.words * chances(1, promise)[0] <= delta


def test_a_document_votes_as_often_as_was_promised_and_never_again() -> None:
    promise, ballots = VotePromise(epsilon=4.0, uses=2, words=2), Ballots()
    documents = [(f"d{at}", "nephritis", 0.9) for at in range(200)]
    heard: list[str] = []

    def vote(question: str, text: str) -> str:
        heard.append(question)
        return text

    answers = [voted_words(f"q{at}", documents, vote, promise, ballots) for at in range(4)]
    assert answers == [["nephritis"], ["nephritis"], [], []]
    assert [heard.count(f"q{at}") for at in range(4)] == [200, 200, 0, 0]


def test_votes_in_the_database_outlive_a_process_and_end_with_the_tenant(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "s.db"), create=True)
    create_tenant(store, "t", Claim(capacity=8))
    assert TenantMeter(store, "t").use(["a", "b"], 2) == {"a", "b"}
    assert TenantMeter(store, "t").use(["a"], 2) == {"a"}
    assert TenantMeter(store, "t").use(["a", "b"], 2) == {"b"}
    assert TenantMeter(store, "t").use(["a", "b"], 2) == set()
    assert erase_tenant(store, "t")["rows"]["ballots"] == 2
    store.close()


def test_a_vote_has_the_telling_words_that_the_question_has_not() -> None:
    answer = "The patient's nephritis was treated with prednisolone, and the nephritis went away."
    assert ballot(answer, "How was the nephritis treated?", 2)[0] == "prednisolone"
    assert len(ballot(answer, "", 3)) == 3
    assert ballot("", "why?", 4) == []


def test_asking_for_one_document_after_the_other_confirms_nobody() -> None:
    """The attack of the review: one question a document; is its own word in the answer?"""
    promise, hits = VotePromise(), []
    everybody = [(f"d{at}", f"patient{at:03d} has ailment{at:03d}", 0.9) for at in range(120)]
    for inside in (True, False):
        ballots = Ballots()
        confirmed = 0
        for at in range(60):
            world = [row for row in everybody if inside or row[0] != f"d{at}"]
            words = voted_words(f"patient{at:03d}?", world, repeat, promise, ballots)
            confirmed += f"ailment{at:03d}" in words
        hits.append(confirmed)
    assert hits == [0, 0]
    assert proportion_interval(hits[0], 60)[1] < 0.06


def test_what_many_documents_say_is_answered() -> None:
    documents = [(f"d{at}", "take prednisolone daily", 0.9) for at in range(40)]
    documents += [(f"e{at}", "rest", 0.1) for at in range(40)]  # below the threshold
    words = voted_words("What helps?", documents, repeat, VotePromise(), Ballots())
    assert "prednisolone" in words
    assert "rest" not in words


def test_the_noise_has_the_scale_that_is_accounted() -> None:
    draws = np.array([discrete_laplace(3, system_bits()) for _ in range(4000)])
    q = math.exp(-1 / 3)
    assert np.mean(draws == 0) == pytest.approx((1 - q) / (1 + q), abs=0.03)
    assert np.abs(draws).mean() == pytest.approx(2 * q / (1 - q * q), rel=0.1)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"uses": 0}, {"words": 0}]
)
def test_promises_of_nothing_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError):
        VotePromise(**change)  # type: ignore[arg-type]
