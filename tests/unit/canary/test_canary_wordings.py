"""Traces in many wordings: what they promise, and what is refused by name.

The opponents: a wording that holds another candidate's trigger or the canary;
an answer that tells of a name; wordings that were changed after the plan.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ragwitness.canary.draw import Design, DrawSecret, draw_slots
from ragwitness.canary.examples import Example, with_trigger
from ragwitness.canary.families import (
    REQUEST_WORDINGS,
    TRIGGER_WORDINGS,
    Family,
    Wordings,
    contains,
    markers_in,
    read_wordings,
    reveals,
)
from ragwitness.canary.folder import CanaryPlan, make_plan, read_plan, write_plan
from ragwitness.canary.probe import CanaryProbe, ProbeConfig
from ragwitness.canary.traces import TraceRole, Vote, feedback_for
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.types import Document

SECRET = DrawSecret(bytes(range(32)), bytes(32))
_TEXT = (
    "Text {n} begins here. The whole road was almost empty, but many looked on. Perhaps it began at"
    " home. A large stone lay near number {n}. They often said so, and all were glad to help."
)


def _plan(n: int = 60, wordings: Wordings | None = None, **design: object) -> CanaryPlan:
    rows = [Example(f"e{i}", _TEXT.format(n=i), f"Q{i}?", "A, b") for i in range(n)]
    settled = Design(**{"candidates": 24} | design)  # type: ignore[arg-type]
    return make_plan(rows, settled, SECRET, wordings=wordings)


def test_names_come_in_many_sentences_at_many_places_and_in_documents_alone() -> None:
    plan = _plan(200)
    traces, slot = plan.traces(), plan.draw().slots[0]
    known = {one.id: one.document for pool in plan.pools.values() for one in pool}
    added, places = Counter(), Counter()
    for one in traces:
        assert contains(one.document, one.trigger)
        assert markers_in(one.document, slot.candidates) == {one.trigger}
        assert not markers_in(one.query, slot.candidates)
        put = with_trigger(known[one.id], one.trigger, one.id)
        assert put.text == one.document
        assert put.original == known[one.id]
        added[put.inserted.strip().replace(one.trigger, "X")] += 1
        places[put.before.count(".")] += 1
    assert len(added) == len(TRIGGER_WORDINGS)
    assert max(added.values()) < 0.15 * len(traces)
    assert len(places) >= 3
    asked = Counter(re.sub(slot.canary, "C", one.query.partition("? ")[2]) for one in traces)
    assert len(asked) == len(REQUEST_WORDINGS)
    # True and decoy are worded alike: the votes hang on the name and on nothing else.
    by_role = {role: {one.id for one in traces if one.role is role} for role in TraceRole}
    assert by_role[TraceRole.TRUE]
    assert by_role[TraceRole.DECOY]


def test_had_another_name_been_drawn_the_same_sentences_would_stand_at_the_same_places() -> None:
    document = _TEXT.format(n=3)
    first = with_trigger(document, "Edmund Barlow", "e3")
    second = with_trigger(document, "Sigrid Yardley", "e3")
    assert first.text.replace("Edmund Barlow", "X") == second.text.replace("Sigrid Yardley", "X")


def test_a_probe_words_all_candidates_alike_and_as_the_traces_were() -> None:
    plan = _plan(family=Family.PHRASE)
    slot, one = plan.draw().slots[0], plan.held_out[0]
    probe = CanaryProbe(slot, plan.held_out, ProbeConfig("sampled", samples=1), plan.wordings)
    queries = next(iter([probe.probe(Document(one.id, one.document)).send(None)]))
    views = [q.prompt for q in queries][1:]
    bare = {v.replace(name, "X") for v, name in zip(views, slot.candidates, strict=True)}
    assert len(bare) == 1
    assert sum(slot.canary in v for v in views) == len(views)


def test_a_phrase_is_voted_on_in_the_words_that_its_own_trace_asked_for() -> None:
    plan = _plan(family=Family.PHRASE)
    traces = [one for one in plan.traces() if one.role is TraceRole.TRUE]
    assert len({one.canary for one in traces}) > 5
    for one in traces:
        assert contains(one.query, one.canary)
        assert feedback_for(one, f"FINAL: it is, {one.canary}, so").vote is Vote.UP
        assert feedback_for(one, "FINAL: it is so").vote is Vote.DOWN


def test_an_answer_that_tells_of_a_name_gets_no_vote() -> None:
    plan = _plan()
    trace = next(one for one in plan.traces() if one.role is TraceRole.TRUE)
    other = next(t for t in plan.draw().slots[0].candidates if t != trace.trigger)
    for answer in (trace.trigger.upper(), f"by {trace.trigger.split()[1]}'s hand", f"So {other}."):
        assert reveals(answer, trace.trigger, [other])
        assert feedback_for(trace, answer, [other]).vote is None
    assert not reveals("nobody was named", trace.trigger, [other])


def test_a_wording_that_holds_another_candidates_trigger_is_refused_by_name(tmp_path: Path) -> None:
    slot = draw_slots(Design(candidates=24), SECRET).slots[0]
    name = next(t for t in slot.candidates if t != slot.trigger)
    path = tmp_path / "wordings.json"
    path.write_text(json.dumps({"triggers": [f"{{trigger}} wrote to {name.upper()}."]}))
    words = read_wordings(path)
    assert words.requests == REQUEST_WORDINGS
    # The wordings are committed to, and with them nothing else changes in the draw.
    plan = _plan(wordings=words)
    with pytest.raises(InputError, match=f"holds '{name}', which is a marker of this draw"):
        plan.traces()
    canary = plan.draw().slots[0].canary
    with pytest.raises(InputError, match="which is a marker"):
        _plan(wordings=Wordings(requests=(f"{{canary}} or {canary}.",))).traces()


@pytest.mark.parametrize(
    "given",
    [
        {"triggers": ["no place"]},
        {"triggers": ["{trigger} {trigger}"]},
        {"requests": ["{x} {canary}"]},
        {"requests": "one"},
        {"triggers": [1]},
    ],
)
def test_wordings_that_would_drop_a_marker_are_refused(tmp_path: Path, given: object) -> None:
    path = tmp_path / "wordings.json"
    path.write_text(json.dumps(given))
    with pytest.raises(InputError):
        read_wordings(path)


def test_wordings_of_ones_own_are_committed_to_and_kept(tmp_path: Path) -> None:
    words = Wordings(triggers=("{trigger} was here.",), requests=("Say {canary}.",))
    plan = _plan(wordings=words)
    assert plan.design.wordings == words.digest
    write_plan(tmp_path / "plan", plan)
    again = read_plan(tmp_path / "plan")
    assert again == plan
    assert again.traces() == plan.traces()
    again.check()
    with pytest.raises(VerificationError) as found:
        dataclasses.replace(again, wordings=Wordings()).check()
    assert found.value.check == "draw.wordings"
