"""Quotes what others said, on one line and without secrets.

Keys end up in the error messages of libraries and in the replies of services; from there they
would reach journals and reports.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ragwitness.core.errors import InputError

HIDDEN = "[key]"
"""Stands where a secret stood."""

_KEY_LIKE = re.compile(r"\b(?:sk|pk|key)-[\w*-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|authorization", re.IGNORECASE)
_LONGEST = 240
_INVISIBLE = {"Cf", "Cc", "Mn", "Me"}  # a key is found between them

# Shorter values (a number, a flag) occur in many harmless texts.
_SHORTEST_SECRET = 6


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets; values below 6 characters are kept."""
    return hide_across([text], secrets)[0]


def hide_across(parts: Sequence[str], secrets: Iterable[str]) -> list[str]:
    """Return the parts of a text, such as tokens, without the secrets that it holds as a whole."""
    text = "".join(parts)
    plain, origins = _canonical(text)
    keys = [key for secret in secrets if len(key := _canonical(secret)[0]) >= _SHORTEST_SECRET]
    present = [key for key in keys if key in plain]
    if not present:
        return list(parts)
    chars, longest = list(text), sorted(map(re.escape, present), key=len, reverse=True)
    for match in re.finditer("|".join(longest), plain):
        start, end = origins[match.start()], origins[match.end() - 1] + 1
        chars[start:end] = [HIDDEN, *[""] * (end - start - 1)]
    ends = accumulate(map(len, parts), initial=0)
    return ["".join(chars[start:end]) for start, end in pairwise(ends)]


def _canonical(text: str) -> tuple[str, Sequence[int]]:
    """Return a text without invisible signs, in its plainest form, and where each letter stood."""
    if text.isascii():
        return text, range(len(text))
    pairs = [
        (letter, at)
        for at, char in enumerate(text)
        if unicodedata.category(char) not in _INVISIBLE
        for letter in unicodedata.normalize("NFKC", char)
    ]
    return "".join(letter for letter, _ in pairs), [at for _, at in pairs]


def _hide_tokens(entries: list[Any], secrets: Sequence[str]) -> list[Any]:
    """Hide secrets that entries of a list spell together, and the fields beside their parts."""
    hidden = list(entries)
    for name in {None, *(name for entry in entries if isinstance(entry, dict) for name in entry)}:
        texts = (entry.get(name) if isinstance(entry, dict) else entry for entry in entries)
        pieces = [text if isinstance(text, str) else "" for text in texts]
        for at, new in enumerate(hide_across(pieces, secrets)):
            if new != pieces[at] and new != hide(pieces[at], secrets):
                fields = hidden[at].items() if isinstance(hidden[at], dict) else ()
                plain = {key: entry for key, entry in fields if not isinstance(entry, list | dict)}
                hidden[at] = plain | {name: new} if fields else new
    return hidden


def hide_in(value: object, secrets: Sequence[str]) -> object:
    """Return parsed JSON without these secrets, in keys and values, at any depth.

    Tokens that spell one together are hidden with their alternatives.

    Raises:
        RecursionError: It is nested too deeply.
    """
    if not secrets:
        return value
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, list):
        return [hide_in(entry, secrets) for entry in _hide_tokens(value, secrets)]
    if isinstance(value, dict):
        tokens, tops = value.get("tokens"), value.get("top_logprobs")
        if isinstance(tokens, list) and isinstance(tops, list) and len(tokens) == len(tops):
            rows = zip(tokens, _hide_tokens(tokens, secrets), tops, strict=True)
            value = value | {"top_logprobs": [top if a is b else None for a, b, top in rows]}
        return {hide(key, secrets): hide_in(entry, secrets) for key, entry in value.items()}
    return value


def quote(text: str, secrets: Iterable[str] = (), longest: int = _LONGEST) -> str:
    """Return a text on one line, shortened, without the secrets and without what looks like one.

    Args:
        text: The text to quote.
        secrets: Values that must not be shown.
        longest: Characters that are kept at most.
    """
    text = " ".join(hide(text, secrets).split())
    text = _KEY_LIKE.sub(HIDDEN, "".join(char for char in text if char.isprintable()))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def shown(text: str) -> str:
    """Return a text on one line, with a space for every sign of control."""
    return "".join(char if char.isprintable() else " " for char in text)


def quote_error(error: BaseException) -> str:
    """Return an exception's type and message, without any secret of the environment."""
    try:
        message = quote(str(error), environment_secrets()).rstrip(".")
    except Exception:  # its own __str__ may fail
        message = ""
    kind = type(error).__name__
    return f"{kind}: {message}" if message else kind


def environment_secrets(shortest: int = _SHORTEST_SECRET) -> tuple[str, ...]:
    """Return the values of all environment variables that are named like a secret.

    Args:
        shortest: Characters that a value has at least.
    """
    named = (value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name))
    return tuple(value for value in named if len(value) >= shortest)


_IN_ADDRESS = re.compile(
    r"://[^/?#\s]*@|[?&;][^=&#\s]*(key|token|secret|passw|credential|auth)[^=&#\s]*=", re.IGNORECASE
)


def refuse_secrets(target: str) -> None:
    """Refuse an address that holds a key, or a text like one, without repeating it."""
    masked = quote(target, environment_secrets(), longest=len(target))
    if HIDDEN in masked or _IN_ADDRESS.search(target):
        raise InputError(
            "The target's address holds what looks like a key, which no seal may hold.",
            "Put it into an environment variable; docs/targets.md says which for each target.",
        )
