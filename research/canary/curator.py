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
