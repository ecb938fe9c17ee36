"""How every verb ends that has a result: store, show, write what was asked for, exit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from ragwitness.cli.common import console, is_verbose
from ragwitness.cli.typer_options import Files
from ragwitness.core.run_files import REPORT, RESULT, SEAL, finding, keep_finished

if TYPE_CHECKING:
    from ragwitness.report.document import ReportDocument


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs of a result beyond the files of its run folder.

    Attributes:
        files: Paths by format.
        fail_on: Conditions under which the run fails, as the kind of the result read them.
    """

    files: Files = field(default_factory=Files)
    fail_on: tuple[Any, ...] = ()

    @classmethod
    def wanted(
        cls, kind: str, files: Files | None = None, fail_on: Sequence[str] | None = None
    ) -> Self:
        """Read what is wanted, and find out before anything is spent whether it can be had.

        Args:
            kind: Name of the kind of result, which reads the conditions.
            files: Paths by format.
            fail_on: Conditions as they were typed.

        Raises:
            InputError: A condition is not in the kind's grammar.
            MissingExtraError: A package for one of the formats is not installed.
        """
        from ragwitness.report.files import FORMATS
        from ragwitness.report.result_registry import result_type_named

        # A missing package is found before anything is spent, not when the result is to be written.
        for check in (FORMATS.load(name).check for name in files or ()):
            if check is not None:
                check()
        # Each kind of result has its own grammar (docs/design/exit-codes.md).
        conditions = result_type_named(kind).conditions(fail_on or ())
        return cls(files or Files(), conditions)


def conclude(
    result: object,
    outputs: Outputs | None = None,
    *,
    store: Path | None = None,
    page: Path | None = None,
    report: ReportDocument | None = None,
) -> None:
    """Store a result, write its page and every file that is wanted, show it, and exit.

    Args:
        result: Of any kind.
        outputs: Further outputs.
        store: Run folder that keeps the result; None where it is kept already.
        page: Where the HTML page goes, if not into the run folder.
        report: The report, where it says more than the result type alone.

    Raises:
        InputError: A file cannot be written.
    """
    from ragwitness.report.files import write
    from ragwitness.report.html import write_page
    from ragwitness.report.result_registry import result_type_for
    from ragwitness.report.terminal import terminal
    from ragwitness.runner.response_store import pack_run

    kind, chosen, screen = result_type_for(result), outputs or Outputs(), console()
    page = page or (store or Path()) / REPORT
    # Step 1: the result itself, before anything that could fail in a renderer.
    if store is not None:
        earlier = keep_finished(store)
        write("json", kind, result, store / RESULT)
        if earlier is not None and finding(earlier) == finding(store / RESULT):
            earlier.unlink()
        elif earlier is not None:
            screen.print(f"the earlier result is kept: {earlier}", markup=False, soft_wrap=True)
        # The log of a sealed run says that it came to its end.
        if (store / SEAL).exists():
            from ragwitness.evidence.seal import end

            end(store)
    # Step 2: one report for page and terminal, so that both say the same.
    document = report or kind.report(result)
    write_page(document, page)
    # Step 3: the files that were asked for, while the run folder is whole already.
    for name, path in chosen.files.items():
        write(name, kind, result, path, chosen.fail_on)
    screen.print(terminal(document, where=str(page), width=screen.width, verbose=is_verbose()))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
    # Step 4: what was appended to under way is complete now, and shrinks.
    if store is not None:
        pack_run(store)
    # Step 5: the exit code. Without --fail-on it is 0, whatever was found.
    ruling = kind.rule(result, chosen.fail_on)
    if ruling.why:
        screen.print(ruling.why, markup=False, soft_wrap=True)
    if ruling.code:
        raise typer.Exit(ruling.code)
