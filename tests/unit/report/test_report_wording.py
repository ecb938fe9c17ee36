"""How numbers are written."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Interval
from ragwitness.report import formatting as wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0004, "< 0.001"),
        (0.004, "0.004"),
        (0.0496, "0.050"),
        (0.34, "0.34"),
        (1.0, "1.00"),
        (None, wording.MISSING),
        (float("nan"), wording.MISSING),
    ],
)
def test_p_values(value: float | None, text: str) -> None:
    assert wording.p_text(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.5, 0.5, "0.50"),
        (0.0, 0.03, "≤ 0.030"),
        (0.0, 0.0001, "≤ 0.001"),
        (0.1, 0.2, "0.10 to 0.20"),
        (0.999, 0.999, "> 0.99"),
        (0.0, 0.0, "0"),
        (1.0, 1.0, "1.00"),
    ],
)
def test_probabilities(low: float, high: float, text: str) -> None:
    assert wording.probability(Interval(low, high)) == text


def test_rates_scores_and_time() -> None:
    assert [wording.rate_text(x) for x in (1.0, 0.99996, 0.5)] == ["1.000", "> 0.999", "0.500"]
    assert wording.score_text(-1.5) == "\N{MINUS SIGN}1.50"
    assert [wording.score_text(x) for x in (0.0, 123.4, 12345.6)] == ["0.00", "123", "12,346"]
    assert wording.score_text(float("inf")) == wording.MISSING
    assert [wording.duration(x) for x in (4.23, 102.3, 7260)] == [
        "4.2 s",
        "1 min 42 s",
        "2 h 1 min",
    ]
    assert [wording.percent(x) for x in (0.05, 0.125, 0.99999, 0.0001, 1)] == [
        "5 %",
        "12.5 %",
        "> 99.9 %",
        "< 0.1 %",
        "100 %",
    ]


def test_visible() -> None:
    assert wording.visible("a\u202eb\n\x00\ufeff") == "a⟨U+202E⟩b↵⟨U+0000⟩⟨U+FEFF⟩"
    assert wording.visible("ab\u200ccd") == "ab\u200ccd"
    assert wording.visible("x" * 10, 4) == "xxxx… (6 more characters)"
