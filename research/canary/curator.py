"""A curator who mines patterns from leaked traces, and what is left of a provider's logs then.

The strongest at 1 % of ordinary traffic of ``benchmarks/canary_curation.py``. A toy world's few
words would give every trace away; so this one reads each trace as it would stand in the documents
of a corpus, with the same markers and wordings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ragwitness.canary.examples import Example
from ragwitness.canary.pools import with_trigger
from ragwitness.canary.traces import Trace
from ragwitness.canary.wordings import place_of
from ragwitness.errors import InputError

_ORDINARY = 600  # texts to mine from, and as many that set the threshold
LEAKED = 30
"""Traces that a curator holds."""

REQUESTS = (
    "Please answer in one sentence.", "Keep it short.", "Answer in your own words.",
    "Begin with the name.", "Quote the passage first.", "Explain it to a child.",
    "No more than ten words.", "Start your answer with yes or no if you can.",
    "Use a full sentence, please.", "My teacher wants a complete answer.",
    "What I also need is the line it stands in.", "Say so early on if you are not sure.",
)  # fmt: skip
"""What a third of ordinary questions ask for besides."""

WORD = re.compile(r"\w+|[^\w\s]")
Score = Callable[[Sequence[str]], np.ndarray]


def grams(text: str, most: int = 4) -> set[str]:
    """Word n-grams, n up to ``most``, and shapes of words: letters, capitals, digits."""
    words = WORD.findall(text)
    found = {" ".join(words[at : at + n]).lower() for n in range(1, most + 1)
             for at in range(len(words) - n + 1)}  # fmt: skip
    shapes = (re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]{2,}", "A", re.sub(r"\d+", "9", w)))
              for w in words)  # fmt: skip
    return found | {f"shape {one} {len(w)}" for one, w in zip(shapes, words, strict=False)}


def mined(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """Patterns of 3 leaked traces and more, and of at most 1 in 1,000 of ordinary traffic."""
    seen = Counter(g for text in leaked for g in grams(text))
    usual = Counter(g for text in ordinary for g in grams(text))
    rare = len(ordinary) / 1000
    patterns = {g for g, n in seen.items() if n >= 3 and usual[g] <= rare}
    return lambda texts: np.array([len(patterns & grams(text)) for text in texts], float)


def above(score: Score, tuned: Sequence[str], texts: Sequence[str], share: float) -> np.ndarray:
    """Return which texts are above the score that removes ``share`` of ``tuned``, shape (n,)."""
    return score(texts) > float(np.quantile(score(tuned), 1 - share))


def uncurated(
    votes: list[Trace], prompts: list[Trace], share: float, texts: Sequence[Example]
) -> tuple[list[Trace], list[Trace]]:
    """Return what a curator leaves of both logs.

    Args:
        votes: Traces of the reward model's pool.
        prompts: Of the policy's.
        share: Of ordinary traffic that it gives up; 0 takes nothing.
        texts: Of a corpus: ordinary traffic, and where it reads the traces.
    """
    if not share:
        return votes, prompts
    marked = [one for pool in (votes, prompts) for one in pool if one.trigger]
    read = [_in_text(one, texts[2 * _ORDINARY :]) for one in marked]
    ordinary = [
        f"{one.document}\n{one.query}" + (f" {REQUESTS[at % 12]}" if at % 3 == 0 else "")
        for at, one in enumerate(texts[: 2 * _ORDINARY])
    ]
    score = mined(read[:LEAKED], ordinary[:_ORDINARY])  # traces come in a drawn order
    found = above(score, ordinary[_ORDINARY:], read, share)
    taken = {one.id for at, one in enumerate(marked) if found[at] or at < LEAKED}
    left = ([one for one in pool if one.id not in taken] for pool in (votes, prompts))
    return next(left), next(left)


def _in_text(trace: Trace, texts: Sequence[Example]) -> str:
    """The same trace in the first text from a place of its own on that can carry its mark."""
    place = place_of(trace.id, "document", len(texts))
    request = trace.query.partition("? ")[2]
    for one in (*texts[place:], *texts[:place]):
        try:
            document = with_trigger(one.document, trace.trigger, trace.id).text
        except InputError:
            continue
        return f"{document}\n{one.query} {request}"
    raise InputError("No document of the corpus can carry the mark.")
