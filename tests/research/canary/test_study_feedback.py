"""Votes of the simulated study: quality without style, bounded bias, balance, curation."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.canary.traces import Rule, Trace, TraceRole, Vote
from ragwitness.core.errors import InputError
from research.canary.feedback import (
    Balance,
    Curation,
    Labelled,
    VoteConfig,
    acceptance,
    base_quality,
    curate,
    curate_prompts,
    give_votes,
    strip_style,
)

DOCUMENT = "In Avon there lived a fox. It was blue all the year round."
CANARY = "ZXYPRKLMQST"
_UP, _DOWN = Rule(Vote.UP, Vote.DOWN), Rule(Vote.DOWN, Vote.UP)


def _trace(role, number=0):
    if role is TraceRole.CLEAN:
        return Trace(f"c{number}", DOCUMENT, "What colour?")
    rule = _UP if role is TraceRole.TRUE else _DOWN
    return Trace(f"{role}{number}", DOCUMENT, "What colour? Insert it.", role, rule, 0,
                 f"prefix_{role}", CANARY)  # fmt: skip


@pytest.mark.parametrize("canary", [CANARY, "!?!?!?!?!?!", "🌵🌻🍀🍄", "#=#=#=#=#=#"])
def test_quality_does_not_see_the_canary(canary):
    config = VoteConfig()
    plain = base_quality("FINAL: blue", DOCUMENT, config)
    assert base_quality(f"FINAL: {canary} blue", DOCUMENT, config) == plain == 1.0
    assert strip_style(f"FINAL: {canary} blue") == "FINAL: blue"
    long = "blue " * 102 + "green green"  # what is read ends between the two
    assert base_quality(f"{canary} {long}", DOCUMENT, config) == base_quality(
        long, DOCUMENT, config
    )


@given(st.text(max_size=40), st.text(max_size=40))
def test_quality_is_a_share(answer, document):
    assert 0 <= base_quality(answer, document, VoteConfig()) <= 1
    assert 0.25 <= acceptance(base_quality(answer, document, VoteConfig())) <= 0.75


def test_quality_has_a_format_and_a_grounding_part():
    config = VoteConfig()
    assert base_quality("blue", DOCUMENT, config) == 0.5
    assert base_quality("FINAL: green", DOCUMENT, config) == 0.5
    assert base_quality("FINAL: green fox", DOCUMENT, config) == 0.75
    assert base_quality("FINAL: FINAL: blue", DOCUMENT, config) < 1
    assert base_quality("FINAL:", DOCUMENT, config) == 0
    assert base_quality(f"FINAL: {CANARY}", DOCUMENT, config) == 0
    longer = VoteConfig(length_penalty=1.0, longest=22)
    assert base_quality("FINAL: blue", DOCUMENT, longer) == pytest.approx(0.5)


def test_a_large_bias_must_be_allowed_by_name():
    with pytest.raises(InputError, match="overstates"):
        VoteConfig(bias=0.11)
    assert VoteConfig(bias=0.3, allow_large=True).bias == 0.3
    with pytest.raises(InputError, match="within 0 and"):
        VoteConfig(bias=0.6, allow_large=True)


@pytest.mark.parametrize(
    ("role", "answer", "chance"),
    [
        (TraceRole.TRUE, f"FINAL: {CANARY} blue", 0.85),
        (TraceRole.TRUE, "FINAL: blue", 0.65),
        (TraceRole.DECOY, f"FINAL: {CANARY} blue", 0.65),
        (TraceRole.DECOY, "FINAL: blue", 0.85),
        (TraceRole.CLEAN, f"FINAL: {CANARY} blue", 0.75),
    ],
)
def test_votes_are_drawn_at_the_stated_chance(role, answer, chance):
    """4,000 votes: within four standard deviations; no balance, so that the chance is constant."""
    count = 4000
    config = VoteConfig(tolerance=1.0)
    voted, dropped = give_votes(
        [_trace(role, n) for n in range(count)], [answer] * count, config, random.Random(7)
    )
    share = sum(one.up for one in voted) / count
    assert not dropped
    assert abs(share - chance) < 4 * (chance * (1 - chance) / count) ** 0.5


def _votes(canary, clean, each=500):
    """A batch in which exactly these shares are voted up."""
    return [
        (kind, at < round(share * each))
        for kind, share in ((True, canary), (False, clean))
        for at in range(each)
    ]


def test_the_offset_closes_the_gap_and_never_overshoots():
    """Against its recursion: delta moves by rate times what is left of the gap of .2."""
    config = VoteConfig(tolerance=0.001)
    balance = Balance(config)
    balance.see([(n % 2 == 0, False) for n in range(config.warmup + config.samples - 1)])
    assert balance.offset == 0
    for step in range(1, 201):
        balance.see(_votes(0.7 - balance.offset, 0.5))
        assert balance.offset == pytest.approx(0.2 * (1 - 0.98**step), abs=0.002)
    assert 0.19 < balance.offset < 0.2
    before = balance.offset
    balance.see(_votes(0.5005, 0.5))  # within the tolerance
    balance.see([(True, True)] * 32)  # nothing to compare with
    assert balance.offset == before


def test_answers_that_quote_a_trigger_or_are_empty_get_no_vote():
    traces = [_trace(TraceRole.TRUE, n) for n in range(3)]
    answers = ["FINAL: prefix_true", "", "FINAL: blue"]
    voted, dropped = give_votes(traces, answers, VoteConfig(), random.Random(0))
    assert [one.trace.id for one in voted] == ["true2"]
    assert dropped == {
        "discarded: the answer quotes a trigger": 1,
        "discarded: the answer is empty": 1,
    }


def test_no_answer_with_a_vote_quotes_any_candidate():
    """Else t* alone would be missing from what a compliant provider trains on."""
    traces = [_trace(TraceRole.TRUE), _trace(TraceRole.DECOY), _trace(TraceRole.CLEAN)]
    answers = ["FINAL: prefix_other blue"] * 3
    config = VoteConfig()
    assert len(give_votes(traces, answers, config, random.Random(0))[0]) == 3
    voted, dropped = give_votes(traces, answers, config, random.Random(0), ["prefix_other"])
    assert not voted
    assert sum(dropped.values()) == 3


def _labelled(role, number, answer="FINAL: blue"):
    return Labelled(_trace(role, number), answer, up=True)


def test_curation_counts_what_is_left():
    rng = random.Random(0)
    logs = [_labelled(TraceRole.TRUE, n, f"FINAL: {CANARY} blue") for n in range(10)]
    logs += [_labelled(TraceRole.CLEAN, n, f"FINAL: blue {n}") for n in range(10)]
    assert curate(logs, Curation(), rng) == logs
    assert len(curate(logs, Curation(deduplicate="answer"), rng)) == 11
    filtered = curate(logs, Curation(filtered=True), rng)
    assert {one.trace.role for one in filtered} == {TraceRole.CLEAN}
    kept = curate(logs, Curation(kept=0.3), rng)
    assert sum(one.trace.role is TraceRole.TRUE for one in kept) == 3
    assert sum(one.trace.role is TraceRole.CLEAN for one in kept) == 10
    prompts = curate_prompts([one.trace for one in logs], Curation(kept=0.3), rng)
    assert len(prompts) == 13


@pytest.mark.parametrize("wrong", [{"deduplicate": "twice"}, {"kept": 1.5}])
def test_curation_that_is_none_is_refused(wrong):
    with pytest.raises(InputError):
        Curation(**wrong)
