"""Tables of this package: what texts are written with, as TOML files beside the code."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """Return a table of this package."""
    return tomllib.loads(files("ragwitness.text").joinpath(name).read_text(encoding="utf-8"))


def expression(source: str, table: dict[str, Any]) -> re.Pattern[str]:
    """Return a regular expression of a table, whose names in capitals stand for expressions."""
    for name, part in table["expressions"].items():
        source = source.replace(name, part)
    return re.compile(source)
