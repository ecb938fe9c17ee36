"""The HTML report: escaping, self-containment, structure, and its numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import AuditResult
from ragwitness.report.html import write_html
from tests.support.markup import check
from tests.support.reports import page_of as render_html
from tests.unit.report.fake_results import fake_result

EVIL = (
    "<script>alert(1)</script>\"'&\u202e\u2066\x07\x00\ud800<img src=x onerror=alert(1)>"
    "<a href='javascript:alert(1)'>javascript:alert(1)</a></style>{{ 7 * 7 }}"
)


def with_verdicts(*verdicts: Verdict) -> AuditResult:
    return replace(fake_result(0), verdicts=verdicts, evaluation=None)


def test_every_untrusted_text_is_escaped_and_made_visible() -> None:
    word = Evidence(EVIL, EVIL, Interval(0.0, 0.3), 0.01)
    result = replace(
        with_verdicts(
            Verdict(EVIL, Decision.IN, 0.01, 2.0, 3, evidence=(word,)),
            Verdict("b", Decision.INCONCLUSIVE, None, None, 0, reason=EVIL),
        ),
        target=EVIL,
        method=EVIL,
        started=EVIL,
        ragwitness=EVIL,
        warnings=(EVIL,),
        settings={EVIL: EVIL, "Correction " + EVIL: EVIL},
        calibration=replace(fake_result(0).calibration, source=EVIL, note=EVIL),
    )
    html = render_html(result)
    page = check(html)
    assert not {"script", "img", "a"} & page.seen
    assert not any("javascript:" in value for _, name, value in page.attributes if name == "href")
    assert html.count("alert(1)") >= 2 * 10
    assert "{{ 7 * 7 }}" in html
    for raw in ("\u202e", "\u2066", "\x07", "\x00", "\ud800"):
        assert raw not in html
    assert "⟨U+202E⟩" in html
    html.encode()


@pytest.mark.parametrize("n", [0, 1, 24, 200])
@pytest.mark.parametrize("known", [True, False])
def test_structure_is_balanced_accessible_and_self_contained(n: int, known: bool) -> None:
    html = render_html(fake_result(n, known=known))
    page = check(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object", "form"} & page.seen
    for _, name, _value in page.attributes:
        assert name not in {"src", "href", "style", "xlink:href", "srcset"}
        assert not name.startswith("on")
    assert "http:" not in html
    assert "https:" not in html
    assert "url(" not in html
    assert "@import" not in html
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids))
    tables = html.split("<table")[1:]
    assert all("<caption>" in table and 'scope="col"' in table for table in tables)
    for svg in re.findall(r"<svg[^>]*>", html):
        assert 'role="img"' in svg or "aria-hidden" in svg
    assert "nan" not in " ".join(page.text).lower().split()


def test_policy_allows_only_the_style_sheet_of_the_page() -> None:
    import base64
    import hashlib

    html = render_html(fake_result(3))
    css = re.search("<style>(.*?)</style>", html, re.DOTALL)
    assert css
    digest = base64.b64encode(hashlib.sha256(css[1].encode()).digest()).decode()
    policy = re.search('Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert f"sha256-{digest}" in policy[1].replace("&#43;", "+").replace("&#39;", "'")
    assert "default-src" in policy[1]
    for rule in ("prefers-color-scheme: dark", "@media print", "size: A4", "max-width: 46rem"):
        assert rule in css[1]


def test_paper_is_white_shows_every_document_and_repeats_the_head_of_a_table() -> None:
    css = re.search("<style>(.*?)</style>", render_html(fake_result(3)), re.DOTALL)
    assert css
    paper = css[1].partition("@media print")[2]
    assert "background: #fff" in paper
    assert "color-scheme: light" in paper
    assert "details::details-content { content-visibility: visible" in paper  # folded ones too
    assert "thead { display: table-header-group" in paper
    assert re.search(r"tr, figure[^{]*\{ break-inside: avoid", paper)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_colours_have_contrast_aa() -> None:
    html = render_html(fake_result(3))
    themes = re.findall(r":root \{(.*?)\}", html, re.DOTALL)
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", theme))
        colours = {
            k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in colours.items()
        }
        pairs = [
            (text, paper)
            for text in ("ink", "soft", "in", "out", "inconclusive")
            for paper in ("paper", "panel")
        ] + [("warn", "warn-paper"), ("ink", "warn-paper")]
        for text, paper in pairs:
            a, b = sorted((luminance(colours[text]), luminance(colours[paper])))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (text, paper)


def test_numbers_are_those_of_the_result() -> None:
    result = fake_result(200)
    text = " ".join(" ".join(check(render_html(result)).text).split())
    assert f"{result.count(Decision.IN)} of 200 documents: in the database" in text
    assert f"{result.count(Decision.OUT)} show no sign" in text
    assert f"{result.unscorable} could not be scored" in text
    assert result.evaluation
    for rate in (result.evaluation.auc, result.evaluation.f1, result.evaluation.false_positives):
        assert f"{rate.value:.3f} {rate.low:.3f} to {rate.high:.3f} {rate.n}" in text
    assert "5,412 queries" in text
    for verdict in result.verdicts:
        assert verdict.document in text
        for word in verdict.evidence[:5]:
            assert word.before in text
    censored = next(w for v in result.verdicts for w in v.evidence[:5] if w.probability.low == 0)
    assert f"≤ {censored.probability.high:.2f}"[:5] in text


@pytest.mark.slow
def test_two_thousand_documents_stay_workable() -> None:
    result = fake_result(2000)
    html = render_html(result)
    assert len(html) < 4_000_000
    assert '<details class="group in">' in html
    assert check(html).seen


def test_nothing_but_unscorable_documents_and_undefined_numbers() -> None:
    verdicts = [
        Verdict(f"d{i}", Decision.INCONCLUSIVE, None, None, 0, reason="too short") for i in range(3)
    ]
    html = render_html(
        replace(
            with_verdicts(*verdicts),
            calibration=replace(fake_result(0).calibration, n=0, scores=()),
        )
    )
    assert "0 of 3 documents: in the database" in html
    assert html.count("too short") == 3
    known = fake_result(24)
    assert known.evaluation
    undefined = replace(known.evaluation.auc, value=math.nan, low=math.nan, high=math.nan)
    odd = replace(
        known,
        seconds=math.inf,
        evaluation=replace(known.evaluation, auc=undefined, false_positives=undefined),
    )
    text = " ".join(check(render_html(odd)).text).lower()
    assert not re.search(r"\b(nan|inf)\b", text)
    assert len(set(fake_result(24).verdicts)) == 24


def test_equal_and_infinite_scores_draw() -> None:
    verdicts = [Verdict(f"d{i}", Decision.OUT, 1.0, s, 1) for i, s in enumerate((1.0, 1.0))]
    infinite = Verdict("e", Decision.IN, 0.001, math.inf, 1)
    result = with_verdicts(*verdicts, infinite)
    one = replace(result, calibration=replace(result.calibration, scores=(1.0,), n=1))
    page = check(render_html(one))
    assert not any("nan" in v or "inf" in v for _, name, v in page.attributes if name == "d")


def test_very_long_texts_are_cut() -> None:
    html = render_html(with_verdicts(Verdict("x" * 100_000, Decision.OUT, 0.5, 0.1, 1)))
    assert "(99,600 more characters)" in html
    assert len(html) < 40_000


def test_write_names_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    write_html(fake_result(2), tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")
    with pytest.raises(InputError, match="Cannot write"):
        write_html(fake_result(2), tmp_path / "r.html" / "r.html")
