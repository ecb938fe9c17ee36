"""The last steps of ``ragwitness leak``: score, store, show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.extraction.score import LeakPlan
    from ragwitness.extraction.transcript import Transcript
    from ragwitness.models import Embedder
    from ragwitness.report.leak import Example
    from ragwitness.report.leak_gate import LeakCondition
    from ragwitness.runs.leak import Asked
    from ragwitness.runs.leak_score import LeakResult

__all__ = ["conclude", "show_again"]


def show_again(
    stored: dict[str, Any],
    path: Path,
    html: Path | None,
    json_out: Path | None,
    fail_on: Sequence[str],
    others: dict[str, Path | None],
) -> None:
    """Print a stored result and write its page again, without examples of what leaked.

    Args:
        stored: The result as JSON.
        path: Where it is stored.
        html: Where the page goes; None puts it beside.
        json_out: Where the JSON goes too.
        fail_on: Conditions.
        others: Files in formats that a leak measurement has not, by their options.

    Raises:
        InputError: The result is malformed, or something asked for cannot be done.
    """
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.report.leak import leak_from_json
    from ragwitness.report.leak_gate import parse_leak_conditions

    if wanted := [option for option, file in others.items() if file is not None]:
        raise InputError(
            f"{path} is a leak measurement, which has no {wanted[0]}.", "Its formats: HTML, --json."
        )
    conditions = parse_leak_conditions(fail_on)
    result, page = leak_from_json(stored), html or path.parent / "report.html"
    Outputs(json_out).check([path, page, *files_of_run(path.parent)])
    _show(result, (), page, [json_out], conditions)


def _show(
    result: LeakResult,
    examples: Sequence[Example],
    page: Path,
    files: Sequence[Path | None],
    conditions: Sequence[LeakCondition],
) -> None:
    """Write and print a result, and exit as the conditions ask for."""
    import json

    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import leave
    from ragwitness.report.leak import leak_json
    from ragwitness.report.leak_gate import rule_leak
    from ragwitness.report.leak_html import write_leak
    from ragwitness.report.leak_terminal import leak_terminal
    from ragwitness.report.writing import write_text

    text = json.dumps(leak_json(result), indent=1, allow_nan=False) + "\n"
    for file in files:
        if file is not None:
            write_text(file, text)
    write_leak(result, page, examples)
    screen = console()
    screen.print(leak_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
    leave(rule_leak(result, conditions), screen)


def conclude(
    transcripts: Sequence[Transcript],
    plan: LeakPlan,
    embedder: Embedder | None,
    asked: Asked | None,
    settings: dict[str, str],
    folder: Path,
    json_out: Path | None,
    examples: int,
    conditions: Sequence[LeakCondition],
) -> None:
    """Score, store, show, and exit as the conditions ask for.

    Raises:
        InputError: There is nothing to score, or a file cannot be written.
        ModelError: The embedder failed.
    """
    from ragwitness.cli.common import console
    from ragwitness.report.leak import pick_examples
    from ragwitness.runs.leak_score import score_leaks

    console().print(f"scoring {len(transcripts):,} transcripts", markup=False)
    result = score_leaks(transcripts, plan, embedder=embedder, asked=asked, settings=settings)
    folder.mkdir(parents=True, exist_ok=True)
    shown = pick_examples(transcripts, plan.records, examples)
    files = [folder / "result.json", json_out]
    _show(result, shown, folder / "report.html", files, conditions)
