"""Raw texts scored and continued, as the completions protocol tells it."""

from __future__ import annotations

import math

from ragwitness.models.base import TextScores
from ragwitness.rag.pipeline import RagSystem
from ragwitness.types import Answer, Query, TokenLogprob

__all__ = ["completed", "echo_tokens"]


def completed(
    system: RagSystem, query: Query, stop: tuple[str, ...] = (), *, echo: bool = False
) -> Answer:
    """Continue a raw text; with ``echo`` the text and its tokens come first.

    Raises:
        QueryTooLongError: It does not fit even without any passage.
        ModelError: The generator failed.
    """
    wanted = echo and query.top_logprobs > 0
    result = system.complete(query, scored=wanted, stop=stop)
    text, tokens = (query.prompt, echo_tokens(query.prompt, result.scores)) if echo else ("", ())
    made = result.generation
    read = system.generator.count_tokens(query.prompt)
    if made is None:
        return Answer(text, tokens, "length", read, 0)
    return Answer(
        text + made.text,
        (*tokens, *made.tokens),
        made.finish_reason,
        read,
        made.completion_tokens,
    )


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
