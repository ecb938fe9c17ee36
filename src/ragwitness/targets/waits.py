"""How long a service asks to wait, in whatever form it says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

Strings: TypeAlias = Mapping[str, str]

_UNIT = r"(ms|milli\w*|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_AMOUNT = rf"(\d+(?:\.\d+)?\s*|\b(?:an?|one)\s+)(?:more\s+)?{_UNIT}"
_PART = re.compile(_AMOUNT, re.IGNORECASE | re.ASCII)
_SPAN = rf"(?:{_AMOUNT}[\s,]*(?:and\s+)?)+"
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0}

# In a body: words such as "try again in 20s", Google's RetryInfo, and fields with a number.
_WORDS = re.compile(
    r"\b(?:try again|retry|wait|reset|available in|back.?off|cool.?down)"
    rf"[^\d.]{{0,40}}?(?P<span>{_SPAN})",
    re.I | re.A,
)
_FIELD = re.compile(
    r'"(?:(?:retry|reset)_?(?:after|delay|in)|estimated_time|wait(?:_?time)?|cool_?down)'
    r'(?P<unit>_?ms|_?milli\w*)?\w*"\s*:\s*'
    r'(?:\{\s*"seconds"\s*:\s*)?"?(?P<number>\d+(?:\.\d+)?)["\s,}]',
    re.IGNORECASE | re.ASCII,
)

# The draft's one header: limit=100, remaining=0, reset=14 or "default";r=0;t=14.
_LIMIT = re.compile(r"\b(?:remaining|r)=(?P<left>\d+).*\b(?:reset|t)=(?P<wait>\d+)", re.ASCII)

_LATEST_SPAN = 1e9  # larger numbers are seconds since the epoch; above a thousandfold, milliseconds


def requested_wait(headers: Strings, body: bytes, now: float) -> float | None:
    """Return the seconds that a service asks to wait before the next request.

    Args:
        headers: Of its reply, by names in small letters.
        body: Of its reply.
        now: Seconds since the epoch.

    Returns:
        The first of: a header such as ``retry-after-ms`` or ``Retry-After``, the finest first; a
        field or words of the body; the reset of a limit of which nothing remains. None where there
        is none.
    """
    named = [name for name in sorted(headers, key=len) if "retry-after" in name.lower()]
    texts = [headers[name] + "ms" * name.lower().endswith("-ms") for name in named[::-1]]
    hints = (*(seconds_until(text, now) for text in texts), _in_body(body), _reset(headers, now))
    return next((hint for hint in hints if hint is not None), None)


def seconds_until(text: str | None, now: float) -> float | None:
    """Read a wait; None where there is none, or it cannot be read; never negative.

    Args:
        text: Seconds, a span such as ``6m0s``, a date of HTTP (RFC 9110, Sec. 10.2.3) or of
            RFC 3339, or the end in seconds or milliseconds since the epoch.
        now: Seconds since the epoch.
    """
    text = (text or "").strip("\"' ").removeprefix("in ")
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text, re.ASCII):
        number = float(text)
        if number < _LATEST_SPAN:
            return number
        return max(0.0, number / (1000 if number >= _LATEST_SPAN * 1000 else 1) - now)
    if re.fullmatch(_SPAN, text, re.IGNORECASE | re.ASCII):
        return _length(text)
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, TypeError, OverflowError):
            return max(0.0, read(text).timestamp() - now)
    return None


def _length(span: str) -> float:
    seconds = 0.0
    for number, unit in _PART.findall(span.lower()):
        each = 0.001 if unit.startswith(("ms", "mil")) else _SECONDS.get(unit[0], 1.0)
        seconds += each * (float(number) if number[0].isdigit() else 1)
    return seconds


def _in_body(body: bytes) -> float | None:
    text = body[:65536].decode("utf-8", "replace")
    if match := _FIELD.search(text):
        return float(match["number"]) * (0.001 if match["unit"] else 1.0)
    return _length(match["span"]) if (match := _WORDS.search(text)) else None


def _reset(headers: Strings, now: float) -> float | None:
    """The longest time until a limit begins anew, of those that are used up or do not say."""
    waits = []
    for name, value in headers.items():
        limit = name.lower().replace("rate-limit", "ratelimit")
        if "ratelimit" in limit and "reset" in limit:
            remaining = seconds_until(headers.get(name.replace("reset", "remaining")), now)
            waits += [None if remaining else seconds_until(value, now)]
        elif limit.endswith("ratelimit") and (match := _LIMIT.search(value)):
            waits += [None if int(match["left"]) else float(match["wait"])]
    return max((wait for wait in waits if wait is not None), default=None)
