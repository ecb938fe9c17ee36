"""The terminal report: 80 columns, no colour needed, untrusted text harmless."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from ragwitness.core.types import Decision, Evidence, Interval, LeftOut, Verdict
from ragwitness.membership.results.audit import AuditResult
from ragwitness.report.formatting import short, short_interval
from ragwitness.report.result_registry import result_type_for
from ragwitness.report.terminal import terminal
from tests.support.reports import terminal_of
from tests.unit.report.fake_results import fake_result


def printed(result: AuditResult, **options: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80, **options).print(
        terminal(result_type_for(result).report(result))
    )  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize("n", [0, 1, 40, 41, 2000])
@pytest.mark.parametrize("known", [True, False])
def test_80_columns(n: int, known: bool) -> None:
    text = printed(fake_result(n, known=known))
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text
    assert "nan" not in text.split()


def test_80_columns_with_long_and_wide_text() -> None:
    word = Evidence("病院" * 60, "", Interval(0.0, 0.5), 0.1)
    verdict = Verdict("ж" * 300, Decision.IN, 0.01, 1.0, 9, evidence=(word,))
    result = replace(fake_result(0), verdicts=(verdict,), target="y" * 300, warnings=("z" * 300,))
    assert max(cell_len(line) for line in printed(result).splitlines()) <= 80


def test_the_verdict_comes_first_then_the_table_then_what_limits_it() -> None:
    result = replace(fake_result(5), warnings=("beware",))
    text = " ".join(printed(result).split())
    order = [
        "in the database",
        "record-0000",
        "evidence: ",
        "cost: ",
        "beware",
        "How often",
    ]
    assert sorted(order, key=text.index) == order


def test_ten_lines_follow_the_table_where_a_page_has_the_rest() -> None:
    warnings = tuple(f"Beware of {n}. " + "It may be wrong in many ways. " * 3 for n in range(5))
    left_out = tuple(LeftOut(f"{n}.bin", "not a text") for n in range(9))
    result = replace(fake_result(30, known=False), warnings=warnings, left_out=left_out)
    report = result_type_for(result).report(result)

    def behind(**options: object) -> list[str]:
        stream = io.StringIO()
        Console(file=stream, width=80).print(terminal(report, where="report.html", **options))  # type: ignore[arg-type]
        return stream.getvalue().partition("record-0029")[2].splitlines()[1:]

    short = behind()
    assert len([line for line in short if line.strip()]) <= 15
    assert any("4 more warnings in report.html" in line for line in short)
    whole = " ".join(behind(verbose=True))
    assert all(f"Beware of {n}" in whole for n in range(5))
    assert "Not claimed" in whole


def test_names_stand_whole_or_lose_their_middle_and_no_column_is_empty() -> None:
    names = ["Drafts/2019/the-complete-draft.txt", "x" * 30 + "middle" + "y" * 60]
    verdicts = tuple(Verdict(name, Decision.IN, 0.01, 1.0, 9) for name in names)
    text = printed(replace(fake_result(0), verdicts=verdicts))
    assert names[0] in text
    assert "middle" not in text
    assert "x…y" in text
    assert "without the database" not in text
    assert max(cell_len(line) for line in text.splitlines()) <= 80


def test_each_reason_stands_once() -> None:
    verdicts = tuple(
        Verdict(name, Decision.INCONCLUSIVE, None, None, 0, reason=reason)
        for name, reason in (("a", "too short"), ("b", "too short"), ("c", "no answer"))
    )
    text = printed(replace(fake_result(0), verdicts=verdicts))
    assert text.count("too short") == 1
    assert "2 documents: too short. Other reasons (1) are in" in text


def test_markup_and_control_characters_do_nothing() -> None:
    evil = "[red]x[/red][/]\x1b[31m\x07\u202e"
    word = Evidence(evil, evil, Interval(0.9, 0.9), 0.1)
    verdicts = (
        Verdict(evil, Decision.IN, 0.01, 1.0, 9, evidence=(word,)),
        Verdict("b", Decision.INCONCLUSIVE, None, None, 0, reason=evil),
    )
    result = replace(fake_result(0), verdicts=verdicts, target=evil, warnings=(evil,))
    text = printed(result)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[red]" in text
    assert "⟨U+001B⟩" in text


def test_long_lists_show_the_most_telling_and_say_so() -> None:
    result = fake_result(200)
    text = terminal_of(result, where="run/report.html")
    assert text.count("record-") == 20
    assert "180 more in run/report.html" in text
    best = min(
        (v for v in result.verdicts if v.decision is Decision.IN), key=lambda v: v.p_value or 0.0
    )
    assert best.document in text
    assert printed(fake_result(40)).count("record-") == 40


def test_evaluation_lines_carry_interval_and_n() -> None:
    result = fake_result(60)
    assert result.evaluation
    area = result.evaluation.auc
    line = next(line for line in printed(result).splitlines() if line.strip().startswith("AUC"))
    assert short(area.value) in line
    assert short_interval(area) in line
    assert str(area.n) in line
