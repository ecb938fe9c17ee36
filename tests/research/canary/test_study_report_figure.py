"""The canaries' study as a figure: every policy is drawn, and n and intervals are said."""

import re
from xml.etree import ElementTree

import pytest

from ragwitness.canary.draw import Design
from research.canary.report import roc_svg, study_svg
from research.canary.study import StudyCase, StudyTable, WorldSpec
from research.canary.trial import Outcome, TrialConfig


def _outcome(seed, violating, value, collapsed="", measured=True):
    behaviour = {"rouge_l": 0.2 + value / 100, "token_f1": 0.3} if measured else {}
    return Outcome(
        seed=seed, violating=violating, p_own=0.01 if violating else 0.5, p_gained=1.0,
        p_named=1.0, amplification=value, base_amplification=0.0, kept=value, base_kept=0.0,
        gained=value, reward_bias=0.0, said={}, behaviour=behaviour, before=behaviour,
        rewards=(0.0, 0.0), kl=0.0, collapsed=collapsed, dropped={}, traces=(1, 2), seconds={},
    )  # fmt: skip


@pytest.fixture
def outcomes():
    return [
        _outcome(1, True, 4.0),
        _outcome(2, True, 6.0, "half of its answers are empty"),
        _outcome(3, True, 0.0, "diverged: no numbers", measured=False),
        _outcome(1, False, 0.5),
        _outcome(2, False, -0.5),
    ]


def _drawn(show, outcomes):
    case = StudyCase("a <case>", WorldSpec(), TrialConfig(Design()), (range(1), range(1)),
                     "p_own", {})  # fmt: skip
    figure = study_svg(StudyTable("paper/t", "A & B", show, (case,)), [(case, outcomes)])
    ElementTree.fromstring(figure)  # noqa: S314  # our own; well-formed or an error
    return figure


def test_marks_shares_and_intervals_of_both_arms(outcomes):
    figure = _drawn("detection", outcomes)
    assert figure.count("<circle") == 3
    assert figure.count("l6 6m0 -6l-6 6") == 1  # the collapsed one
    assert "p ≤ .05: 3 of 3 (1 diverged)" in figure
    assert "p ≤ .05: 0 of 2" in figure
    assert figure.count('stroke-width="5"') == 2
    assert "a &lt;case&gt;" in figure
    assert "A &amp; B" in figure


def test_marks_stand_where_their_values_are(outcomes):
    figure = _drawn("amplification", [one for one in outcomes if one.violating])
    ticks = {
        float(value): float(x)
        for x, value in re.findall(r'<text class="m" x="([\d.]+)"[^>]*>(-?[\d.]+)</text>', figure)
    }
    scale = (ticks[6] - ticks[0]) / 6
    at = float(re.search(r'<circle cx="([\d.]+)"', figure)[1])
    assert at == pytest.approx(ticks[0] + 4.0 * scale, abs=0.2)


def test_utility_shows_answers_before_and_after(outcomes):
    figure = _drawn("utility", outcomes)
    for told in ("base, n = 2", "without documents, n = 2", "with documents, n = 2"):
        assert told in figure
    assert "ROUGE-L" in figure


def test_a_condition_without_any_policy_has_a_row_all_the_same():
    assert "a &lt;case&gt;" in _drawn("detection", [])


def test_roc_curves_stand_beside_what_was_published(outcomes):
    case = StudyCase("a <case>", WorldSpec(), TrialConfig(Design()), (range(1), range(1)),
                     "p_own", {"tpr": 0.67})  # fmt: skip
    table = StudyTable("paper/t", "A & B", "detection", (case,))
    figure = roc_svg(table, [(case, outcomes)])
    ElementTree.fromstring(figure)  # noqa: S314  # our own; well-formed or an error
    for told in ("Eq. 1 less the base", "instruction in both views", "published at 10 %", "chance"):
        assert told in figure
    assert roc_svg(table, [(case, [one for one in outcomes if one.violating])]) is None
