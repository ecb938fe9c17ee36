"""The fixed sentences of the reports, by kind of result, from ``prose.toml``."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Any


@functools.cache
def prose(kind: str) -> dict[str, Any]:
    """Return the sentences of a kind of result; words in braces are filled in by the report."""
    text = files("ragwitness.membership.results").joinpath("prose.toml").read_text("utf-8")
    sentences: dict[str, Any] = tomllib.loads(text)[kind]
    return sentences
