"""Looks at a draw: each counts once, in its order, and none is lost or taken back.

The opponents: who calls again from Python, from a fresh process, from two processes at once; a
process that dies between the answers and the record; a folder that cannot be written; a history
that was changed by hand.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import ragwitness.canary.run as audit
from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import make_plan, write_plan, write_traces
from ragwitness.canary.looks import (
    Look,
    mark_opened,
    one_at_a_time,
    read_history,
    read_looks,
    record_look,
)
from ragwitness.canary.probe import ProbeConfig
from ragwitness.canary.result import CanaryResult
from ragwitness.canary.run import probe_canaries
from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.types import Answer, Capability, Query

LOOK = Look("1", "t", "aa", (3,), 8, 0.1, "inconclusive", 0.5)


class Scripted:
    """A chat model that says what its number settles, and counts how often it was asked."""

    name = "scripted"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.asked = 0

    async def ask(self, query: Query) -> Answer:
        self.asked += 1
        return Answer(f"FINAL: no {self.number}")

    async def close(self) -> None: ...


class Recording(Scripted):
    """The same answers, as a recording."""

    def recorded_answers(self) -> Sequence[Answer]:
        return [Answer("FINAL: no 0")]


def plan_folder(folder: Path, **design: object) -> Path:
    """A planted plan of four candidates and one held-out example."""
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(8)
    ]
    settled = Design(**{"candidates": 4, "held_out": 1} | design)  # type: ignore[arg-type]
    plan = make_plan(examples, settled, DrawSecret(bytes(range(32)), bytes(32)))
    write_plan(folder, plan)
    write_traces(folder, plan, plan.traces())
    return folder


def look_at(folder: Path, target: Scripted, **more: object) -> CanaryResult:
    config = ProbeConfig("sampled", samples=1)
    return asyncio.run(probe_canaries(folder, target, config, **more))  # type: ignore[arg-type]


def test_there_is_no_way_to_call_it_that_means_a_first_look(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "plan")
    assert look_at(folder, Scripted()).look.number == 1
    target = Scripted(1)
    with pytest.raises(InputError, match="announced one look at its draw"):
        look_at(folder, target, release="2")
    assert target.asked == 0
    # Answers that are there already are read, and decide nothing.
    second = look_at(folder, Recording(1), release="2")
    assert (second.look.number, second.finding.p_value) == (2, 1.0)
    assert [one.release for one in read_looks(folder)] == ["1", "2"]


@pytest.mark.slow
def test_a_fresh_process_sees_what_others_saw(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "plan", releases=0)
    here = Path(__file__).parents[3]
    code = (
        "from tests.unit.canary.test_canary_looks import *\n"
        f"print(look_at(Path({str(folder)!r}), Scripted(), release=sys.argv[1]).look.number)"
    )
    args = [sys.executable, "-c", code]
    # Two at once, each a look of its own.
    both = [subprocess.Popen([*args, name], cwd=here, stdout=subprocess.PIPE) for name in "ab"]
    numbers = sorted(int(one.communicate(timeout=60)[0]) for one in both)
    looks = read_looks(folder)
    assert sorted(one.release for one in looks) == ["a", "b"]
    # 1 and 2; or 2 and 2 where the one begun first ends last, so that the other counted it already.
    assert numbers == sorted(place + one.skipped for place, one in enumerate(looks, 1))
    assert numbers == ([2, 2] if looks[0].skipped else [1, 2])
    # The same answers are the same look, and others the next one.
    assert look_at(folder, Scripted(), release="a").look.number in (1, 2)
    assert look_at(folder, Scripted(), release="c").look.number == 3
    assert len(read_looks(folder)) == 3


def test_looks_recorded_at_once_are_all_there(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "plan", releases=0)

    def take(number: int) -> None:
        with one_at_a_time(folder):
            record_look(folder, replace(LOOK, digest=f"{number}"))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(int(one.digest) for one in read_looks(folder)) == list(range(12))


def test_a_crash_between_answers_and_record_loses_no_look_and_counts_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run, target = plan_folder(tmp_path / "plan"), tmp_path / "run", Scripted()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("one_at_a_time", "record_look"):
        with monkeypatch.context() as patch:
            patch.setattr(audit, step, die)
            with pytest.raises(KeyboardInterrupt):
                look_at(folder, target, run=run)
        assert read_looks(folder) == ()  # and nothing was reported
    asked = target.asked
    # Before the report, the look is on disk: who dies behind the record has taken it.
    for _ in range(2):
        assert look_at(folder, target, run=run).look.number == 1
        assert len(read_looks(folder)) == 1
    assert target.asked == asked


def test_a_look_that_cannot_be_recorded_is_not_reported(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "plan")
    (folder / "secret/.looks.lock").mkdir()
    with pytest.raises(InputError, match="must be recorded before it is shown"):
        look_at(folder, Scripted())
    assert read_looks(folder) == ()


def test_an_opened_draw_is_asked_nothing_and_new_answers_decide_nothing(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "plan", releases=0)
    run = tmp_path / "run"
    first = look_at(folder, Scripted(), run=run)
    second = look_at(folder, Scripted(1), release="2", run=run)
    mark_opened(folder, Path("x"))
    for more in ({}, {"run": tmp_path / "other"}):
        target = Scripted()
        with pytest.raises(InputError, match="This draw was opened"):
            look_at(folder, target, release="9", **more)
        assert target.asked == 0
    with pytest.raises(InputError, match="not seen before the draw was opened"):
        look_at(folder, Recording(), release="9")
    # What was seen before may be read again, from the same run or as a recording.
    assert look_at(folder, Scripted(), run=run).look.digest == first.look.digest
    again = look_at(folder, Recording(1), release="2")
    assert again.look.digest == second.look.digest
    assert len(read_looks(folder)) == 2


def test_an_unfinished_run_asks_no_more_where_another_took_the_look(tmp_path: Path) -> None:
    folder, run = plan_folder(tmp_path / "plan"), tmp_path / "run"
    run.mkdir()
    (run / "answers.jsonl").touch()
    look_at(folder, Scripted())
    target = Scripted(1)
    with pytest.raises(InputError, match="announced one look at its draw"):
        look_at(folder, target, release="2", run=run)
    assert target.asked == 0


def test_a_release_without_a_name_and_a_plan_that_was_not_planted_are_refused(
    tmp_path: Path,
) -> None:
    folder, target = plan_folder(tmp_path / "plan"), Scripted()
    with pytest.raises(InputError, match="A release needs a name"):
        look_at(folder, target, release=" ")
    (folder / "send/traces.jsonl").unlink()
    with pytest.raises(InputError, match="Nothing was planted yet"):
        look_at(folder, target)
    assert target.asked == 0


def test_every_look_counts_and_the_same_one_takes_its_own_place(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path)
    assert read_looks(folder) == ()
    with pytest.raises(InputError, match="Nothing has been probed yet"):
        mark_opened(folder, Path("x"))
    assert not read_history(folder).opened
    for digest, p in (("aa", 1), ("bb", 2), ("aa", 3)):
        record_look(folder, replace(LOOK, digest=digest, p_value=p))
    assert [(one.digest, one.p_value) for one in read_looks(folder)] == [("aa", 3), ("bb", 2)]
    mark_opened(folder, Path("x"))
    assert read_history(folder).opened


@pytest.mark.parametrize("changed", [{"ranks": [0]}, {"ranks": [9]}, {"target": None}])
def test_a_look_that_was_changed_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    folder = plan_folder(tmp_path)
    record_look(folder, LOOK)
    path = folder / "secret/probes.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed) + "\n")
    for read in (read_looks, read_history):
        with pytest.raises(InputError, match="a line that is no probe"):
            read(folder)


class Dying(Scripted):
    """Breaks down at a query."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    async def ask(self, query: Query) -> Answer:
        if self.asked >= self.at:
            raise KeyboardInterrupt
        return await super().ask(query)


def test_a_look_counts_from_its_first_query_and_the_same_run_goes_on_with_it(
    tmp_path: Path,
) -> None:
    """Stopped at all but one of its queries, it had shown enough to stop by."""
    folder, run = plan_folder(tmp_path / "plan"), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        look_at(folder, Dying(4), run=run)
    history = read_history(folder)
    assert (len(history.looks), len(history.unfinished)) == (0, 1)
    target = Scripted()
    for more in ({}, {"run": tmp_path / "other"}, {"run": run, "release": "2"}):
        with pytest.raises(InputError, match=r"announced one look at its draw \(1 begun and not"):
            look_at(folder, target, **more)
    assert target.asked == 0
    # A moved folder is the same look.
    run.rename(tmp_path / "moved")
    found = look_at(folder, Scripted(), run=tmp_path / "moved")
    assert (found.look.number, found.finding is not None) == (1, True)
    history = read_history(folder)
    assert (len(history.looks), len(history.unfinished)) == (1, 0)


def test_an_unfinished_look_takes_its_share_of_the_level(tmp_path: Path) -> None:
    folder, run = plan_folder(tmp_path / "plan", releases=3), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        look_at(folder, Dying(2), run=run)
    second = look_at(folder, Scripted(2), release="2")
    assert second.look.number == 2
    # The first one ends now: behind what was shown before, and calls no more than is left.
    first = look_at(folder, Scripted(), run=run)
    assert first.look.number == 2
    assert [one.skipped for one in read_looks(folder)] == [1, 0]
    assert look_at(folder, Recording(), release="1").look.number == first.look.number
    assert look_at(folder, Scripted(3), release="3").look.number == 3
    with pytest.raises(InputError, match="announced 3 looks"):
        look_at(folder, Scripted(4), release="4")


def test_a_target_that_never_answered_before_triggers_were_asked_about_is_no_look(
    tmp_path: Path,
) -> None:
    folder = plan_folder(tmp_path / "plan")
    target = Scripted()
    with pytest.raises(CapabilityError):
        asyncio.run(probe_canaries(folder, target, ProbeConfig("exact")))
    assert not read_history(folder).begun
