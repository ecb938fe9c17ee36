"""Every verb of the command line with its words, found by walking it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ragwitness.cli.main import app


def groups(at: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every group, the top one first, by its words."""
    at = typer.main.get_command(app) if at is None else at
    yield " ".join(words), at
    for name in at.list_commands(None):
        if hasattr(under := at.get_command(None, name), "list_commands"):
            yield from groups(under, (*words, name))


def verbs() -> Iterator[tuple[str, Any]]:
    """Yield every verb by its words."""
    for words, group in groups():
        for name in group.list_commands(None):
            if not hasattr(command := group.get_command(None, name), "list_commands"):
                yield f"{words} {name}".strip(), command
