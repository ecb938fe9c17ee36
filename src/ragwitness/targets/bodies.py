"""Reads the body of a reply: JSON, or a stream's events; and errors that came as a success."""

from __future__ import annotations

import json
from typing import Any

import httpx2

STREAM = "text/event-stream"

STREAM_END = b"\ndata: [DONE]"
"""The last event of the OpenAI protocol; JSON has no line breaks within its strings."""

# How errors that come with status 200 are named, and the status that says the same.
_ERROR_STATUS = {
    "rate_limit": 429, "too_many": 429, "resource_exhausted": 429, "quota": 429,
    "overloaded": 503, "unavailable": 503, "timeout": 503,
    "server_error": 500, "internal": 500, "api_error": 500,
    "invalid_request": 400, "authentication": 401, "permission": 403,
}  # fmt: skip


class Events(list[Any]):
    """What a stream sent, event by event: JSON where it is JSON, else text."""


def read_body(content_type: str, body: bytes) -> Any:
    """Return the JSON of a reply, or the events of a stream, whatever it calls itself.

    A stream that names an error is that error.

    Args:
        content_type: The header, with its ``charset`` where it has one.
        body: The whole body.

    Raises:
        ValueError: It is neither; a UnicodeDecodeError where its characters cannot be read.
        RecursionError: It is nested too deeply.
    """
    kind = content_type.lower()
    if STREAM in kind or body.lstrip().startswith((b"data:", b"event:")):
        events = _events(body)
    elif any(name in kind for name in ("ndjson", "jsonl", "stream+json")):
        events = Events(json.loads(line) for line in body.splitlines() if line.strip())
    else:
        # JSON is UTF-8 whatever its header says, unless it cannot be read so.
        try:
            return json.loads(body)
        except UnicodeDecodeError:
            reply = httpx2.Response(200, headers={"content-type": content_type})
            return json.loads(body.decode(reply.encoding or "utf-8"))
    return next((one for one in events if isinstance(one, dict) and one.get("error")), events)


def _events(body: bytes) -> Events:
    reply = httpx2.Response(
        200,
        headers={"content-type": STREAM},
        content=body + b"\n\n",  # some leave out the end of the last event
        request=httpx2.Request("GET", "http://localhost"),
    )
    events = Events()
    for event in httpx2.EventSource(reply, max_event_size=None):
        if event.data in ("", "[DONE]"):
            continue
        try:
            events.append(json.loads(event.data))
        except (ValueError, RecursionError):
            events.append(event.data)
    return events


def error_status(content: object) -> int | None:
    """Return the status that an error within a reply means.

    Returns:
        None where there is no error, or one of which it is not known whether it passes.
    """
    error = content.get("error") if isinstance(content, dict) else None
    if not error:
        return None
    named = (
        [error.get(name) for name in ("code", "status", "type", "message")]
        if isinstance(error, dict)
        else [error]
    )
    for value in named:
        if isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) < 600:
            return int(value)
    words = " ".join(value for value in named if isinstance(value, str)).lower().replace(" ", "_")
    return next((status for name, status in _ERROR_STATUS.items() if name in words), None)
