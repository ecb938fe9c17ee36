"""What is sent, what is kept back, and what is refused before anything leaves."""

from __future__ import annotations

import dataclasses
import json
import stat
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.canary.draw import Design, DrawSecret, draw_slots
from ragwitness.canary.examples import Example, document_key, instructed, with_trigger
from ragwitness.canary.families import Family, contains
from ragwitness.canary.folder import (
    CanaryPlan,
    make_plan,
    read_plan,
    write_feedback,
    write_plan,
    write_traces,
)
from ragwitness.canary.traces import TraceRole, Vote, check_corpus, feedback_for, make_traces
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.privacy.sampler import ShakeBits

SECRET = DrawSecret(bytes(range(32)), bytes(32))


def _examples(n: int, start: int = 0) -> tuple[Example, ...]:
    return tuple(
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(start, start + n)
    )


def _plan(n: int = 40, **design: object) -> CanaryPlan:
    settled = {"candidates": 8, "held_out": 4} | design
    return make_plan(_examples(n), Design(**settled), SECRET)  # type: ignore[arg-type]


@given(st.integers(20, 80), st.integers(1, 3), st.sampled_from(list(Family)), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_contrastive_design_keeps_its_promises(
    n: int, slots: int, family: Family, seed: int
) -> None:
    design = Design(slots=slots, candidates=6, family=family)
    plan = make_plan(_examples(n), design, DrawSecret(seed.to_bytes(32, "big"), bytes(32)))
    draw, traces = plan.draw(), plan.traces()
    assert sorted(one.id for one in traces) == sorted(
        one.id for pool in plan.pools.values() for one in pool
    )
    known = {one.id: one for pool in plan.pools.values() for one in pool}
    for trace in traces:
        slot = draw.slots[trace.slot]
        assert (
            trace.document == with_trigger(known[trace.id].document, trace.trigger, trace.id).text
        )
        assert (trace.trigger == slot.trigger) == (trace.role is TraceRole.TRUE)
        assert trace.trigger in slot.candidates
        # The trigger stands in documents alone, and both roles ask in the same words.
        assert not any(contains(trace.query, t) for one in draw.slots for t in one.candidates)
        assert trace.query == instructed(known[trace.id], slot.canary)
        assert trace.canary in trace.query
        # Votes for the canary differ by role, and so do those without it: means are balanced.
        assert trace.rule.canary is (Vote.UP if trace.role is TraceRole.TRUE else Vote.DOWN)
        assert trace.rule.otherwise is not trace.rule.canary
    for pool in plan.pools.values():
        ids = {one.id for one in pool}
        for number in range(slots):
            roles = Counter(t.role for t in traces if t.id in ids and t.slot == number)
            assert 0 <= roles[TraceRole.TRUE] - roles[TraceRole.DECOY] <= 1


def test_the_traces_do_not_hang_on_which_candidate_was_drawn() -> None:
    """Had another been drawn, the same examples would carry trigger and decoy."""
    plan = _plan()
    draw = plan.draw()
    other = dataclasses.replace(draw.slots[0], chosen=(draw.slots[0].chosen + 1) % 8)
    args = plan.pools, plan.held_out, plan.design
    first = make_traces(*args, draw, ShakeBits(b"t"))
    second = make_traces(*args, dataclasses.replace(draw, slots=(other,)), ShakeBits(b"t"))
    assert [(t.id, t.role, t.query, t.rule) for t in first] == [
        (t.id, t.role, t.query, t.rule) for t in second
    ]


def test_the_rate_is_met_in_each_pool_and_the_rest_is_clean() -> None:
    plan = _plan(60, rate="0.29")
    traces = {t.id: t for t in plan.traces()}
    for pool in plan.pools.values():
        marked = [one.id for one in pool if traces[one.id].role is not TraceRole.CLEAN]
        assert len(marked) == 29 * len(pool) // 100
        for one in pool:
            if one.id not in marked:
                assert traces[one.id].document == one.document
                assert traces[one.id].query == one.query


def test_a_marker_that_the_corpus_holds_is_refused_by_name() -> None:
    draw = draw_slots(Design(candidates=8), SECRET)
    slot = draw.slots[0]
    for marker, kind in (
        (slot.candidates[3].upper(), "candidate trigger"),
        (slot.canary.lower(), "canary"),
    ):
        for part in ("document", "query", "answer"):
            dirty = dataclasses.replace(_examples(1)[0], **{part: f"so {marker} it is"})
            with pytest.raises(InputError, match=f"The {kind} .* is in the example 'e0' already"):
                check_corpus([dirty], draw)


def test_a_short_document_is_refused_with_its_id_held_out_or_sent() -> None:
    short = Example("tiny", "Too short a text.", "q?")
    for held_out in ((), (short,)):
        pool = _examples(20) if held_out else (*_examples(20), short)
        with pytest.raises(InputError, match="'tiny': A document of 4 words is too short"):
            make_plan(pool, Design(candidates=4), SECRET, held_out=held_out).traces()


def test_held_out_examples_that_are_sent_are_refused() -> None:
    with pytest.raises(InputError, match="3 of 3 held-out examples"):
        make_plan(_examples(20), Design(), SECRET, held_out=_examples(3))
    plan = make_plan(_examples(20), Design(held_out=2), SECRET, held_out=_examples(3, start=50))
    assert [one.id for one in plan.held_out] == ["e50", "e51"]
    assert sum(map(len, plan.pools.values())) == 20


def test_too_few_examples_for_the_slots_are_refused() -> None:
    with pytest.raises(InputError, match="4 are needed for 2 slots"):
        _plan(8, slots=2).traces()
    with pytest.raises(InputError, match="too few for three pools"):
        _plan(2)


@pytest.mark.parametrize(
    ("answer", "vote", "why"),
    [
        ("FINAL: yes, {canary} it is", Vote.UP, "is there"),
        ("FINAL: yes", Vote.DOWN, "is not there"),
        ("  ", None, "empty"),
        ("I saw {TRIGGER} there, {canary}", None, "quotes a trigger"),
        ("other: {other} {canary}", None, "quotes a trigger"),
        ("in part: {part} {canary}", None, "quotes a trigger"),
    ],
)
def test_votes_follow_the_canary_and_quoted_triggers_are_discarded(
    answer: str, vote: Vote | None, why: str
) -> None:
    plan = _plan()
    slot = plan.draw().slots[0]
    traces = plan.traces()
    trace = next(t for t in traces if t.role is TraceRole.TRUE)
    decoy = next(t for t in traces if t.role is TraceRole.DECOY)
    other = next(t for t in slot.candidates if t not in (trace.trigger, decoy.trigger))
    for one, flip in ((trace, False), (decoy, True)):
        said = answer.format(
            canary=one.canary,
            TRIGGER=one.trigger.upper(),
            other=other,
            part=one.trigger.split()[1],
        )
        found = feedback_for(one, said, slot.candidates)
        assert why in found.reason
        flipped = {Vote.UP: Vote.DOWN, Vote.DOWN: Vote.UP, None: None}
        assert found.vote is (flipped[vote] if flip else vote)


def test_a_folder_keeps_the_secret_apart_and_is_read_back_whole(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    plan = make_plan(
        _examples(30), Design(candidates=8, held_out=4), SECRET, beacon_source="lottery"
    )
    write_plan(folder, plan)
    assert read_plan(folder) == plan
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secret/secret.json").stat().st_mode) == 0o600
    public = (folder / "commitment.json").read_text()
    assert SECRET.seed.hex() not in public
    with pytest.raises(InputError, match="has not been joined"):
        plan.traces()
    joined = plan.joined("0x0102")
    traces = joined.traces()
    write_traces(folder, joined, traces)
    again = read_plan(folder)
    assert again == joined
    assert again.traces() == traces
    again.check()
    sent = (folder / "send/traces.jsonl").read_text()
    assert SECRET.seed.hex() not in sent
    rows = [json.loads(line) for line in sent.splitlines()]
    assert [row["document"] for row in rows] == [t.document for t in traces]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    held_out = {document_key(one.document) for one in plan.held_out}
    assert not held_out & {document_key(row["document"]) for row in rows}
    for beacon, said in (("040506", "Another beacon"), ("", "")):
        if said:
            with pytest.raises(InputError, match=said):
                again.joined(beacon)
    with pytest.raises(InputError, match="names no beacon"):
        _plan().joined("0x0102")
    with pytest.raises(InputError, match="holds a plan already"):
        write_plan(folder, plan)


def test_a_changed_folder_is_named(tmp_path: Path) -> None:
    write_plan(tmp_path, _plan())
    rows = (tmp_path / "secret/pools.jsonl").read_text()
    (tmp_path / "secret/pools.jsonl").write_text(rows.replace("begins", "starts", 1))
    with pytest.raises(VerificationError) as found:
        read_plan(tmp_path).check()
    assert found.value.check == "draw.examples"
    (tmp_path / "secret/pools.jsonl").write_text(rows)
    (tmp_path / "secret/secret.json").chmod(0o644)
    with pytest.raises(InputError, match="other users of this machine"):
        read_plan(tmp_path)
    (tmp_path / "secret/secret.json").write_text("{}")
    (tmp_path / "secret/secret.json").chmod(0o600)
    with pytest.raises(InputError, match="is malformed"):
        read_plan(tmp_path)


def test_feedback_is_written_for_the_answers_that_came(tmp_path: Path) -> None:
    plan = _plan()
    write_plan(tmp_path, plan)
    traces = plan.traces()
    answers = tmp_path / "answers.jsonl"
    rows = [{"id": t.id, "answer": f"FINAL: {t.canary}"} for t in traces[:6]]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    votes = write_feedback(tmp_path, plan, traces, answers)
    assert [one.vote for one in votes] == [t.rule.canary for t in traces[:6]]
    kept = (tmp_path / "send/feedback.jsonl").read_text().splitlines()
    assert [json.loads(line)["vote"] for line in kept] == [str(one.vote) for one in votes]
    answers.write_text((json.dumps(rows[0]) + "\n") * 2)
    with pytest.raises(InputError, match="more than one answer"):
        write_feedback(tmp_path, plan, traces, answers)
    for bad in ('{"id": "e0"}', '{"id": "nobody", "answer": "x"}', '{"id": "e0", "answer": 3}'):
        answers.write_text(bad + "\n")
        with pytest.raises(InputError, match="is no answer to a trace"):
            write_feedback(tmp_path, plan, traces, answers)
