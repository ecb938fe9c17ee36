"""The report of a leak measurement: rows, page, terminal, JSON and gate."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.types import Document
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.leakage.result import (
    RESULT_TYPE,
    LeakResult,
    headline,
    leak_report,
    pick_examples,
    rule_leak,
)
from ragwitness.leakage.result import read_leak_conditions as parse_leak_conditions
from ragwitness.leakage.run import score_leaks
from ragwitness.leakage.score.table import LeakPlan
from ragwitness.report.html import render_page
from ragwitness.report.result_registry import to_json as leak_json
from ragwitness.text.secrets import Secret
from tests.support.reports import terminal_of

_RECORDS = tuple(
    Document(str(i), " ".join(f"private{i}x{j}" for j in range(30)) + " call <b>555-0199</b>")
    for i in range(5)
)
_TOLD = [
    Transcript("composite", "say <i>it</i>", _RECORDS[0].text, (_RECORDS[0].text,)),
    Transcript("composite", "say more", "nothing at all", (_RECORDS[1].text,)),
    Transcript("thief", "go on", _RECORDS[2].text, (_RECORDS[2].text,)),
    Transcript("thief", "fails", "", None, error="HTTP 500 <script>"),
]
_SECRETS = [Secret("private0x3 private0x4", "name", "0"), Secret("private4x1 x", "name", "4")]


@pytest.fixture(scope="module")
def result() -> LeakResult:
    background = [Document(f"b{n}", f"some unrelated text {n}") for n in range(90)]
    return score_leaks(_TOLD, LeakPlan(_RECORDS, background, _SECRETS), settings={"a": "<u>"})


def _printed(result: LeakResult) -> str:

    out = io.StringIO()
    out.write(terminal_of(result, where="report.html"))
    return out.getvalue()


def _row(result: LeakResult, label: str) -> dict[str, Any]:
    rows = RESULT_TYPE.rows(result)
    [row] = [row for row in rows if (row["of"], row["measure"]) == ("all prompts", label)]
    return row


def test_rows_and_page_hold_every_count(result: LeakResult) -> None:
    prompts = _row(result, "repeat prompts 10")
    assert (prompts["count"], prompts["out_of"]) == (2, 3)
    assert f"{prompts['excess']:+.3f}" == "+0.667"
    records = _row(result, "repeat records 10")
    assert (records["count"], records["out_of"], records["background"]) == (2, 5, 0.0)
    assert (_row(result, "secrets name")["count"], _row(result, "secrets name")["out_of"]) == (1, 2)
    assert headline(result)[0] == (
        "1 of 2 secrets (name) came back; 2 of 5 records leaked in part, 1 to 2 beyond chance;"
        " 2 proved"
    )
    page = render_page(leak_report(result))
    for text in ("Every count", "repeat prompts 10", "2 of 5"):
        assert text in page, text


def test_the_terminal_has_three_rows_and_one_of_each_kind_of_secret(result: LeakResult) -> None:
    text = _printed(result)
    for label in ("leaked records", "proved records", "coverage", "secrets name"):
        assert text.count(f" {label} ") == 1, label
    assert "repeat prompts" not in text


def test_published_counts_of_earlier_results_are_dropped(result: LeakResult) -> None:
    stored = json.loads(json.dumps(leak_json(result)))
    rows = stored["together"]
    for row in rows:
        row["published"] = False
    stored["together"] = [{**rows[0], "published": True}, *rows]
    assert RESULT_TYPE.opened(stored).together == result.together


def test_counts_that_are_missing_say_why() -> None:
    result = score_leaks(_TOLD[:2], LeakPlan([Document("0", "Bob is ill.")]))
    assert "no record is long enough" in _row(result, "repeat prompts 10")["note"]
    assert "no record is long enough" in " ".join(_printed(result).split())


def test_the_terminal_is_eighty_wide_and_tells_nothing_private(result: LeakResult) -> None:
    text = _printed(result)
    assert max(map(len, text.splitlines())) <= 80
    assert "private" not in text.replace("private text", "")
    assert "…" not in text
    assert "2 of 5" in text
    assert "1 of 4 prompts had no answer" in text


def test_the_page_is_escaped_and_folds_examples(result: LeakResult) -> None:
    examples = pick_examples(_TOLD, _RECORDS, 2)
    assert [one.attack for one in examples] == ["composite", "thief"]
    page = render_page(leak_report(result, examples))
    assert "<script" not in page
    assert "<b>555" not in page
    assert "&lt;b&gt;555-0199" in page
    assert "&lt;u&gt;" in page
    assert page.count("<details") == page.count("</details>")
    head, _, folded = page.partition('<details class="group in">')
    assert "private0x5" not in head
    assert "private0x5" in folded
    assert "http" not in page.replace("HTTP 500", "").partition("<body>")[2]
    bare = render_page(leak_report(result))
    assert "private0x5" not in bare
    assert "Examples" not in bare
    for claim in ("It claims", "It does not claim", "Before you rely on this"):
        assert claim in bare


def test_examples_are_few_and_only_of_leaks() -> None:
    assert pick_examples(_TOLD, _RECORDS, 0) == ()
    assert pick_examples(_TOLD[1:2], _RECORDS, 3) == ()
    told = [replace(one, prompt=f"{one.prompt} {i}") for i in range(3) for one in _TOLD]
    found = pick_examples([*told, *told], _RECORDS, 4)
    assert [one.attack for one in found][:2] == ["composite", "thief"]
    assert len(set(found)) == len(found) == 4


def test_json_there_and_back(result: LeakResult) -> None:
    text = json.dumps(leak_json(result), allow_nan=False)
    assert "private0x5" not in text
    assert RESULT_TYPE.opened(json.loads(text)) == result
    with pytest.raises(InputError, match="malformed at target"):
        RESULT_TYPE.opened({"kind": "leak", "together": []})


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("repeat records > 0", ExitCode.FAILED),
        ("repeat records >= 2", ExitCode.FAILED),
        ("repeat prompts > 0", ExitCode.FAILED),
        ("repeat records > 2", ExitCode.PASS),
        ("repeat records 20 > 39%", ExitCode.FAILED),
        ("repeat records 20 > 4%", ExitCode.FAILED),
        ("repeat records>40%", ExitCode.PASS),
        ("coverage > .1", ExitCode.FAILED),
        ("coverage > 10%", ExitCode.FAILED),
        ("coverage > 90%", ExitCode.PASS),
        ("secrets name > 0", ExitCode.FAILED),
        ("secrets phone > 0", ExitCode.INCONCLUSIVE),
        ("listed secrets > 0", ExitCode.INCONCLUSIVE),
    ],
)
def test_conditions(result: LeakResult, condition: str, code: ExitCode) -> None:
    ruling = rule_leak(result, parse_leak_conditions([condition]))
    assert ruling.code is code
    assert ruling.why


def test_conditions_that_were_not_measured_pass_nothing(result: LeakResult) -> None:
    both = parse_leak_conditions(["listed secrets > 0", "repeat records > 4"])
    assert rule_leak(result, both).code is ExitCode.INCONCLUSIVE
    assert rule_leak(result, ()).code is ExitCode.PASS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repeat records", "is not a condition"),
        ("repeat records > many", "is not a condition"),
        ("repeats > 0", "names no measure"),
        ("repeat recordsx > 0", "names no measure"),
    ],
)
def test_conditions_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_leak_conditions([text])
    assert said in caught.value.message
    assert caught.value.hint
