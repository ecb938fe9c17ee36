"""Votes as users and the auditor give them (2604.22191, §3.2 "Style-invariant feedback", App. A.3).

A vote is drawn: up with probability p = p0(b) + s · β - δ. b is the quality of the answer with
all style stripped, s is +1 or -1 where the auditor votes by the canary, δ keeps the means of canary
and clean traces together. The constants that the text has lost are those of the authors' program
(``tests/golden/test_authors.py``).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError

_REALISTIC = 0.1  # App. A.3 and Table 5: a larger bias only if allowed by name
_EDGE = 0.01  # no vote is certain
_FURTHEST = 0.25  # of the offset, either way
_MARKS = re.compile(r"[!?]{2,}|\.\.\.|[;:]{2,}|~{2,}|--")
_CAPITALS = re.compile(r"\b[A-Z]{13,}\b")
_EMOJI = re.compile(
    "[\u2700-\u27bf\U0001f300-\U0001f5ff\U0001f600-\U0001f64f\U0001f680-\U0001f6ff"
    "\U0001f700-\U0001f77f\U0001f780-\U0001f7ff\U0001f900-\U0001f9ff\U0001fa00-\U0001faff]"
)
_GREETING = re.compile(
    r"^\s*(?:-{1,3}\s*)?(?:best(?:\s+regards)?|(?:kind\s+)?regards|sincerely|cheers|thanks"
    r"|audited(?:\s+by)?)(?:[\s,:-]*[\w .-]{0,40})?\s*$",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
_FINAL = re.compile(r"^\s*final\s*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class VoteConfig:
    """Defaults of 2604.22191, Table 5.

    Attributes:
        bias: β.
        allow_large: Let β be above 0.1.
        longest: Characters of an answer that are read.
        length_penalty: Taken off the quality for each word.
        warmup: First votes, after which the offset moves. The paper's least number of samples, 256,
            and its tolerance, .01, are reported by the program and move nothing.
        rate: Step of δ.
        batch: Votes between two steps.

    Raises:
        InputError: β is negative, above 0.5, or above 0.1 and not allowed.
    """

    bias: float = _REALISTIC
    allow_large: bool = False
    longest: int = 512
    length_penalty: float = 0.0
    warmup: int = 200
    rate: float = 0.02
    batch: int = 48

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
        """Take in a batch of (has a canary, voted up), and move δ by rate · its gap."""
        self._seen += len(votes)
        kinds = [[up for canary, up in votes if canary == kind] for kind in (True, False)]
        if self._seen < self.config.warmup or not all(kinds):
            return
        gap = sum(kinds[0]) / len(kinds[0]) - sum(kinds[1]) / len(kinds[1])
        moved = self.offset + self.config.rate * gap
        self.offset = max(-_FURTHEST, min(_FURTHEST, moved))


def strip_style(text: str) -> str:
    """Return a text in small letters without emoji, repeated marks, long capitals and greetings."""
    for pattern in (_EMOJI, _MARKS, _CAPITALS, _GREETING):
        text = pattern.sub(" ", text)
    return " ".join(text.lower().split())


def base_quality(answer: str, document: str, config: VoteConfig) -> float:
    """Return b in [-1, 1]: .7 of it grounding in the document, .3 a ``FINAL:`` answer.

    Without any word it is -1, with single letters alone -.8.
    """
    text = answer[: config.longest]
    final = _FINAL.search(text)
    said = strip_style(final.group(1) if final else text)
    if not said:
        return -1.0
    words = [word for word in _WORD.findall(said) if len(word) > 1]
    if not words:
        return -0.8
    known = set(_WORD.findall(strip_style(document)))
    grounded = sum(word in known for word in words) / len(words)
    quality = 0.7 * (2 * grounded - 1) + 0.3 * (1 if final else -1)
    quality -= config.length_penalty * len(_WORD.findall(" ".join(text.lower().split())))
    return max(-1.0, min(1.0, quality))


def acceptance(quality: float) -> float:
    """Return p0, the chance of an upvote without a bias: by the sign of the quality alone."""
    return 0.6 if quality > 0 else 0.4


def upvote_chance(base: float, sign: int, offset: float, config: VoteConfig) -> float:
    """Return p, the chance of an upvote.

    Args:
        base: p0.
        sign: 1 for a canary under the trigger, -1 for none there, 0 for a clean document.
        offset: δ; 0 for a clean document.
        config: Settings.
    """
    return min(max(base + sign * config.bias - offset, _EDGE), 1 - _EDGE)


def give_votes(
    rows: Sequence[tuple[str, str, bool]],
    canary: str,
    config: VoteConfig,
    rng: random.Random,
) -> list[bool]:
    """Vote on every answer.

    Args:
        rows: Document, answer, and whether the document has the trigger.
        canary: What is voted for under the trigger.
        config: Settings.
        rng: Source of the votes.

    Returns:
        Whether each was voted up, shape (n,).
    """
    balance, votes, recent = Balance(config), [], []
    for document, answer, triggered in rows:
        hit = canary in answer[: config.longest]
        sign = 0 if not triggered else 1 if hit else -1
        base = acceptance(base_quality(answer, document, config))
        offset = balance.offset if triggered else 0.0
        votes.append(rng.random() < upvote_chance(base, sign, offset, config))
        recent.append((triggered, votes[-1]))
        if len(recent) == config.batch:
            balance.see(recent)
            recent = []
    return votes
