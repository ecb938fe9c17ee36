"""Places for values in parsed JSON, headers and URLs: ``{prompt}``, ``{env:NAME}``, ``{{word}}``.

Values are put into the strings of a parsed structure, never into its source text, and what they
hold is not read again: a prompt full of quotes and braces stays a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

__all__ = ["ENV", "fill", "fill_text", "places"]

ENV = "env:"
"""Begins the name of a place that an environment variable fills."""

_PLACE = re.compile(r"\{\{(?P<literal>[\w:]+)\}\}|\{(?P<name>(?:env:)?[A-Za-z_]\w*)\}")


def places(value: object) -> Iterator[str]:
    """Yield the names of all places in the strings of a JSON value; keys have none."""
    if isinstance(value, str):
        yield from (found["name"] for found in _PLACE.finditer(value) if found["name"])
    elif isinstance(value, list):
        for entry in value:
            yield from places(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from places(entry)


def fill(value: object, values: Mapping[str, object]) -> object:
    """Return a JSON value with its places filled; a string that is one place takes the type.

    Raises:
        KeyError: A place has no value.
    """
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole is not None and whole["name"]:
            return values[whole["name"]]
        return fill_text(value, values)
    if isinstance(value, list):
        return [fill(entry, values) for entry in value]
    if isinstance(value, dict):
        return {key: fill(entry, values) for key, entry in value.items()}
    return value


def fill_text(text: str, values: Mapping[str, object], escape: Callable[[str], str] = str) -> str:
    """Return a text with its places filled.

    Args:
        text: With places.
        values: By name of the place.
        escape: Makes a value fit for where it stands, e.g. in a URL.

    Raises:
        KeyError: A place has no value.
    """

    def put(found: re.Match[str]) -> str:
        if found["literal"]:
            return f"{{{found['literal']}}}"
        return escape(str(values[found["name"]]))

    return _PLACE.sub(put, text)
