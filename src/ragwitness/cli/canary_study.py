"""``ragwitness reproduce`` for tables of the canary paper: policies are trained and audited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.canary.simulate.outcome import Outcome
    from ragwitness.runs.canary_study import StudyCase, StudyTable

__all__ = ["reproduce_study"]


def reproduce_study(
    table: StudyTable, data: Path | None, out: Path, policies: int | None, processes: int
) -> None:
    """Train what the table's journal does not hold, and write it beside what was published.

    Args:
        table: Conditions.
        data: Folder of the corpora.
        out: Folder of the results; resumes there. Base models are kept beside them.
        policies: Most in each arm; None takes the table's number.
        processes: Policies trained at once.

    Raises:
        InputError: A corpus is missing, or a setting is unusable.
        MissingExtraError: torch or transformers is not installed.
    """
    from ragwitness.cli.common import console
    from ragwitness.runs.canary_study import run_study
    from ragwitness.runs.canary_study.worlds import WorldFolders

    if policies is not None:
        table = table.small(policies)
    folder = out / table.name
    screen = console()
    results = run_study(
        table,
        WorldFolders(data, out / "bases"),
        folder,
        processes=processes,
        say=lambda said: screen.print(said, markup=False, soft_wrap=True),
    )
    _write(table, results, folder)


def _write(
    table: StudyTable, results: Sequence[tuple[StudyCase, Sequence[Outcome]]], folder: Path
) -> None:
    from ragwitness.cli.reproduced import leave_table
    from ragwitness.report.canary_figure import study_svg
    from ragwitness.report.canary_study import study_json, study_markdown

    leave_table(
        folder,
        study_markdown(table, results),
        study_json(table, results),
        study_svg(table, results),
    )
