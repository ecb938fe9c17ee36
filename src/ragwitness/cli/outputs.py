"""Files that a finished audit is written to when asked, and the code the command exits with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.errors import ExitCode, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.report.gate import Condition, Ruling
    from ragwitness.runs import AuditResult

__all__ = [
    "EXIT_CODES",
    "FailOn",
    "JUnitPath",
    "JsonPath",
    "JsonlPath",
    "Outputs",
    "ParquetPath",
    "check_writable",
    "files_of_run",
    "leave",
]

JsonPath = Annotated[
    Path | None, typer.Option("--json", help="Also write the result here, as JSON.")
]
JsonlPath = Annotated[
    Path | None, typer.Option("--jsonl", help="Also here, as JSON with one line per document.")
]
ParquetPath = Annotated[
    Path | None, typer.Option("--parquet", help="Also here, as Parquet; needs the extra [data].")
]
JUnitPath = Annotated[
    Path | None, typer.Option("--junit", help="Also here, as the JUnit XML that CI systems show.")
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 3 where documents are in, out, inconclusive or unscorable; in:3, at least"
        " 3 of them; in:5%, at least 5 %. May be repeated.",
    ),
]

EXIT_CODES = (
    f"Exit codes: {ExitCode.PASS} done; {ExitCode.ERROR} the target or something inside failed;"
    f" {ExitCode.USAGE} unusable input; {ExitCode.FAILED} --fail-on is met;"
    f" {ExitCode.INCONCLUSIVE} --fail-on is not met, but nothing was decided;"
    f" {ExitCode.CAPABILITY} the target lacks a capability; {ExitCode.INTERRUPTED} interrupted"
    " (the same command resumes)."
)
"""Last lines of ``--help``."""

_OWN = (
    "answers.jsonl",
    "documents.jsonl",
    "finished.jsonl",
    "made.jsonl",
    "manifest.json",
    "report.html",
    "result.json",
    "scores.jsonl",
    "spent.jsonl",
    "target.json",
    "transcripts.jsonl",
    "votes.jsonl",
)


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is wanted of a finished audit beside what its run folder keeps.

    Attributes:
        json: Path of the JSON; None for none, as below.
        jsonl: Path of the JSON with one line per document.
        parquet: Path of the table.
        junit: Path of the JUnit XML.
        fail_on: Conditions under which the audit fails.
    """

    json: Path | None = None
    jsonl: Path | None = None
    parquet: Path | None = None
    junit: Path | None = None
    fail_on: tuple[Condition, ...] = ()

    def check(self, keep: Iterable[str | Path | None] = (), **more: Path | None) -> None:
        """Find out before anything is spent whether everything can be written.

        Args:
            keep: Files that no result may replace.
            more: Further files that the command writes, by the names of their options.

        Raises:
            InputError: A path cannot be written, is named twice, or is one of ``keep``.
            MissingExtraError: A package for one of the formats is not installed.
        """
        taken = {os.path.abspath(path): "a file of this command" for path in keep if path}
        named = {"json": self.json, "jsonl": self.jsonl, "parquet": self.parquet}
        for name, path in {**named, "junit": self.junit, **more}.items():
            if path is None:
                continue
            check_writable(path)
            if other := taken.get(os.path.abspath(path)):
                raise InputError(f"--{name} {path} would replace {other}.", "Choose another.")
            taken[os.path.abspath(path)] = f"what --{name} writes"
        if self.parquet is not None:
            from ragwitness.report.parquet import require_parquet

            require_parquet()

    def write(self, result: AuditResult) -> None:
        """Write every file that is wanted.

        Raises:
            InputError: One cannot be written.
        """
        from ragwitness.report import write_json, write_jsonl, write_junit, write_parquet

        if self.json is not None:
            write_json(result, self.json)
        if self.jsonl is not None:
            write_jsonl(result, self.jsonl)
        if self.parquet is not None:
            write_parquet(result, self.parquet)
        if self.junit is not None:
            write_junit(result, self.junit, self.fail_on)

    def conclude(self, result: AuditResult, screen: Console) -> None:
        """Write every file, then exit as :attr:`fail_on` asks for.

        Raises:
            InputError: A file cannot be written.
        """
        from ragwitness.report.gate import rule

        self.write(result)
        leave(rule(result, self.fail_on), screen)


def leave(ruling: Ruling, screen: Console) -> None:
    """Say how an audit ends, and exit where that is not with 0."""
    if ruling.why:
        screen.print(ruling.why, markup=False, soft_wrap=True)
    if ruling.code:
        raise typer.Exit(ruling.code)


def files_of_run(folder: Path) -> list[Path]:
    """Return the files that a run keeps in its folder."""
    return [folder / name for name in _OWN]


def check_writable(path: Path) -> None:
    """Find out before anything is spent whether a result can be written.

    Raises:
        InputError: It cannot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", "Choose another.") from error
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"Cannot write {path}: no permission, or a folder.", "Choose another.")
