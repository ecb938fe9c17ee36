"""Results in a notebook: every kind shows itself, and no text of a target becomes part of it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

import ragwitness as rw
from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import AuditResult
from ragwitness.report.result_registry import RESULT_TYPES, open_result
from tests.golden.tasks import STORED
from tests.support.markup import check
from tests.unit.report.fake_results import fake_result
from tests.unit.report.test_result_registry import EXAMPLES

rw.AuditResult  # noqa: B018  # whoever has a result has used a public name, which brings the pages

EVIL = '</style></div><script>alert(1)</script><img src=x onerror="alert(1)">" id="x'


def html_of(value: object) -> str:
    """What a notebook asks a value for."""
    return str(value._repr_html_())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", RESULT_TYPES)
def test_every_kind_shows_itself(name: str) -> None:
    kind, result = open_result(EXAMPLES[name])
    html = html_of(result)
    seen = check(html)
    assert kind.report(result).title.split()[0] in "".join(seen.text)
    assert not {"script", "iframe", "link", "img", "html", "body"} & seen.seen
    assert not [one for one in seen.attributes if one[1].startswith("on") or one[1] == "src"]
    links = [value for _, attribute, value in seen.attributes if attribute == "href"]
    assert not [one for one in links if not one.startswith("#")]
    assert "url(" not in html
    assert "@import" not in html


@pytest.mark.slow
def test_an_audit_shows_its_verdicts_and_its_figures_as_svg() -> None:
    seen = check(html_of(fake_result(60)))
    assert {"svg", "details", "table", "figure"} <= seen.seen
    said = "".join(seen.text)
    assert "in the database" in said
    assert "What this claims" in said
    # Long lists are cut: a notebook holds them all otherwise.
    assert "The first 10 of" in said
    assert len(html_of(fake_result(5000))) < 120_000


def test_two_results_in_one_notebook_have_no_name_in_common() -> None:
    first, second = (check(html_of(fake_result(n))) for n in (40, 41))
    assert first.ids
    assert not set(first.ids) & set(second.ids)
    named = {
        v for _, name, value in first.attributes if name == "aria-labelledby" for v in value.split()
    }
    assert named <= set(first.ids)


def test_the_style_is_the_fragments_own() -> None:
    css = html_of(fake_result(4)).partition("<style>")[2].partition("</style>")[0]
    assert css.startswith(".ragwitness {")
    assert css.count("{") == css.count("}")
    assert not re.search(r"(?m)^\s*(body|html|:root|@page)\b", css)


def hostile(text: str) -> AuditResult:
    word = Evidence(text, text, Interval(0.0, 0.3), 0.01)
    return replace(
        fake_result(0),
        verdicts=(
            Verdict(text, Decision.IN, 0.01, 2.0, 3, evidence=(word,)),
            Verdict("c", Decision.INCONCLUSIVE, None, None, 0, reason=text),
        ),
        target=text,
        method=text,
        warnings=(text,),
        settings={text: text},
        calibration=replace(fake_result(0).calibration, note=text),
    )


def test_text_of_a_target_stays_text() -> None:
    html = html_of(hostile(EVIL))
    seen = check(html)
    assert "script" not in seen.seen
    assert "img" not in seen.seen
    assert not [one for one in seen.attributes if one[1].startswith("on")]
    assert html.count("</style>") == 1
    assert "<script>alert(1)</script>" in "".join(seen.text)
    turned = html_of(hostile("\u202egnp.exe\x07"))
    assert "\u202e" not in turned
    assert "⟨U+202E⟩" in turned


def test_bounds_and_verdicts_show_themselves() -> None:
    html = html_of(rw.bounds(epsilon=1, delta=1e-6, queries=1000, accounts=16))
    assert "5.16" in html
    pytest.importorskip("py_arkworks_bls12381")
    golden = STORED.parent / "attest"
    told = html_of(rw.verify(golden / "window-v3.zip", golden / "trust-v3.json"))
    assert "PASS" in told
    check(told)


def test_a_program_without_a_notebook_loads_no_renderer() -> None:
    code = (
        "import sys, ragwitness.membership.results.audit\n"
        "unwanted = {'jinja2', 'rich', 'ragwitness.report.html', 'ragwitness.report.terminal'}\n"
        "print(unwanted & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
