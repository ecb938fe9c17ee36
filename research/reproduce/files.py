"""What ``ragwitness lab reproduce`` leaves of every table: Markdown, JSON, and a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragwitness.cli.common import console
from ragwitness.core.files import replace_file


def leave_table(
    folder: Path,
    text: str,
    data: Mapping[str, Any],
    figure: str | None = None,
    pages: Sequence[str] = (),
    *,
    said: bool = True,
) -> None:
    """Write a table, print it, and say where it is.

    Args:
        folder: Where the table goes.
        text: Markdown.
        data: The same and more, for programs.
        figure: SVG; None where there is none.
        pages: Names of further files that lie there already.
        said: Print it too; a table that is not whole yet is only written.
    """
    told = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = {"table.md": text, "table.svg": figure, "table.json": told}
    kept = {name: content for name, content in files.items() if content is not None}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in kept.items():
        replace_file(folder / name, content)
    if not said:
        return
    screen = console()
    screen.print(text, markup=False, soft_wrap=True)
    screen.print(f"written: {folder}/{', '.join([*kept, *pages])}", markup=False)
