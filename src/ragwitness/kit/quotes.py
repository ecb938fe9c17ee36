"""Quotes what others said, on one line and without secrets.

Keys end up in the error messages of libraries and in the replies of services; from there they
would reach journals and reports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

HIDDEN = "[key]"
"""Stands where a secret stood."""

_KEY_LIKE = re.compile(r"\b(?:sk|pk|key)-[\w*-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|authorization", re.IGNORECASE)
_LONGEST = 240
_WORD = re.compile(r"\w+")

# Shorter values (a number, a flag) stand in many harmless texts.
_SHORTEST_SECRET = 6


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets; values below 6 characters are kept."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


def hide_in(value: object, secrets: Sequence[str]) -> object:
    """Return parsed JSON without these secrets, in keys and values, at any depth.

    Raises:
        RecursionError: It is nested too deeply.
    """
    if not secrets:
        return value
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, list):
        return [hide_in(entry, secrets) for entry in value]
    if isinstance(value, dict):
        return {hide(key, secrets): hide_in(entry, secrets) for key, entry in value.items()}
    return value


def quote(text: str, secrets: Iterable[str] = (), longest: int = _LONGEST) -> str:
    """Return a text on one line, shortened, without the secrets and without what looks like one.

    Args:
        text: What somebody said.
        secrets: Values that must not be shown.
        longest: Characters that are kept at most.
    """
    text = _KEY_LIKE.sub(HIDDEN, " ".join(hide(text, secrets).split()))
    text = "".join(char for char in text if char.isprintable())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def unquoted(message: str, sent: str) -> str:
    """Return what a server said, cut where it begins to repeat what it was sent.

    Args:
        message: Of an error.
        sent: A prompt that may hold a private record.
    """
    begun = [match.group().lower() for match in _WORD.finditer(sent)]
    known = set(zip(begun, begun[1:], begun[2:], strict=False))
    said = list(_WORD.finditer(message))
    for place in range(len(said) - 2):
        first, second, third = (match.group().lower() for match in said[place : place + 3])
        if (first, second, third) in known:
            return f"{message[: said[place].start()].rstrip()} [what was sent]"
    return message


def quote_error(error: BaseException) -> str:
    """Return an exception's type and message, without any secret of the environment."""
    try:
        said = quote(str(error), environment_secrets()).rstrip(".")
    except Exception:  # its own __str__ may fail
        said = ""
    kind = type(error).__name__
    return f"{kind}: {said}" if said else kind


def environment_secrets(shortest: int = _SHORTEST_SECRET) -> tuple[str, ...]:
    """Return the values of all environment variables that are named like a secret.

    Args:
        shortest: Characters that a value has at least.
    """
    named = (value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name))
    return tuple(value for value in named if len(value) >= shortest)
