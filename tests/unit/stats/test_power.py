"""Expected power against closed forms, quadrature, and the verdict procedure itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from ragwitness.core.errors import InputError
from ragwitness.core.types import Decision, Document, Score
from ragwitness.membership.verdicts import Judged, judge
from ragwitness.stats.p_values import benjamini_hochberg, documents_needed
from ragwitness.stats.power import (
    Binormal,
    expected_power,
    needed_together,
)

_ROUNDS = 4000


def _near(value: float, rounds: int = _ROUNDS) -> object:
    """Four standard errors of a share of so many independent trials."""
    return pytest.approx(value, abs=4 * math.sqrt(max(value * (1 - value), 1e-4) / rounds))


@pytest.mark.slow
@pytest.mark.parametrize("auc", [0.6, 0.8, 0.95])
@pytest.mark.parametrize(("known", "alpha"), [(19, 0.05), (30, 0.05), (99, 0.05), (40, 0.2)])
def test_one_document_has_the_closed_form(auc: float, known: int, alpha: float) -> None:
    # p <= alpha where at most r of m known scores are as high, each with probability u;
    # u is the normal tail beyond the member's score.
    most = math.floor(alpha * (known + 1) + 1e-9) - 1
    gap = math.sqrt(2) * norm.ppf(auc)
    exact = quad(lambda z: norm.pdf(z) * binom.cdf(most, known, norm.sf(z + gap)), -9, 9)[0]
    found = expected_power(
        Binormal(auc), documents=1, known_out=known, inside_share=1, alpha=alpha, rounds=_ROUNDS
    )
    assert found.found == _near(exact)
    assert found.false == 0


@pytest.mark.parametrize(("known", "alpha"), [(18, 0.05), (19, 0.05), (150, 0.1)])
def test_without_separation_a_member_is_called_in_as_often_as_anything(known, alpha) -> None:
    found = expected_power(
        Binormal(0.5), documents=1, known_out=known, inside_share=1, alpha=alpha, rounds=_ROUNDS
    )
    assert found.found == _near(math.floor(alpha * (known + 1) + 1e-9) / (known + 1))


def test_perfect_separation_is_found_as_soon_as_it_can_be() -> None:
    for known in (documents_needed(0.05), 200):
        found = expected_power(Binormal(1), documents=40, known_out=known, inside_share=1)
        assert (found.found, found.low, found.false) == (1.0, 1.0, 0.0)
    found = expected_power(
        Binormal(1), documents=40, known_out=documents_needed(0.05) - 1, inside_share=1
    )
    assert (found.found, found.false) == (0.0, 0.0)


def test_it_is_the_procedure_of_the_verdicts() -> None:
    rng, gap, rounds = np.random.default_rng(7), math.sqrt(2) * norm.ppf(0.95), 400
    hits = members = false = 0
    for _ in range(rounds):
        inside = rng.random(20) < 0.4
        scores = rng.standard_normal(20) + gap * inside
        items = [
            Judged(Document(str(i), "", member=bool(m)), Score(float(s)), float(s), None, 1)
            for i, (s, m) in enumerate(zip(scores, inside, strict=True))
        ]
        outside = rng.standard_normal(99).tolist()
        for verdict in judge(items, outside=outside, inside=(), alpha=0.1):
            called = verdict.decision is Decision.IN
            members += bool(verdict.member)
            hits += called and bool(verdict.member)
            false += called and not verdict.member
    found = expected_power(
        Binormal(0.95), documents=20, known_out=99, inside_share=0.4, alpha=0.1, rounds=2000
    )
    assert found.found == pytest.approx(hits / members, abs=0.06)
    assert found.false == pytest.approx(false / rounds, abs=0.15)


@pytest.mark.parametrize("auc", [0.5, 0.9])
def test_false_discoveries_stay_below_alpha(auc: float) -> None:
    found = expected_power(Binormal(auc), documents=20, known_out=199, alpha=0.1, rounds=2000)
    assert found.false_share <= 0.1 * 0.5 + 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_power_rises_with_known_out_documents_and_with_separation() -> None:
    by_known = [
        expected_power(Binormal(0.9), documents=20, known_out=known, rounds=500).found
        for known in (19, 39, 79, 159, 319, 639)
    ]
    assert by_known == sorted(by_known)
    assert by_known[-1] > by_known[0] + 0.1
    by_auc = [
        expected_power(Binormal(auc), documents=20, known_out=199, rounds=500).found
        for auc in (0.5, 0.7, 0.9, 0.99, 1)
    ]
    assert by_auc == sorted(by_auc)


def test_the_same_seed_gives_the_same_and_large_audits_take_fewer_rounds() -> None:
    small = expected_power(Binormal(0.8), documents=5, known_out=50)
    assert small == expected_power(Binormal(0.8), documents=5, known_out=50)
    assert small.rounds == 2000
    assert expected_power(Binormal(0.8), documents=9000, known_out=1000).rounds == 200


def test_nothing_is_found_without_known_documents_or_members() -> None:
    assert expected_power(Binormal(1), documents=3, known_out=0).found == 0
    assert math.isnan(
        expected_power(Binormal(1), documents=1, known_out=9, inside_share=1e-9).found
    )


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("known", [5, 19, 60, 400])
@pytest.mark.parametrize("documents", [1, 7, 100])
def test_so_many_must_be_called_in_together(alpha: float, known: int, documents: int) -> None:
    least = 1 / (known + 1)
    calls = [
        r
        for r in range(1, documents + 1)
        if benjamini_hochberg([least] * r + [1.0] * (documents - r))[0] <= alpha + 1e-12
    ]
    assert needed_together(alpha, documents, known) == (calls[0] if calls else None)
    if calls and calls[0] == 1:
        assert known >= documents_needed(alpha, documents)


@pytest.mark.parametrize("auc", [0.49, 1.01, math.nan])
def test_an_impossible_auc_is_refused(auc: float) -> None:
    with pytest.raises(InputError, match="AUC"):
        Binormal(auc)


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": 0}, {"alpha": 1}, {"inside_share": 0}, {"inside_share": 1.1}, {"documents": 0}],
)
def test_impossible_audits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        expected_power(Binormal(0.9), **({"documents": 3, "known_out": 9} | wrong))
