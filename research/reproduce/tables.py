"""Tables of papers as TOML, of every kind: where they are, and how one is read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError


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

RATES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "tpr_at_1_fpr": "TPR at 1 % FPR",
    "recall_at_k": "recall of retrieval",
}
"""The columns of a table: field of the measured audit, and its name for people."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a table.

    Attributes:
        label: Its name.
        corpus: File in the data folder.
        published: What the paper prints, by audit and rate (see :data:`RATES`).
        rag: Settings of the system under audit.
        shadow: Settings of the shadow system, where they differ.
        shadow_corpus: File for the shadow system, or ``"generated"``; None takes the corpus.
        defense: Before the system under audit.
        options: Per audit: fields of its configuration.
        thresholds: Per audit: threshold of the decision; the method's own, or chosen on calibration
            documents, if none.
        by_model: The defense asks the language model that is named with the command; without one
            the case is left out.
    """

    label: str
    corpus: str
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rag: Mapping[str, Any] = field(default_factory=dict)
    shadow: Mapping[str, Any] = field(default_factory=dict)
    shadow_corpus: str | None = None
    defense: str = "none"
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table or study of a paper.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        audits: Registered names, with their presets.
        control: Whether every audit also runs with retrieval switched off.
        rate: Which rate the figure shows, one of :data:`RATES`.
        cases: Its rows.
        differs: What differs from the paper's setting, a sentence each.
        answers: The table whose answers it takes, where it asks nothing of its own.
        gammas: Thresholds by which it shows F1; none shows the scores themselves.
    """

    name: str
    title: str
    audits: tuple[str, ...]
    control: bool
    rate: str
    cases: tuple[Case, ...]
    differs: tuple[str, ...] = ()
    answers: str = ""
    gammas: tuple[float, ...] = ()


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
        rate = data.get("rate", "auc")
        if rate not in RATES:
            raise TypeError(f"rate is one of {', '.join(RATES)}, not {rate!r}")
        cases = tuple(_case(row, data, rate) for row in data["case"])
        return Table(
            name=name,
            title=data["title"],
            audits=tuple(data["audits"]),
            control=data.get("control", True),
            rate=rate,
            cases=cases,
            differs=tuple(data.get("differs", ())),
            answers=data.get("answers", ""),
            gammas=tuple(data.get("gammas", ())),
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _case(row: dict[str, Any], table: dict[str, Any], rate: str) -> Case:
    """A row, over what the table sets for all of them; a number alone is the table's rate."""
    own = {key: value for key, value in row.items() if key != "set"}
    own["rag"] = table.get("rag", {}) | row.get("rag", {})
    own["options"] = table.get("set", {}) | row.get("set", {})
    own["published"] = {
        audit: said if isinstance(said, dict) else {rate: said}
        for audit, said in row.get("published", {}).items()
    }
    if unknown := {key for said in own["published"].values() for key in said} - set(RATES):
        raise TypeError(f"there is no rate {min(unknown)!r}")
    return Case(**own)


# Worlds: how hard the system under audit makes it. A published number is told from another only
# where audits differ.


@dataclass(frozen=True, slots=True)
class World:
    """A setting of the system under audit that a whole table is run in.

    Attributes:
        name: Easy, hard.
        generator: The model that answers.
        why: What it is, and how it was picked.
        twins: Whether each indexed document has an edited copy beside it.
        rag: Settings of the system in place of the table's.
    """

    name: str
    generator: str
    why: str
    twins: bool = False
    rag: Mapping[str, object] = field(default_factory=dict)


def load_world(name: str, folder: Path) -> World:
    """Return a world of ``worlds.toml``.

    Args:
        name: As there.
        folder: Holds ``worlds.toml`` beside the papers' folders.

    Raises:
        InputError: There is no such world, or the file cannot be read.
    """
    worlds = _read(folder / "worlds.toml")
    if name not in worlds:
        raise InputError(f"There is no world {name!r}.", f"Known: {', '.join(worlds)}.")
    try:
        return World(name, **worlds[name])
    except TypeError as error:
        raise InputError(f"The world {name!r} is malformed: {error}.") from error
