"""Synthetic documents: near-duplicates filled from patterns, word lists and inventions."""

from __future__ import annotations

import random
import re

from .domain import Domain
from .phrases import PHRASES
from .prose import PROSE
from .records import RECORDS
from .values import Values, invented

__all__ = ["DOMAINS", "cluster", "invented"]

DOMAINS: dict[str, Domain] = {**RECORDS, **PROSE}
_SLOT = re.compile(r"\{(\w+)\}")
_Plan = tuple[str, str, list[str], list[str]]


def _fill(pattern: str, values: Values, fixed: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot in PHRASES:
            return values.rng.choice(PHRASES[slot])
        if slot in fixed and values.rng.random() < 0.6:
            return fixed[slot]
        return values.makers[slot]()

    return _SLOT.sub(value, pattern)


def _plan(domain: Domain, rng: random.Random, words: int) -> _Plan:
    """Choose sentence patterns for a document of about ``words`` words (13 to a pattern)."""
    sentences = max(2, round(words / 13))
    opening_count = max(1, min(sentences - 1, round(sentences * rng.uniform(0.2, 0.6))))
    first = [rng.choice(domain.first) for _ in range(opening_count)]
    second = [rng.choice(domain.second) for _ in range(sentences - opening_count)]
    if opening_count <= len(domain.first):
        first = rng.sample(domain.first, opening_count)
    if sentences - opening_count <= len(domain.second):
        second = rng.sample(domain.second, sentences - opening_count)
    return rng.choice(domain.openings), rng.choice(domain.middles), first, second


def _realise(plan: _Plan, rng: random.Random) -> list[str]:
    values = Values(rng)
    fixed = {"first": values.first(), "last": values.last()}
    opening, middle, first, second = plan
    pieces = [opening, " ".join(first), " ", middle, " ".join(second)]
    return "".join(_fill(piece, values, fixed) for piece in pieces).split()


def cluster(name: str, rng: random.Random, count: int, words: int) -> list[list[str]]:
    """``count`` near-duplicate documents of about ``words`` words each, as word lists.

    They share most patterns and differ in their values; 60% also swap some patterns, so that a
    distractor can be either a sibling or a cousin of the target.
    """
    domain = DOMAINS[name]
    shared = _plan(domain, rng, words)
    documents = []
    for _ in range(count):
        opening, middle, first, second = shared[0], shared[1], list(shared[2]), list(shared[3])
        if rng.random() < 0.6:
            for patterns, choices in ((first, domain.first), (second, domain.second)):
                for index in range(len(patterns)):
                    if rng.random() < 0.35:
                        patterns[index] = rng.choice(choices)
        documents.append(_realise((opening, middle, first, second), rng))
    return documents
