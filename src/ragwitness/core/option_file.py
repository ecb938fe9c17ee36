"""A file of options (TOML), as ``--config`` of every verb reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ragwitness.core.files import replace_file


def write_options(path: Path, options: Mapping[str, object], made_by: str) -> None:
    """Write options; those that are None are left out.

    Args:
        path: The file.
        options: By the option's name without dashes: a text, a number, true or false.
        made_by: What stands in its first line.

    Raises:
        InputError: It cannot be written.
    """
    rows = (f"{name} = {_value(one)}" for name, one in options.items() if one is not None)
    replace_file(path, "\n".join((f"# Made by: {made_by}", *rows)) + "\n")


def _value(one: object) -> str:
    # TOML's strings are JSON's, but for halves of surrogate pairs and for DEL.
    return json.dumps(one, ensure_ascii=False).replace("\x7f", "\\u007f")
