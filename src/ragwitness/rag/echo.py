"""The tokens of a scored text, as the completions protocol tells them."""

from __future__ import annotations

import math

from ragwitness.models.base import TextScores
from ragwitness.types import TokenLogprob

__all__ = ["echo_tokens"]


def echo_tokens(text: str, scores: TextScores | None) -> tuple[TokenLogprob, ...]:
    """Return one entry per token, the first without a log-probability (NaN).

    Each token is the slice of the text from its first character to the next token's, so
    that they join to the text.
    """
    if scores is None or not len(scores.ids):
        return ()
    starts = [0, *(int(start) for start in scores.offsets[1:, 0]), len(text)]
    tokens = [
        TokenLogprob(
            text[starts[i] : starts[i + 1]],
            float(scores.logprobs[i]),
            scores.tokens[i].top if scores.tokens else (),
        )
        for i in range(len(scores.ids))
    ]
    tokens[0] = TokenLogprob(tokens[0].token, math.nan)
    return tuple(tokens)
