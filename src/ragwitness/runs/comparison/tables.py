"""Tables of a paper that compare texts in a corpus's place, as TOML; see ``experiments/sage``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwitness.defenses.synthetic.registry import METHODS
from ragwitness.errors import InputError
from ragwitness.extraction.registry import attack_names
from ragwitness.runs.comparison.plan import ORIGIN, ZERO_SHOT
from ragwitness.runs.comparison.variants import check_method
from ragwitness.runs.tables import read_table

__all__ = ["CompareCase", "CompareTable", "load_compare_table"]

_COLUMNS = ("published", "worst published", "use", "words", "rounds")


@dataclass(frozen=True, slots=True)
class CompareCase:
    """One corpus under one attack, or with one set of questions.

    Attributes:
        label: Its name.
        corpus: File in the data folder; empty where the case is refused.
        make: ``"wiki-pii"`` plants contact details in a text; empty takes the file as it is.
        attack: Registered name; None attacks nothing.
        questions: File in the data folder; ``"own"`` holds records out; None asks nothing.
        columns: What the paper prints, by label: where our figure is found.
        published: By row and column, as printed.
        refused: Why it is not run; empty where it is.
    """

    label: str
    corpus: str = ""
    make: str = ""
    attack: str | None = None
    questions: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True, slots=True)
class CompareTable:
    """One table.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        prompts: Of an attack.
        asked: Questions at most.
        rows: By the paper's label, the variant: ``origin``, ``zero-shot`` or a method.
        cases: Its corpora.
        note: What a reader must know.
    """

    name: str
    title: str
    prompts: int
    asked: int
    rows: Mapping[str, str]
    cases: tuple[CompareCase, ...]
    note: str = ""

    def needs_model(self, row: str) -> bool:
        """Whether a row asks a chat model."""
        return self.rows[row] not in (ORIGIN, ZERO_SHOT) and check_method(self.rows[row])


def load_compare_table(name: str, folder: Path) -> CompareTable:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"sage/table3"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, or it is malformed.
    """
    data = read_table(name, folder)
    try:
        own: dict[str, Any] = {k: v for k, v in data.items() if k not in ("kind", "case")}
        cases = tuple(CompareCase(**row) for row in data["case"])
        table = CompareTable(name=name, cases=cases, **own)
        _check(table)
        return table
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _check(table: CompareTable) -> None:
    """Refuse what would only fail while it runs."""
    for label, method in table.rows.items():
        if method.partition(":")[0] not in (ORIGIN, ZERO_SHOT, *METHODS):
            raise ValueError(f"{label} is by no method: {method}")
    for case in table.cases:
        if not case.refused and not (case.corpus and case.columns):
            raise ValueError(f"{case.label} has no corpus or no columns")
        if case.attack is not None and case.attack not in attack_names():
            raise ValueError(f"{case.label} is by no attack: {case.attack}")
        if bad := [where for where in case.columns.values() if not where.startswith(_COLUMNS)]:
            raise ValueError(f"{case.label} has no figure {bad[0]!r}")
        if lost := sorted(set(case.published) - set(table.rows)):
            raise ValueError(f"{case.label} has figures of no row: {lost[0]}")
