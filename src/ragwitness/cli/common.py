"""Parts that several verbs share: targets, documents, progress, run folders."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.core.files import replace_file

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.runner.worker import Progress

_SILENCE = 10.0
"""Seconds after which work under way is shown where there is no terminal."""

_STAGES = {
    "documents": "asked about",
    "known outside": "known to be outside, asked about",
    "known inside": "known to be inside, asked about",
    "pilot, shown": "trial, text shown in the question",
    "pilot, hidden": "trial, text not shown",
    "counted": "questions counted",
}
"""Parts of a run in words for people; others say it by their name."""


def console() -> Console:
    """Return the console for people; results that machines read go elsewhere."""
    from rich.console import Console

    # No emoji: "s2mia:m: ..." is an audit with its preset.
    return Console(stderr=False, highlight=False, emoji=False)


def print_lines(screen: Console, *lines: str) -> None:
    """Print lines as they are: nothing in them is markup, and none is broken."""
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)


def say_error(line: str) -> None:
    """Say something beside the results, on standard error."""
    sys.stderr.write(line + "\n")


def is_verbose() -> bool:
    """Whether ``--verbose`` was given before the verb."""
    return 0 < logging.getLogger("ragwitness").level < logging.WARNING


def leave(result: object, json_out: Path | None = None) -> None:
    """Write a result as JSON where a file is asked for, then print it."""
    from ragwitness.report.result_registry import result_type_for
    from ragwitness.report.terminal import terminal

    kind = result_type_for(result)
    if json_out is not None:
        write_json_file(json_out, kind.stored(result))
    screen = console()
    screen.print(terminal(kind.report(result), width=screen.width))


def one_thread_per_answer() -> None:
    """Let numpy use one thread per call.

    Answers are made side by side; threads that wait for each other inside one small matrix
    product cost more than they bring.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    np.ones((2, 2)) @ np.ones((2, 2))  # the library must be loaded to be limited
    threadpool_limits(limits=1, user_api="blas")


def write_json_file(path: Path, data: Mapping[str, Any]) -> None:
    """Write what a verb found that keeps no run folder, as JSON.

    Raises:
        InputError: The file cannot be written.
    """
    replace_file(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def run_folder(given: Path | None, *parts: object, again: bool = True) -> Path:
    """Return the folder of a run.

    Without ``given`` it follows from the inputs. An unfinished run with the same inputs is
    resumed, also one that stopped at a cap. After a finished one a new run begins, because the
    system may have changed; without ``again`` it does not, because a second look would count.

    Raises:
        InputError: An output would replace a file that the folder keeps.
    """
    if given is not None:
        return given
    from ragwitness.cli.paths import check_run_folder
    from ragwitness.core.run_files import RUNS, folder_of

    folder = folder_of(RUNS, parts, again=again)
    check_run_folder(folder)
    return folder


@contextmanager
def progress_bars(
    console: Console, spent: Callable[[], str] | None = None, items: str = "documents"
) -> Iterator[Progress]:
    """Show one bar per stage with the time left; plain lines where there is no terminal.

    Args:
        console: For people.
        spent: Words what was spent so far, shown beside.
        items: The things that are counted.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    # No bars in a log file: they would be thousands of lines.
    if not console.is_terminal:
        yield _lines(console, spent, items)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[spent]}"),
    )
    with Bars(*columns, console=console) as bars:
        tasks: dict[str, int] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(_STAGES.get(stage, stage), total=total, spent="")
            cost = spent() if spent else ""
            bars.update(tasks[stage], completed=done, spent=cost)  # type: ignore[arg-type]

        yield show


def _lines(console: Console, spent: Callable[[], str] | None, items: str) -> Progress:
    """A line at a stage's end, and one in ten seconds: a log file must show that work goes on."""
    said_at = time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        nonlocal said_at
        now = time.monotonic()
        if done < total and now < said_at + _SILENCE:
            return
        said_at = now
        count = f"all {total}" if done == total else f"{done} of {total}"
        cost = f"; {spent()} so far" if spent else ""
        console.print(f"{_STAGES.get(stage, stage)}: {count} {items}{cost}", markup=False)

    return show
