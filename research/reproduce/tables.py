"""Tables of papers as TOML, of every kind: where they are, and how one is read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ragwitness.errors import InputError


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


# Tables of a paper as TOML: which audits on which corpora, and what was published.


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a table.

    Attributes:
        label: Its name.
        corpus: File in the data folder.
        published: The table's rate by audit, where the paper prints it.
        rag: Settings of the system under audit.
        shadow: Settings of the shadow system, where they differ.
        shadow_corpus: File for the shadow system, or ``"generated"``; None takes the corpus.
        defense: Before the system under audit.
        options: Per audit: fields of its configuration.
        thresholds: Per audit: threshold of the decision; chosen on calibration documents if none.
    """

    label: str
    corpus: str
    published: Mapping[str, float] = field(default_factory=dict)
    rag: Mapping[str, Any] = field(default_factory=dict)
    shadow: Mapping[str, Any] = field(default_factory=dict)
    shadow_corpus: str | None = None
    defense: str = "none"
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """One table or study of a paper.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        audits: Registered names.
        control: Whether every audit also runs with retrieval switched off.
        rate: Which rate is shown: ``"auc"`` or ``"f1"``.
        cases: Its rows.
    """

    name: str
    title: str
    audits: tuple[str, ...]
    control: bool
    rate: Literal["auc", "f1"]
    cases: tuple[Case, ...]


def load_table(name: str, folder: Path) -> Table:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"mba/table2"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, or it is malformed.
    """
    data = read_table(name, folder)
    try:
        cases = [_case(row, data) for row in data["case"]]
        rate = data.get("rate", "auc")
        if rate not in ("auc", "f1"):
            raise TypeError(f"rate is auc or f1, not {rate!r}")
        control = data.get("control", True)
        return Table(name, data["title"], tuple(data["audits"]), control, rate, tuple(cases))
    except (KeyError, TypeError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _case(row: dict[str, Any], table: dict[str, Any]) -> Case:
    """A row, over what the table sets for all of them."""
    own = {key: value for key, value in row.items() if key != "set"}
    own["rag"] = table.get("rag", {}) | row.get("rag", {})
    own["options"] = table.get("set", {}) | row.get("set", {})
    return Case(**own)
