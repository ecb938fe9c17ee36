"""The page on outcomes has every first sentence of a verdict, and the odds of an epsilon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy.stats import norm

from ragwitness.attest.plain_words import first_lines, odds, odds_line, outcome_table
from ragwitness.attest.verdict import BundleVerdict, Check

_PAGE = (Path(__file__).parents[2] / "docs" / "outcomes.md").read_text(encoding="utf-8")
KINDS = ("audit", "leak", "canary", "window")
OUTCOMES = ("pass", "fail", "inconclusive")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_stands_on_the_page(kind: str, outcome: str) -> None:
    table = outcome_table()
    row = table[kind][outcome]
    assert f"| {outcome.upper()} | {row['says']} | {row['not_said']} |" in _PAGE
    assert table[kind]["word"] in _PAGE
    assert table["next"][outcome] in _PAGE


def test_the_page_has_twelve_outcomes_and_no_other() -> None:
    assert {*outcome_table()} == {*KINDS, "next"}
    rows = [line for line in _PAGE.splitlines() if re.match(r"\| [a-z, ]+ \| [A-Z]+ \|", line)]
    assert len(rows) == 12


def test_the_odds_on_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([0-9.]+) \| ([0-9]+) \|$", _PAGE, re.MULTILINE)
    assert len(rows) >= 7
    for epsilon, right in rows:
        assert odds(float(epsilon), 1e-6) == int(right), epsilon


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5])
def test_the_best_guess_at_gaussian_noise_is_never_better_than_the_odds(mu: float) -> None:
    """Against the optimal test of N(0, 1) and N(mu, 1), at every epsilon with its exact delta."""
    best = 100 * norm.cdf(mu / 2)
    for epsilon in (0.01, 0.1, 0.5, 1.0, 3.0, 6.0):
        delta = norm.cdf(mu / 2 - epsilon / mu) - float.__mul__(
            2.718281828459045**epsilon, float(norm.cdf(-mu / 2 - epsilon / mu))
        )
        assert odds(epsilon, max(delta, 0.0)) >= best


def test_the_odds_are_50_for_nothing_and_100_for_everything() -> None:
    assert odds(0.0, 0.0) == 50
    assert odds(1000.0, 0.0) == 100
    assert odds(0.0, 1.0) == 100
    line = odds_line(0.08, 1e-6, 4, "replace")
    assert "guesses right which of two documents the index holds at most 52 times of 100" in line
    assert "whether the index holds a document" in odds_line(0.08, 1e-6, 4, "add-remove")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_verdict_begins_with_five_lines(outcome: str) -> None:
    checks = (Check("runs", "fail", "it was changed", "runs.forked"),) * (outcome == "fail")
    why = "consistent in itself, but the seal is hidden"
    verdict = BundleVerdict(outcome, why, checks)  # type: ignore[arg-type]
    lines = first_lines(verdict, "audit", "3 of 9 in", system="lab:1", signer="whoever holds k")
    assert len(lines) == 5
    assert ("runs.forked" in lines[0]) is (outcome == "fail")
    assert ("the seal is hidden" in lines[0]) is (outcome == "inconclusive")
    assert "lab:1" in lines[1]
    assert "whoever holds k" in lines[1]
    assert ("3 of 9 in" in lines[2]) is (outcome == "pass")
