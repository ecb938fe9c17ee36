"""Tables of papers as TOML, of every kind: where they are, and how one is read."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError

__all__ = ["known_tables", "read_table", "table_kind"]


def known_tables(folder: Path) -> list[str]:
    """Return the names of all tables below ``folder``.

    Raises:
        InputError: There are none.
    """
    found = _names(folder)
    if not found:
        raise InputError(
            f"There are no tables below {folder}.",
            "They are in the repository, not in the wheel: run there, or name its folder"
            " experiments with --tables.",
        )
    return found


def read_table(name: str, folder: Path) -> dict[str, Any]:
    """Return a table as it is written.

    Args:
        name: ``paper/table``, e.g. ``"mba/table2"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, or its file cannot be read.
    """
    paper, _, key = name.partition("/")
    path = folder / paper / "tables.toml"
    if not path.is_file() or key not in (tables := _read(path)):
        known = ", ".join(_names(folder)) or f"none below {folder}"
        raise InputError(
            f"There is no table {name!r}.",
            f"Known: {known}. The tables are in the repository, not in the wheel.",
        )
    data: dict[str, Any] = tables[key]
    return data


def table_kind(name: str, folder: Path) -> str:
    """Return who runs a table: the word that it gives as its kind; empty for audits.

    Raises:
        InputError: There is no such table, or its file cannot be read.
    """
    return str(read_table(name, folder).get("kind", ""))


def _names(folder: Path) -> list[str]:
    return [
        f"{path.parent.name}/{name}"
        for path in sorted(folder.glob("*/tables.toml"))
        for name in _read(path)
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
