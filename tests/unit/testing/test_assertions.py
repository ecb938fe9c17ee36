"""Assertions of a test suite: what passes, what fails, what is neither, and what is an error."""

from __future__ import annotations

import json
import unittest
import warnings
from pathlib import Path
from typing import Any

import pytest

import ragwitness as rw
from benchmarks.assertions import innocent_failures
from ragwitness.cli.main import run as command_line
from ragwitness.core.errors import ExitCode, InputError, TargetUnreachableError
from ragwitness.core.run_files import RESULT
from ragwitness.report.result_registry import open_result
from ragwitness.testing.assertions import AssertionOutcome, InconclusiveWarning
from tests.support.indexed import (
    INSIDE,
    MINE,
    OUTSIDE,
    Indexed,
    down,
    innocent,
    leaking,
    made_texts,
    silent,
)

pytestmark = pytest.mark.slow

GIVEN: dict[str, Any] = {"known_in": INSIDE, "method": "passages"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "my runs"


def test_a_system_that_holds_them_fails_and_says_what_leaked(runs: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        rw.assert_not_in(leaking(), MINE, OUTSIDE, runs=runs, **GIVEN)
    said = str(caught.value)
    assert said.startswith("20 of 20 documents: in the database. fails --fail-on in (20 of 20")
    assert "\n  1: in the database: p 0.016, q 0.016" in said
    assert "\n  and 10 more\n" in said
    assert "a system that holds none of these 20 documents fails this test with a prob" in said
    assert "at most 0.05" in said
    # The command that shows more is one that works, blanks in the path or not.
    (folder,) = (path.parent for path in runs.glob(f"*/{RESULT}"))
    assert f"ragwitness report '{folder}'" in said
    kind, result = open_result(folder)
    assert kind.rule(result, kind.conditions(["in"])).code is ExitCode.FAILED
    assert (folder / "report.html").exists()


def test_an_innocent_system_passes_and_its_audit_is_returned(runs: Path) -> None:
    system, findings = innocent(), list[AssertionOutcome]()
    found = rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, on_outcome=findings.append, **GIVEN)
    assert found is not None
    assert found.count(rw.Decision.OUT) == 20
    assert findings[0].ruling.code is ExitCode.PASS
    assert findings[0].folder is not None


def test_auto_chooses_as_the_verb_does(runs: Path) -> None:
    found = rw.assert_not_in(innocent(), MINE, OUTSIDE, known_in=INSIDE, runs=runs)
    assert found is not None
    assert found.settings["chosen"].startswith("auto chose passages")
    with pytest.raises(InputError, match="auto chooses"):
        rw.assert_not_in(innocent(), MINE, OUTSIDE, options={"x": 1}, runs=runs)


@pytest.mark.parametrize(
    "method",
    [
        "passages",
        "rag-mia",
        "s2mia",
        pytest.param("mba", marks=pytest.mark.long),
    ],
)
def test_a_system_that_answers_nothing_is_inconclusive(method: str, runs: Path) -> None:
    def ask() -> None:
        system = silent if method != "passages" else Indexed([""], lambda _: "")
        rw.assert_not_in(
            system, MINE, OUTSIDE, known_in=INSIDE, method=method, runs=runs, inconclusive="skip"
        )

    # Ten answers that cannot be read end the run; fewer documents than that are inconclusive.
    with pytest.raises(
        (unittest.SkipTest, rw.RagwitnessError), match=r"inconclusive|could be read"
    ):
        ask()


def test_a_system_that_is_down_is_an_error_and_no_finding(runs: Path) -> None:
    for inconclusive in ("fail", "warn", "skip"):
        with pytest.raises(TargetUnreachableError):
            rw.assert_not_in(down, MINE, OUTSIDE, runs=runs, inconclusive=inconclusive, **GIVEN)  # type: ignore[arg-type]
        with pytest.raises(rw.RagwitnessError, match="refused"):
            rw.assert_no_leak(down, MINE, runs=runs, prompts=3, inconclusive=inconclusive)  # type: ignore[arg-type]


def test_what_could_decide_nothing_is_not_asked(runs: Path) -> None:
    system = leaking()
    with pytest.raises(AssertionError, match=r"Nothing was sent.*at least 19 known-out documents"):
        rw.assert_not_in(system, MINE, OUTSIDE[:5], runs=runs, **GIVEN)
    # Known-out documents of another kind calibrate nothing.
    prose = [f"The {n}. Of May, in which we were told of {n * 7} things" for n in range(60)]
    with pytest.raises(AssertionError, match="Nothing was sent"):
        rw.assert_not_in(system, MINE, prose, runs=runs, **GIVEN)
    with pytest.warns(InconclusiveWarning, match="Nothing was sent"):
        assert (
            rw.assert_not_in(system, MINE, prose, runs=runs, inconclusive="warn", **GIVEN) is None
        )
    assert system.asked == 0


def test_inconclusive_is_a_choice(runs: Path) -> None:
    """Without documents known to be inside this method never says that one is not there."""
    given: dict[str, Any] = {"method": "passages", "runs": runs}
    with pytest.raises(AssertionError, match="inconclusive: nothing --fail-on asks for"):
        rw.assert_not_in(innocent(), MINE, OUTSIDE, **given)
    with pytest.raises(unittest.SkipTest, match="inconclusive"):
        rw.assert_not_in(innocent(), MINE, OUTSIDE, inconclusive="skip", **given)
    with pytest.warns(InconclusiveWarning, match=r"Give some \(--known-in\)"):
        found = rw.assert_not_in(innocent(), MINE, OUTSIDE, inconclusive="warn", **given)
    assert found is not None
    with pytest.raises(InputError, match="fail, warn or skip"):
        rw.assert_not_in(innocent(), MINE, OUTSIDE, inconclusive="ignore", **given)  # type: ignore[arg-type]
    # Stricter than the verb's default, in its own words.
    with pytest.raises(AssertionError, match="fails --fail-on inconclusive:10%"):
        rw.assert_not_in(innocent(), MINE, OUTSIDE, fail_on=["in", "inconclusive:10%"], **given)
    for wrong in (["im"], [], "in"):
        with pytest.raises(InputError):
            rw.assert_not_in(innocent(), MINE, OUTSIDE, fail_on=wrong, **given)


def test_a_named_release_is_asked_once_and_another_one_anew(runs: Path) -> None:
    system = innocent()
    first = rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, release="v1", **GIVEN)
    asked = system.asked
    assert asked
    again = rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, release="v1", **GIVEN)
    assert system.asked == asked  # nothing is paid for twice
    assert first is not None
    assert again is not None
    assert repr(again.verdicts) == repr(first.verdicts)  # NaN is not equal to itself
    rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, release="v2", **GIVEN)
    assert system.asked == 2 * asked
    # Nobody knows whether a system without a release still is what it was.
    for n in (3, 4):
        rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, **GIVEN)
        assert system.asked == n * asked


def test_a_leaking_system_is_not_given_the_answers_of_an_innocent_one(runs: Path) -> None:
    rw.assert_not_in(innocent(), MINE, OUTSIDE, runs=runs, release="v1", **GIVEN)
    with pytest.raises(InputError, match="own release"):
        rw.assert_not_in(leaking(), MINE, OUTSIDE, runs=runs, release="v1", **GIVEN)
    with pytest.raises(AssertionError, match="20 of 20"):
        rw.assert_not_in(
            rw.wrap(leaking(), name="the other"), MINE, OUTSIDE, runs=runs, release="v1", **GIVEN
        )
    rw.assert_not_in(innocent(), MINE, OUTSIDE, runs=runs, **GIVEN)
    with pytest.raises(AssertionError, match="20 of 20"):
        rw.assert_not_in(leaking(), MINE, OUTSIDE, runs=runs, **GIVEN)


def test_a_cap_holds_over_all_starts_of_a_release(runs: Path) -> None:
    system = innocent()
    # So few answers could call nobody in: no look at a part, and the whole level is left.
    for _ in range(2):
        with pytest.raises(AssertionError, match="query cap reached"):
            rw.assert_not_in(
                system, MINE, OUTSIDE, runs=runs, release="v1", max_queries=15, **GIVEN
            )
        assert system.asked <= 15
    rw.assert_not_in(system, MINE, OUTSIDE, runs=runs, release="v1", max_queries=500, **GIVEN)
    assert system.asked <= 15 + 110


def test_innocent_systems_fail_no_more_often_than_promised(runs: Path) -> None:
    """Forty systems that hold none of five documents: at most alpha of them fail.

    At alpha .2, so that failures come at all; more than 16 of 40 would have a chance of .1 %.
    ``benchmarks/testing/assertions.py`` counts 400 at the level of every day.
    """
    found = innocent_failures(40, 0.2, runs)
    assert 1 <= found <= 16


# Leaks.


def test_what_leaks_fails_with_its_count(runs: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        rw.assert_no_leak(leaking(), MINE, background=OUTSIDE, prompts=60, runs=runs)
    said = str(caught.value)
    assert said.startswith(
        "20 of 20 records leaked in part, 17 to 20 beyond chance; 20 proved. fails --fail-on l"
    )
    assert "some 2.5 % fail for each measure" in said
    assert "Show more: ragwitness report" in said
    # One that holds them and tells nothing of them passes, unless it shows them as its sources.
    quiet = Indexed([*MINE, *INSIDE])
    given = {"background": OUTSIDE, "runs": runs}
    assert rw.assert_no_leak(quiet, MINE, channels="text", **given).records == 20
    with pytest.raises(AssertionError, match=r"^20 of 20 records leaked"):
        rw.assert_no_leak(quiet, MINE, prompts=60, **given)
    assert quiet.asked > 200  # each record again and again, by other words each time
    # Records told whole are proved without a background as well.
    with pytest.raises(AssertionError, match=r"^20 of 20 records came back, proved one by one"):
        rw.assert_no_leak(leaking(), MINE, prompts=20, runs=runs)


def test_the_default_reaches_records_among_many_others(runs: Path) -> None:
    """Eight records among 174 other texts, and an application that recites any passage."""
    held = [*made_texts("other", 174), *MINE[:8]]
    reciting = Indexed(held, lambda text: text)
    given: dict[str, Any] = {"background": OUTSIDE, "runs": runs, "prompts": 20}
    with pytest.raises(
        AssertionError,
        match=r"^[78] of 8 records leaked in part, .* beyond chance; [78] proved\. fails",
    ):
        rw.assert_no_leak(reciting, MINE[:8], **given)
    # An attacker who aims at nothing does not reach them: that is no pass.
    with pytest.raises(AssertionError, match=r"inconclusive: the prompts reached at most \d of 8"):
        rw.assert_no_leak(reciting, MINE[:8], attacks="pide", **given)
    # A system that does not hold them was not reached either.
    with pytest.raises(AssertionError, match=r"inconclusive: the prompts reached at most 0 of 20"):
        rw.assert_no_leak(innocent(), MINE, background=OUTSIDE, prompts=20, runs=runs)


def test_a_count_is_held_against_texts_that_the_system_does_not_hold(runs: Path) -> None:
    many = made_texts("many", 500)
    one_of_them = Indexed([MINE[0]], lambda text: text)
    with pytest.raises(AssertionError, match=r"^1 of 20 records came back, proved one by one"):
        rw.assert_no_leak(one_of_them, MINE, prompts=5, background=many[:20], runs=runs)
    # A listed secret fails the test by default, and stands first.
    secrets = runs.parent / "secrets.jsonl"
    secrets.parent.mkdir(parents=True, exist_ok=True)
    word = max(MINE[1].split(), key=len).strip(".,")
    secrets.write_text(json.dumps({"text": word, "kind": "word", "record": "1"}) + "\n")
    telling = Indexed([f"It is {word}."], lambda text: text)
    with pytest.raises(AssertionError, match=r"^1 of 1 secrets \(word\) came back; No record"):
        rw.assert_no_leak(
            telling, MINE, prompts=20, background=many[:20], runs=runs, secrets=str(secrets)
        )
    # What stands in every text of this kind accuses nobody.
    common = " ".join(made_texts("phrase", 1)[0].split()[:14])
    alike = [f"{common} {text}" for text in MINE]
    with pytest.raises(AssertionError, match=r"^No record was repeated. inconclusive"):
        rw.assert_no_leak(
            Indexed([common], lambda text: text), alike, prompts=5,
            background=[f"{common} {text}" for text in many], runs=runs,
        )  # fmt: skip


def test_a_system_that_says_nothing_leaks_nothing_and_passes_nothing(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="no answer holds a letter or a digit"):
        rw.assert_no_leak(silent, MINE, prompts=5, runs=runs)
    # The verb ends the same way: one ruling for both.
    (folder,) = (path.parent for path in runs.glob(f"*/{RESULT}"))
    arguments = ["ragwitness", "report", str(folder), "--fail-on", "leaked records > 0"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as stop:
        command_line()
    assert stop.value.code == ExitCode.INCONCLUSIVE
    kind, result = open_result(folder)
    assert kind.stored(result)["silent"] is True


def test_nothing_to_ask_about_is_an_error(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no document"):
        rw.assert_not_in(innocent(), [], OUTSIDE, runs=runs)
    with pytest.raises(InputError, match="no corpus"):
        rw.assert_no_leak(innocent(), [], runs=runs)
    with pytest.raises(InputError, match="missing"):
        rw.assert_no_leak(innocent(), tmp_path / "missing.jsonl", runs=runs)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        rw.assert_no_leak(innocent(), MINE, runs=tmp_path / "file" / "runs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not list(runs.glob("*"))


def test_documents_that_were_left_out_let_no_test_pass(runs: Path, tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": one} for n, one in enumerate(MINE)]
    rows.append({"id": "lost", "text": "what nobody\0can read"})
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (
        pytest.warns(UserWarning, match="left out: mine.jsonl:21"),
        pytest.raises(AssertionError, match=r"inconclusive: nothing .* 1 row could not be read"),
    ):
        rw.assert_not_in(innocent(), mine, OUTSIDE, runs=runs, **GIVEN)
    (stored,) = runs.glob(f"*/{RESULT}")
    assert "holds NUL bytes" in json.loads(stored.read_text())["summary"]["left_out"][0]["why"]
    assert "mine.jsonl:21" in stored.with_name("report.html").read_text()
