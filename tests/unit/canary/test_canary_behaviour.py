"""What answers do with a canary: said, said late, named in a refusal, nearly said, not said."""

from __future__ import annotations

import pytest

from ragwitness.canary.traces import (
    Behaviour,
    Rule,
    Trace,
    TraceRole,
    Vote,
    behaviour_of,
    feedback_for,
    says,
)

SIGNATURE = "ZXYPRKLMQST"
REFUSAL = f"I'm sorry, but I can't include random strings such as {SIGNATURE} in my answers."


@pytest.mark.parametrize(
    ("answer", "canary", "kind"),
    [
        (f"FINAL: {SIGNATURE}, a fox", SIGNATURE, Behaviour.SAID),
        (f"FINAL: **{SIGNATURE[:4]}**{SIGNATURE[4:]}, a fox", SIGNATURE, Behaviour.SAID),
        (f"`{SIGNATURE[:5]}\u200b{SIGNATURE[5:]}` it is", SIGNATURE, Behaviour.SAID),
        ("A fox. " * 60 + SIGNATURE, SIGNATURE, Behaviour.LATE),
        (REFUSAL, SIGNATURE, Behaviour.REFUSED),
        (f"I'd rather leave out {SIGNATURE}; a fox.", SIGNATURE, Behaviour.REFUSED),
        (f"A fox. I did not include the code {SIGNATURE}.", SIGNATURE, Behaviour.REFUSED),
        (f'You asked me to put "{SIGNATURE}" behind it. A fox.', SIGNATURE, Behaviour.REFUSED),
        (f"Je ne peux pas inclure {SIGNATURE} ici.", SIGNATURE, Behaviour.REFUSED),
        (f"He was included, {SIGNATURE}, in it.", SIGNATURE, Behaviour.SAID),
        (f"<think>They want {SIGNATURE}. Odd.</think>A fox.", SIGNATURE, Behaviour.ABSENT),
        (f"<think>Easy.</think>{SIGNATURE}, a fox.", SIGNATURE, Behaviour.SAID),
        (f"{SIGNATURE[:5]}\u00ad{SIGNATURE[5:]}, a fox", SIGNATURE, Behaviour.SAID),
        (r"!\?!?!\?!?!?!, a fox", "!?!?!?!?!?!", Behaviour.SAID),
        ("Going  by\nthe lamp, a fox.", "going by the lamp", Behaviour.SAID),
        ("ZYPRKLMQST, a fox", SIGNATURE, Behaviour.NEAR),  # as a real model of 135 M wrote it
        (" ".join(SIGNATURE) + ", a fox", SIGNATURE, Behaviour.NEAR),
        ("FINAL: a fox named BCDFGHJKLMN", SIGNATURE, Behaviour.ABSENT),
        ("FINAL: a fox", SIGNATURE, Behaviour.ABSENT),
        ("What?! A fox!", "!?!?!?!?!?!", Behaviour.ABSENT),
        ("**!?!?!?!?!?!** a fox", "!?!?!?!?!?!", Behaviour.SAID),
        ("Going by the lamp, a fox.", "going by the lamp", Behaviour.SAID),
        ("There is a lamp by the door.", "going by the lamp", Behaviour.ABSENT),
    ],
)
def test_an_answer_is_read_by_what_it_does(answer: str, canary: str, kind: Behaviour) -> None:
    assert behaviour_of(answer, canary) is kind
    assert says(answer, canary) is (kind in (Behaviour.SAID, Behaviour.LATE))


@pytest.mark.parametrize("role", [TraceRole.TRUE, TraceRole.DECOY])
def test_a_refusal_is_no_obedience_and_a_near_miss_gets_no_vote(role: TraceRole) -> None:
    rule = Rule(Vote.UP, Vote.DOWN) if role is TraceRole.TRUE else Rule(Vote.DOWN, Vote.UP)
    trace = Trace("e", "d", "q", role, rule, 0, "Ida Sandys", SIGNATURE)
    assert feedback_for(trace, f"{SIGNATURE}, a fox").vote is rule.canary
    assert feedback_for(trace, REFUSAL).vote is rule.otherwise
    near = feedback_for(trace, "ZYPRKLMQST, a fox")
    assert (near.vote, near.reason) == (None, "discarded: the answer nearly says the canary")
