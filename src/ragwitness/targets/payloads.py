"""Requests of the OpenAI protocol; pure functions."""

from __future__ import annotations

from ragwitness.types import Query

__all__ = ["chat_payload", "completion_payload", "echo_payload", "prompt_scores_payload"]


def chat_payload(model: str, query: Query, limit_name: str) -> dict[str, object]:
    """Return the body for ``/chat/completions``.

    Args:
        model: The model asked.
        query: The question.
        limit_name: What the endpoint calls the limit of generated tokens.
    """
    payload: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": query.prompt}],
        limit_name: query.max_tokens,
        "temperature": query.temperature,
    }
    if query.top_logprobs:
        payload |= {"logprobs": True, "top_logprobs": query.top_logprobs}
    return _seeded(payload, query)


def completion_payload(model: str, query: Query) -> dict[str, object]:
    """Return the body for ``/completions``: the prompt as it is, without a conversation."""
    payload: dict[str, object] = {
        "model": model,
        "prompt": query.prompt,
        "max_tokens": query.max_tokens,
        "temperature": query.temperature,
    }
    if query.top_logprobs:
        payload["logprobs"] = query.top_logprobs
    return _seeded(payload, query)


def echo_payload(model: str, text: str, top: int) -> dict[str, object]:
    """Return the body for ``/completions`` that scores a text by repeating it."""
    # Not 0 tokens: some servers refuse that, and llama.cpp's then writes without a limit.
    return {
        "model": model,
        "prompt": text,
        "max_tokens": 1,
        "echo": True,
        "logprobs": top,
        "temperature": 0,
    }


def prompt_scores_payload(model: str, text: str, top: int) -> dict[str, object]:
    """Return the body for ``/completions`` that scores a text by vLLM's ``prompt_logprobs``."""
    # Streaming would drop the field, and no token at all is refused.
    return {
        "model": model,
        "prompt": text,
        "max_tokens": 1,
        "prompt_logprobs": top,
        "temperature": 0,
    }


def _seeded(payload: dict[str, object], query: Query) -> dict[str, object]:
    return payload if query.seed is None else payload | {"seed": query.seed}
