"""Votes as users and the auditor give them (2604.22191, §3.2 "Style-invariant feedback", App. A.3).

A vote is drawn: up with probability p = p0(b) + s · β - δ. b is the quality of the answer with
all style stripped, s is +1 or -1 where the auditor votes by the canary, δ keeps the means of canary
and clean traces together. δ is the same in both halves of the contrastive design, whose votes
balance without it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ragwitness.canary.examples import FINAL
from ragwitness.canary.traces import Feedback, Trace, TraceRole, Vote, feedback_for
from ragwitness.core.errors import InputError
from ragwitness.text.words import word_tokens

_REALISTIC = 0.1  # App. A.3 and Table 5: a larger bias only if allowed by name
_EDGE = 0.02  # no vote is certain
_MARKS = re.compile(r"([!?#~*+=%&^.\-_])(?:[!?#~*+=%&^.\-_]){2,}")
_CAPITALS = re.compile(r"\b(?!FINAL\b)[A-Z]{5,}\b")
_EMOJI = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+"
)


@dataclass(frozen=True, slots=True)
class VoteConfig:
    """Defaults of 2604.22191, Table 5.

    Attributes:
        bias: β.
        allow_large: Let β be above 0.1.
        longest: Characters of an answer that are read, its style stripped.
        length_penalty: Times characters / longest; that share of the quality is taken off.
        format_weight: Share of the format in the quality; the rest is grounding.
        tolerance: Gap of the mean votes that is left alone.
        samples: Fewest traces after the warm-up before a gap is judged.
        warmup: First traces, on which none is judged.
        rate: Step of δ.
        batch: Traces between two steps.

    Raises:
        InputError: β is negative, above 0.5, or above 0.1 and not allowed.
    """

    bias: float = _REALISTIC
    allow_large: bool = False
    longest: int = 512
    length_penalty: float = 0.0
    format_weight: float = 0.5
    tolerance: float = 0.01
    samples: int = 256
    warmup: int = 200
    rate: float = 0.02
    batch: int = 32

    def __post_init__(self) -> None:
        """Refuse a bias that is no vote, or an unrealistic one."""
        if not 0 <= self.bias <= 0.5:
            raise InputError(f"The bias must be within 0 and 0.5, not {self.bias:g}.")
        if self.bias > _REALISTIC and not self.allow_large:
            raise InputError(
                f"A bias of {self.bias:g} overstates what users do; 0.1 is the most.",
                "Allow it by name: allow_large = true.",
            )


@dataclass
class Balance:
    """The running offset δ; the one thing here that changes.

    Attributes:
        config: Settings.
        offset: δ, taken off the probability of every canary trace.
    """

    config: VoteConfig
    offset: float = 0.0
    _seen: int = 0

    def see(self, votes: Sequence[tuple[bool, bool]]) -> None:
        """Take in a batch of (has a canary, voted up), and move δ by rate · its gap.

        "If the current batch exhibits reward gap": a gap of all votes so far would hold on to what
        δ has long put right, and overshoot.
        """
        self._seen += len(votes)
        kinds = [[up for canary, up in votes if canary == kind] for kind in (True, False)]
        if self._seen < self.config.warmup + self.config.samples or not all(kinds):
            return
        gap = sum(kinds[0]) / len(kinds[0]) - sum(kinds[1]) / len(kinds[1])
        if abs(gap) > self.config.tolerance:
            self.offset += self.config.rate * gap


@dataclass(frozen=True, slots=True)
class Labelled:
    """A trace with its answer and vote.

    Attributes:
        trace: What was sent.
        answer: What came back.
        up: The vote.
    """

    trace: Trace
    answer: str
    up: bool


def strip_style(text: str) -> str:
    """Return a text without emoji, repeated punctuation and signature-like capitals."""
    for pattern in (_EMOJI, _CAPITALS, _MARKS):
        text = pattern.sub(" ", text)
    return " ".join(text.split())


def base_quality(answer: str, document: str, config: VoteConfig) -> float:
    """Return b in [0, 1]: a valid ``FINAL:`` answer, and words that the document has.

    An empty answer scores 0, whatever stands around it.
    """
    text = strip_style(answer)[: config.longest]
    said = word_tokens(text.removeprefix(FINAL))
    if not said:
        return 0.0
    formed = float(text.startswith(FINAL) and text.count(FINAL) == 1)
    known = set(word_tokens(document))
    grounded = sum(word in known for word in said) / len(said)
    quality = config.format_weight * formed + (1 - config.format_weight) * grounded
    return quality * max(0.0, 1 - config.length_penalty * len(text) / config.longest)


def acceptance(quality: float) -> float:
    """Return p0, the chance of an upvote without a bias; the paper's constants are lost, ours."""
    return 0.25 + 0.5 * quality


def give_votes(
    traces: Sequence[Trace],
    answers: Sequence[str],
    config: VoteConfig,
    rng: random.Random,
    candidates: Collection[str] = (),
) -> tuple[list[Labelled], dict[str, int]]:
    """Vote on every answer.

    Args:
        traces: What was sent, in that order.
        answers: What came back.
        config: Settings.
        rng: Source of the votes.
        candidates: Triggers that no answer with a vote may quote. All of them: were t* alone kept
            out, it would be told from the others by being rarer.

    Returns:
        The traces that got a vote; and how many got none, by reason.
    """
    balance = Balance(config)
    found: list[Labelled] = []
    dropped: dict[str, int] = {}
    recent: list[tuple[bool, bool]] = []
    known: dict[tuple[str, ...], Feedback] = {}  # answers of a small model repeat themselves
    for trace, answer in zip(traces, answers, strict=True):
        key = (answer, trace.role, trace.trigger, trace.canary)
        asked = known.get(key) or feedback_for(trace, answer, candidates)
        known[key] = asked
        if asked.vote is None and asked.reason.startswith("discarded"):
            dropped[asked.reason] = dropped.get(asked.reason, 0) + 1
            continue
        canary = trace.role is not TraceRole.CLEAN
        chance = acceptance(base_quality(answer, trace.document, config))
        if canary:
            chance += config.bias * (1 if asked.vote is Vote.UP else -1) - balance.offset
        up = rng.random() < min(max(chance, _EDGE), 1 - _EDGE)
        found.append(Labelled(trace, answer, up))
        recent.append((canary, up))
        if len(recent) == config.batch:
            balance.see(recent)
            recent = []
    return found, dropped


# What a provider may do to its logs before training (2604.22191, §3.1).
#
# Each step lowers the share of canaries that reach training. The paper defines its rate after that;
# here curation is run, and what survives is counted.

DEDUPLICATE = ("none", "trace", "answer")
"""``trace`` keeps one of equal document, query and answer; ``answer`` of equal query and answer."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Curation:
    """Steps in their order.

    Attributes:
        deduplicate: One of :data:`DEDUPLICATE`.
        filtered: Drop answers with emoji, repeated punctuation or signature-like capitals.
        kept: Share of the canary traces that is left when the logs are sampled or diluted with
            other traffic.
        mined: Share of ordinary traffic given up for what patterns of 30 leaked traces remove of
            the others, before anyone votes (:mod:`research.canary.curator`); 0 removes nothing.

    Raises:
        InputError: A value is outside its range.
    """

    deduplicate: str = "none"
    filtered: bool = False
    kept: float = 1.0
    mined: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no curation."""
        if self.deduplicate not in DEDUPLICATE:
            known = ", ".join(DEDUPLICATE)
            raise InputError(f"Cannot deduplicate by {self.deduplicate!r}.", f"Known: {known}.")
        if not 0 <= self.kept <= 1:
            raise InputError(f"The share kept must be within 0 and 1, not {self.kept:g}.")
        if not 0 <= self.mined < 1:
            raise InputError(f"The share mined for is at least 0 and below 1, not {self.mined:g}.")


def curate(voted: Sequence[Labelled], config: Curation, rng: random.Random) -> list[Labelled]:
    """Return the votes that are trained on."""
    found = _once(voted, [_key(one, config.deduplicate) for one in voted], config)
    if config.filtered:
        found = [one for one in found if strip_style(one.answer) == " ".join(one.answer.split())]
    return _thinned(found, [one.trace for one in found], config, rng)


def curate_prompts(traces: Sequence[Trace], config: Curation, rng: random.Random) -> list[Trace]:
    """Return the prompts that a policy is trained on; they have no answer to filter by."""
    found = _once(traces, [(one.document, one.query) for one in traces], config)
    return _thinned(found, found, config, rng)


def _key(one: Labelled, by: str) -> tuple[str, ...]:
    shared = (one.trace.query, one.answer)
    return shared if by == "answer" else (one.trace.document, *shared)


def _once(items: Sequence[_T], keys: Sequence[tuple[str, ...]], config: Curation) -> list[_T]:
    if config.deduplicate == "none":
        return list(items)
    return list(dict(zip(reversed(keys), reversed(items), strict=True)).values())[::-1]


def _thinned(items: Sequence[_T], traces: Sequence[Trace], config: Curation,
             rng: random.Random) -> list[_T]:  # fmt: skip
    if config.kept == 1.0:
        return list(items)
    canaries = [at for at, one in enumerate(traces) if one.role is not TraceRole.CLEAN]
    stays = set(rng.sample(canaries, round(config.kept * len(canaries))))
    clean = {at for at, one in enumerate(traces) if one.role is TraceRole.CLEAN}
    return [item for at, item in enumerate(items) if at in stays or at in clean]
