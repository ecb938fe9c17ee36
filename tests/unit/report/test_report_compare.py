"""Reports of a comparison: the same figures everywhere, every text escaped, names apart."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from ragwitness.comparison.result import (
    CORRECTNESS,
    RESULT_TYPE,
    Compared,
    Comparison,
    Usefulness,
    WorstCase,
    headline,
)
from ragwitness.comparison.result import drawn as plane
from ragwitness.core.errors import InputError
from ragwitness.leakage.result import AttackLeaks
from ragwitness.leakage.score.table import LeakMeasure
from ragwitness.report.spending import Spending
from ragwitness.stats.rates import Rate, proportion_interval
from tests.support.reports import page_of as render_comparison
from tests.support.reports import terminal_of


def _variant(name: str, hits: int, useful: float) -> Compared:
    rate = Rate(hits / 20, *proportion_interval(hits, 20), 20)
    told = "run of 10 or more tokens, every record"
    measures = (
        LeakMeasure("repeat prompts", told, hits, 20, rate, 0.05, rate, key="10"),
        LeakMeasure("repeat records", told, hits, 90, key="10"),
        LeakMeasure("coverage", "tokens", hits / 90, 0, rate),
        LeakMeasure("secrets", "email", min(hits, 7), 7, key="email"),
        LeakMeasure("secrets", "phone", 1, 3, key="phone"),
    )
    mean = Rate(useful, useful - 0.02, useful + 0.03, 30)
    gain = None if name == "origin" else Rate(useful - 0.1, -0.05, 0.06, 30)
    return Compared(
        name=name,
        target="lab:x",
        indexed=90,
        words=81.6,
        attacks=(AttackLeaks("composite", 20, 0, measures),),
        together=measures,
        worst=WorstCase(90, 40 + hits, 0.75, measures),
        usefulness={"ROUGE-L": Usefulness(mean, gain, gain, 12)},
        answer_words=14.0,
        unanswered=1,
        unjudged={"the judge <said> nothing": 2},
        settings={"texts": "<b>safe</b>.jsonl"},
    )


def a_comparison() -> Comparison:
    """Return three variants, with text that must be escaped."""
    return Comparison(
        started="2026-11-23T00:00:00+00:00",
        seconds=61.0,
        records=90,
        background=10,
        questions=30,
        variants=(
            _variant("origin", 12, 0.1),
            _variant("redact", 11, 0.1),
            _variant("sage", 0, 0.09),
        ),
        settings={"generator": "<script>"},
        warnings=("a <warning>",),
        spent=Spending(4, 5, 6),
    )


@pytest.fixture
def result() -> Comparison:
    return a_comparison()


def test_json_is_read_back_as_it_was(result: Comparison) -> None:
    text = json.dumps(RESULT_TYPE.stored(result), allow_nan=False)
    assert RESULT_TYPE.opened(json.loads(text)) == result
    data = json.loads(text)
    del data["variants"][0]["indexed"]
    with pytest.raises(InputError, match=r"malformed at variants\.0\.indexed"):
        RESULT_TYPE.opened(data)


def test_the_page_says_everything_and_escapes_it(result: Comparison) -> None:
    page = render_comparison(result)
    parts = ("12 of 20", "8 of 10", "1 of 10", "0.090", "\N{MINUS SIGN}0.050", "a &lt;warning&gt;")
    escaped = ("&lt;script&gt;", "&lt;b&gt;safe", "2 answers not judged", "1 questions failed")
    for told in (*parts, *escaped):
        assert told in page, told
    assert "<script>" not in page
    assert "none did with sage" in page
    assert not re.search(r'(?:src|href)="', page)
    assert len(re.findall("<circle", page)) == 6  # and as many in the legend
    bare = [replace(one, usefulness={}) for one in result.variants]
    assert "<circle" not in render_comparison(replace(result, variants=tuple(bare)))


def test_titles_count_what_was_repeated(result: Comparison) -> None:
    title, sentence = headline(result)
    assert title == "sage ends the leak; 30 questions show no loss of usefulness"
    assert sentence.startswith("12 of 20 prompts (0.361 to 0.809) leaked with the records; none ")
    alone = replace(result, variants=(_variant("origin", 0, 0.1), _variant("x", 0, 0.1)))
    assert headline(alone)[0] == "Nothing leaked beyond chance even of the records themselves"
    assert headline(alone)[1].startswith("0 of 20 prompts (0.000 to 0.168) leaked with the records")
    assert [str(one.worst.longest) for one in result.variants if one.worst] == ["52", "51", "40"]


def test_the_figure_has_a_point_with_whiskers_for_each_variant(result: Comparison) -> None:
    found = plane(result)
    assert found is not None
    [panel] = found.make()
    points = {line.name: line.points[0] for line in panel.lines}
    for x, y, low, high, left, right in points.values():
        assert left <= x <= right
        assert low <= y <= high
    assert points["sage"][1] < points["redact"][1] < points["origin"][1]  # lower is less
    assert points["sage"][0] < points["origin"][0]
    assert [line.name for line in panel.lines if line.colour == 1] == ["origin"]
    judged = [
        replace(one, usefulness={**one.usefulness, CORRECTNESS: one.usefulness["ROUGE-L"]})
        for one in result.variants
    ]
    shown = plane(replace(result, variants=tuple(judged)))
    assert shown is not None
    assert "judged" in shown.make()[0].x.label


def test_the_terminal_stays_within_80_columns(result: Comparison) -> None:
    long = replace(result.variants[1], name="a-very-long-name-of-a-variant-with-numbers")
    shown = replace(result, variants=(*result.variants, long))
    text = terminal_of(shown, where="report.html")
    assert max(map(len, text.splitlines())) <= 80
    for told in ("origin", "gain", "equal length", "a-very-long-name-o"):
        assert told in text, told
