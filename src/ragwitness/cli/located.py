"""Paths in a configuration file: relative to the file, wherever the command is issued."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

__all__ = ["locate"]

Value = TypeVar("Value")

_SOURCES = frozenset({"documents", "known_out", "known_in", "auxiliary", "corpus", "background"})
"""Parameters that take a file of documents, or a pasted text."""
_FILE_SCHEMES = re.compile(r"((?:lab|replay|http)[:/](?!//))([^?]+)", re.IGNORECASE)
_HF = re.compile(r"hf[:/]", re.IGNORECASE)
_OPTION = re.compile(r"(?<=[?&])((?:corpus|template)=)([^&]+)")
# As for --documents: fewer words are a path, mistyped perhaps.
_WORDS_OF_TEXT = 8


def locate(name: str, value: Value, folder: Path, *, is_path: bool) -> Value | str:
    """Return a value with the files it names as seen from the current folder.

    Args:
        name: The parameter.
        value: As the file has it.
        folder: Of the file.
        is_path: Whether the parameter is a path and nothing else.
    """
    if not isinstance(value, str):
        return value

    def join(path: str) -> str:
        return os.path.join("" if folder == Path() else folder, os.path.expanduser(path))

    if is_path:
        return join(value)
    if name in _SOURCES:
        return value if value == "-" or _is_text(value, join) else join(value)
    if name == "template":
        return _template(value, join)
    if name == "domain":
        return join(value) if value.endswith(".toml") else value
    return _address(value, join) if name in ("target", "model") else value


def _is_text(value: str, join: Callable[[str], str]) -> bool:
    return len(value.split()) >= _WORDS_OF_TEXT and not os.path.exists(join(value))


def _template(value: str, join: Callable[[str], str]) -> str:
    return join(value) if value.endswith(".toml") else value


def _address(value: str, join: Callable[[str], str]) -> str:
    """Join the files in a target's address."""
    text, whole = value.strip(), _FILE_SCHEMES.match(value.strip())
    if whole is None and not _HF.match(text):
        return value
    if whole is not None:
        text = whole[1] + join(whole[2]) + text[whole.end() :]

    def joined(found: re.Match[str]) -> str:
        named, path = found[1], unquote(found[2])
        moved = join(path) if named == "corpus=" else _template(path, join)
        return found[0] if moved == path else named + quote(moved)

    return _OPTION.sub(joined, text)
