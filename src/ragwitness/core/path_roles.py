"""The paths that the value of an option names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import quote, unquote

from ragwitness.core.options import PathRole

_FILE_SCHEMES = re.compile(r"((?:lab|replay|http|gguf)[:/](?!//))([^?]+)", re.IGNORECASE)


MODEL_ADDRESS = re.compile(r"(hf[:/])([^?#]+)", re.IGNORECASE)


_TEMPLATE = re.compile(r"(?<=[?&]template=)[^&]+")


_WORDS_OF_TEXT = 8


def map_paths(role: PathRole, value: str, change: Callable[[str], str]) -> str:
    """Return a value, as it was written, with every path in it changed."""
    if role is PathRole.DOCUMENTS:
        moved = change(value)
        return value if is_pasted(value, moved) else moved
    if role is PathRole.PAIRS:
        name, equals, path = value.partition("=")
        return f"{name}={change(path)}" if equals and path else value
    if role is PathRole.ADDRESS:
        return _map_address(value, change)
    return value if "://" in value else change(value)  # the address of a database has no path


def is_pasted(value: str, path: str) -> bool:
    """Whether a value for documents is standard input or the text itself, not a path."""
    return value == "-" or (len(value.split()) >= _WORDS_OF_TEXT and not os.path.exists(path))


def _map_address(value: str, change: Callable[[str], str]) -> str:
    text = value.strip()
    if "://" not in text and text.endswith(".toml") and not _FILE_SCHEMES.match(text):
        return change(value)  # a template or a domain
    # An address has its file before the question mark; options after it may name more.
    whole = _FILE_SCHEMES.match(text)
    if whole is None:
        return value
    text = whole[1] + change(whole[2]) + text[whole.end() :]

    def changed(found: re.Match[str]) -> str:
        path = unquote(found[0])
        # A template of ours goes by its name, one of the user's by its file.
        moved = change(path) if path.endswith(".toml") else path
        return found[0] if moved == path else quote(moved)

    return _TEMPLATE.sub(changed, text)
