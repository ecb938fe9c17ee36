"""Replies of the OpenAI protocol, whole and streamed."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ragwitness.types import Answer, TokenLogprob

__all__ = ["chat_reply", "chat_stream", "completion_reply", "completion_stream"]

Json: TypeAlias = dict[str, Any]

# The protocol's stand-in for minus infinity, which JSON cannot say.
_LEAST = -9999.0


def chat_reply(answer: Answer, model: str, top: int) -> Json:
    """Return the body of a chat completion.

    Args:
        answer: What the system said.
        model: The name it is served under.
        top: Alternatives to show per token.
    """
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text, "refusal": None},
        "logprobs": _chat_logprobs(answer.tokens, top),
        "finish_reason": answer.finish_reason,
    }
    return _envelope("chat.completion", "chatcmpl", model, [choice]) | {"usage": _usage(answer)}


def chat_stream(
    answer: Answer, model: str, top: int, *, usage: bool, more: Json | None = None
) -> Iterator[str]:
    """Yield the server-sent events of a chat completion, one per token.

    Args:
        answer: What the system said.
        model: The name it is served under.
        top: Alternatives to show per token.
        usage: Whether an event with the token counts follows.
        more: Fields of the first event beside the protocol's.
    """
    head = _envelope("chat.completion.chunk", "chatcmpl", model, [])

    def choices(delta: Json, logprobs: Json | None, finish: str | None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return head | {"choices": [choice]}

    first = choices({"role": "assistant", "content": ""}, None, None)
    yield _event(first | (more or {}))
    for piece, token in _pieces(answer):
        logprobs = None if token is None else _chat_logprobs([token], top)
        yield _event(choices({"content": piece}, logprobs, None))
    yield _event(choices({}, None, answer.finish_reason))
    yield from _end(head, answer, usage)


def completion_reply(answer: Answer, model: str, top: int | None) -> Json:
    """Return the body of a raw completion; ``answer.tokens`` include an echoed prompt.

    Args:
        answer: What the system said, the echoed prompt before it.
        model: The name it is served under.
        top: Alternatives to show per token; None shows no log-probabilities.
    """
    tokens = None if top is None else answer.tokens
    choice = {
        "index": 0,
        "text": answer.text,
        "logprobs": _completion_logprobs(tokens, top or 0, 0),
        "finish_reason": answer.finish_reason,
    }
    return _envelope("text_completion", "cmpl", model, [choice]) | {"usage": _usage(answer)}


def completion_stream(answer: Answer, model: str, top: int | None, *, usage: bool) -> Iterator[str]:
    """Yield the server-sent events of a raw completion, one per token."""
    head = _envelope("text_completion", "cmpl", model, [])

    def event(text: str, logprobs: Json | None, finish: str | None) -> str:
        choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
        return _event(head | {"choices": [choice]})

    at = 0
    for piece, token in _pieces(answer):
        shown = None if token is None or top is None else [token]
        yield event(piece, _completion_logprobs(shown, top or 0, at), None)
        at += len(piece)
    yield event("", None, answer.finish_reason)
    yield from _end(head, answer, usage)


def _pieces(answer: Answer) -> Iterator[tuple[str, TokenLogprob | None]]:
    """The text piece by piece: by token where the tokens join to it, else at once."""
    tokens = answer.tokens or ()
    if tokens and "".join(token.token for token in tokens) == answer.text:
        yield from ((token.token, token) for token in tokens)
        return
    # A generator that spells its tokens otherwise: the text first, then each one's numbers.
    yield answer.text, None
    yield from (("", token) for token in tokens)


def _end(head: Json, answer: Answer, usage: bool) -> Iterator[str]:
    if usage:
        yield _event(head | {"choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _event(body: Json) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False, allow_nan=False)}\n\n"


def _envelope(kind: str, prefix: str, model: str, choices: list[Json]) -> Json:
    return {
        "id": f"{prefix}-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "choices": choices,
    }


def _usage(answer: Answer) -> Json:
    read, written = answer.prompt_tokens or 0, answer.completion_tokens or 0
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


def _chat_logprobs(tokens: Sequence[TokenLogprob] | None, top: int) -> Json | None:
    if tokens is None:
        return None
    content = [
        _chat_token(token.token, token.logprob)
        | {"bytes": list(token.token.encode())}
        | {"top_logprobs": [_chat_token(*other) for other in token.top[:top]]}
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def _chat_token(token: str, logprob: float) -> Json:
    # In an alternative a replacement character stands for part of a character: its bytes are
    # not known here, and wrong ones would be worse than none. The tokens of the answer join to
    # it, so theirs are.
    data = None if "\ufffd" in token else list(token.encode())
    return {"token": token, "logprob": _number(logprob), "bytes": data}


def _completion_logprobs(tokens: Sequence[TokenLogprob] | None, top: int, at: int) -> Json | None:
    """Parallel lists over the tokens; offsets count characters of the returned text."""
    if tokens is None:
        return None
    offsets: list[int] = []
    for token in tokens:
        offsets.append(at)
        at += len(token.token)
    return {
        "tokens": [token.token for token in tokens],
        "token_logprobs": [_number(token.logprob) for token in tokens],
        "top_logprobs": [_alternatives(token, top) for token in tokens] if top else None,
        "text_offset": offsets,
    }


def _alternatives(token: TokenLogprob, top: int) -> Json | None:
    if math.isnan(token.logprob):
        return None
    shown: Json = {}
    for other, logprob in token.top[:top]:
        shown.setdefault(other, _number(logprob))  # parts of characters may look alike
    return shown


def _number(logprob: float) -> float | None:
    """A number JSON can say; None for the first token, which nothing precedes."""
    return None if math.isnan(logprob) else max(logprob, _LEAST)
