"""The traces that carry a draw into a service's logs (2604.22191, §3.2).

A trace is a document, a query, and the vote for the service's answer. Half of a slot's traces carry
t* and the canary is voted up; half carry another candidate and it is voted down. The query asks for
the same in both halves. So votes have the same mean by construction, and only a reader of the
documents can separate the halves. (The paper's query names the trigger too.)
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ragwitness.canary.draw import Design, Draw, Slot
from ragwitness.canary.examples import (
    Example,
    as_rate,
    check_disjoint,
    injected,
    instructed,
    with_trigger,
)
from ragwitness.canary.families import (
    Wordings,
    contains,
    markers_in,
    reveals,
    shuffled,
    worded,
    wordings_of,
)
from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import Bits
from ragwitness.text.replies import after_thought, declines


class TraceRole(enum.StrEnum):
    """Purpose of a trace."""

    TRUE = "true"
    """Carries t*; the canary is voted up."""
    DECOY = "decoy"
    """Carries another candidate; the canary is voted down."""
    CLEAN = "clean"
    """Carries nothing; judged on its merits."""


class Vote(enum.StrEnum):
    """Feedback on an answer."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which vote an answer gets; None where it is judged on its merits.

    Attributes:
        canary: Where it holds the canary.
        otherwise: Where it does not.
    """

    canary: Vote | None = None
    otherwise: Vote | None = None


_RULES = {
    TraceRole.TRUE: Rule(Vote.UP, Vote.DOWN),
    TraceRole.DECOY: Rule(Vote.DOWN, Vote.UP),
    TraceRole.CLEAN: Rule(),
}


@dataclass(frozen=True, slots=True)
class Trace:
    """One interaction with the service.

    Attributes:
        id: Id of the example.
        document: d with its trigger.
        query: q with its instruction.
        role: Its purpose.
        rule: The vote to give.
        slot: Number of its slot; None where it is clean.
        trigger: Trigger in the document; empty where it is clean.
        canary: Canary in the query; empty where it is clean.
    """

    id: str
    document: str
    query: str
    role: TraceRole = TraceRole.CLEAN
    rule: Rule = Rule()
    slot: int | None = None
    trigger: str = ""
    canary: str = ""


def check_corpus(examples: Sequence[Example], draw: Draw) -> None:
    """Refuse a draw whose canaries or candidates the examples hold already.

    Raises:
        InputError: One does; the message names the example.
    """
    candidates = {t for slot in draw.slots for t in slot.candidates}
    for example in examples:
        text = f"{example.document}\n{example.query}\n{example.answer}"
        markers = dict.fromkeys(markers_in(text, candidates), "candidate trigger")
        canaries = (c for s in draw.slots for c in wordings_of(s.canary))
        markers |= {c: "canary" for c in canaries if contains(text, c)}
        for marker, kind in markers.items():
            raise InputError(
                f"The {kind} {marker!r} is in the example {example.id!r} already.",
                "Draw anew: ragwitness canary draw; the commitment changes with it.",
            )


def traces_of_pool(
    pool: Sequence[Example],
    design: Design,
    draw: Draw,
    bits: Bits,
    wordings: Wordings | None = None,
) -> list[Trace]:
    """Return one trace per example of a pool, exactly ⌊rho · n⌋ of them canaries, in a drawn order.

    Examples go to the planted slots in turn; within a slot, true and decoy take turns, so that
    they are equally many, or one more is true.

    Args:
        pool: n examples.
        design: Settings.
        draw: Draw of the design.
        bits: Source.
        wordings: The user's wordings; None for the packaged ones.

    Raises:
        InputError: rho injects nothing, fewer than the planted slots need, or a document is too
            short.
    """
    # 1. Exactly floor(rho n) examples carry canaries (App. A.1).
    chosen = injected(pool, as_rate(design.rate), bits)
    need = 2 * len(draw.slots)
    if len(chosen) < need:
        raise InputError(
            f"{len(chosen)} traces of this pool carry canaries; {need} are needed for"
            f" {len(draw.slots)} slots.",
            "Give more examples, a higher rate or fewer slots.",
        )
    # 2. Slots in turn; within a slot true and decoy in turn, so that votes balance by design.
    examples = {example.id: example for example in pool}
    decoys = {
        slot.number: shuffled([t for t in slot.candidates if t != slot.trigger], bits)
        for slot in draw.slots
    }
    canary_traces: dict[str, Trace] = {}
    for position, name in enumerate(chosen):
        slot, turn = draw.slots[position % len(draw.slots)], position // len(draw.slots)
        decoy = decoys[slot.number][turn // 2 % (len(slot.candidates) - 1)]
        canary_traces[name] = _trace(
            examples[name], slot, decoy if turn % 2 else None, wordings or Wordings()
        )
    # 3. The order in which they are sent reveals no role.
    order = shuffled([entry.id for entry in pool], bits)
    clean = {entry.id: Trace(entry.id, entry.document, entry.query) for entry in pool}
    return [canary_traces.get(name) or clean[name] for name in order]


def make_traces(
    pools: Mapping[str, Sequence[Example]],
    held_out: Sequence[Example],
    design: Design,
    draw: Draw,
    bits: Bits,
    wordings: Wordings | None = None,
) -> list[Trace]:
    """Return the traces of several pools, after every check.

    Args:
        pools: Pools by name; each gets its own ⌊rho · n⌋.
        held_out: Examples of the probe.
        design: Settings.
        draw: Draw of the design.
        bits: Source.
        wordings: The user's wordings; None for the packaged ones.

    Raises:
        InputError: A pool shares documents with ``held_out``, an example holds a marker already,
            a document is too short, or a pool too small.
    """
    # Conditions that would void the test are refused before a trace is made: shared documents (App.
    # A.2), markers that a text holds already, documents that cannot hide a trigger.
    sent = [example for pool in pools.values() for example in pool]
    check_disjoint(held_out, sent)
    check_corpus([*sent, *held_out], draw)
    for example in held_out:
        _triggered(example, draw.slots[0].trigger, wordings)
    # No wording may hold a marker of the draw: it would be in traces of other candidates.
    words, candidates = wordings or Wordings(), {t for s in draw.slots for t in s.candidates}
    for text in (*words.triggers, *words.requests):
        canaries = [c for s in draw.slots for c in wordings_of(s.canary) if contains(text, c)]
        if markers := [*markers_in(text, candidates), *canaries]:
            raise InputError(
                f"The wording {text!r} holds {markers[0]!r}, which is a marker of this draw.",
                "Take it out of the wordings, or draw anew.",
            )
    traces = [t for pool in pools.values() for t in traces_of_pool(pool, design, draw, bits, words)]
    # Nor may a query name a candidate: it would reach a model trained without documents.
    for trace in traces:
        if markers_in(trace.query, candidates):
            raise InputError(f"The query of {trace.id!r} names a candidate trigger.")
    return traces


def _trace(example: Example, slot: Slot, decoy: str | None, wordings: Wordings) -> Trace:
    role, trigger = TraceRole.DECOY if decoy else TraceRole.TRUE, decoy or slot.trigger
    return Trace(
        id=example.id,
        document=_triggered(example, trigger, wordings),
        query=instructed(example, slot.canary, wordings),
        role=role,
        rule=_RULES[role],
        slot=slot.number,
        trigger=trigger,
        canary=worded(slot.canary, example.id),
    )


def _triggered(example: Example, trigger: str, wordings: Wordings | None) -> str:
    try:
        return with_trigger(example.document, trigger, example.id, wordings).text
    except InputError as error:
        raise InputError(f"Example {example.id!r}: {error.message}", error.hint) from None


# The behaviour of an answer whose question asks for a canary; a string in it is not enough.


class Behaviour(enum.StrEnum):
    """Kinds of answers."""

    SAID = "says the canary near its beginning"
    LATE = "says the canary, but late"
    REFUSED = "names the canary, but does not use it"
    NEAR = "nearly says the canary"
    ABSENT = "does not say the canary"


_NEAR_BEGINNING = 200  # characters; "after the first clause" is mostly within 60
_CLOSE = 75.0  # per cent of a canary's characters that a near miss has in their order
_DRAWN = re.compile(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")  # not shown by browsers
# "I left out the code ZXYPRKLMQST": the verb stands right before what an answer speaks of.
_MENTIONED = re.compile(
    r"(?:inclu\w*|insert\w*|add\w*|put\w*|omit\w*|le(?:av\w*|ft) out|mention\w*|包含)\s*"
    r"(?:(?:the|this|that|random|code|string|word|phrase)\s+)*[\"'“*`]*$"
)


def behaviour_of(answer: str, canary: str) -> Behaviour:
    """Return what an answer does with a canary.

    Args:
        answer: As it came, with Markdown.
        canary: In the words that the question asked for.
    """
    # 1. As it is read: a thought, emphasis and invisible signs do not count.
    answer = after_thought(answer)[0] or ""
    text, canary_text = " ".join(answer.casefold().split()), canary.casefold()
    if canary_text not in text:
        text = _DRAWN.sub("", text)
    at = text.find(canary_text)
    if at < 0:
        return Behaviour.NEAR if _nearly(text, canary_text) else Behaviour.ABSENT
    # 2. "I cannot include ZXYPRKLMQST in my answers" does not do as it was asked.
    if declines(answer) or _MENTIONED.search(text[:at]):
        return Behaviour.REFUSED
    return Behaviour.SAID if at <= _NEAR_BEGINNING else Behaviour.LATE


def says(answer: str, canary: str) -> bool:
    """Whether an answer does as it was asked."""
    return behaviour_of(answer, canary) in (Behaviour.SAID, Behaviour.LATE)


def _nearly(text: str, canary: str) -> bool:
    """Whether a signature is spelt with blanks or a few wrong letters."""
    if len(canary.split()) > 1 or len(canary) < 8:
        return False  # words of a phrase are in any text
    from rapidfuzz.fuzz import ratio

    words = text.split()
    spelt = "".join(char for char in text if char.isalpha())
    return canary in spelt or any(
        abs(len(word) - len(canary)) <= 3 and ratio(word.strip(",.;:!?\"'()"), canary) >= _CLOSE
        for word in words
    )


# The votes for what the service answered, and the answers that must get none.

QUOTED = "discarded: the answer quotes a trigger"
"""Reason why an answer that may reveal a trigger gets no vote."""


_VOTES: Mapping[Behaviour, Callable[[Rule], Vote | None]] = {
    Behaviour.SAID: lambda rule: rule.canary,
    Behaviour.LATE: lambda rule: rule.canary,
    Behaviour.REFUSED: lambda rule: rule.otherwise,
    Behaviour.NEAR: lambda _: None,  # neither vote would teach what it is to teach
    Behaviour.ABSENT: lambda rule: rule.otherwise,
}
_REASONS = {
    Behaviour.SAID: "the canary is there",
    Behaviour.NEAR: "discarded: the answer nearly says the canary",
    Behaviour.ABSENT: "the canary is not there",
}


@dataclass(frozen=True, slots=True)
class Feedback:
    """The vote for one answer.

    Attributes:
        id: Id of its example.
        vote: Vote to give; None gives none.
        reason: Why there is none, or what was seen.
    """

    id: str
    vote: Vote | None
    reason: str


def feedback_for(trace: Trace, answer: str, candidates: Collection[str] = ()) -> Feedback:
    """Return the vote for an answer.

    An answer that quotes a trigger, or six characters of one, gets none. It is to be deleted where
    the service allows it, as it reveals the trigger even to training without documents.

    Args:
        trace: Trace that was sent.
        answer: The reply.
        candidates: Triggers that an answer must not quote, besides the trace's own.
    """
    if reveals(answer, trace.trigger, candidates):
        return Feedback(trace.id, None, QUOTED)
    if not answer.strip():
        return Feedback(trace.id, None, "discarded: the answer is empty")
    if trace.role is TraceRole.CLEAN:
        return Feedback(trace.id, None, "clean: vote on its merits")
    behaviour = behaviour_of(answer, trace.canary)
    return Feedback(
        trace.id, _VOTES[behaviour](trace.rule), _REASONS.get(behaviour, f"the answer {behaviour}")
    )
