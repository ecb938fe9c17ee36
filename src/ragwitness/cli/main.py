"""The ``ragwitness`` command: its surface as one table; a verb is imported when it is called.

Errors take two lines, and exit codes are fixed (``errors.ExitCode``).
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from ragwitness.cli.config_files import Configurable
from ragwitness.cli.help import section
from ragwitness.cli.typer_options import with_options
from ragwitness.core.errors import ExitCode, RagwitnessError, VerificationError


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the surface.

    Attributes:
        home: ``module:function`` below ``ragwitness.cli``.
        summary: First sentence of its help, so that a list of verbs imports none of them.
        example: A command that works where the files that it names are there.
        see: Verbs to read about next, by their words.
    """

    home: str
    summary: str
    example: str = ""
    see: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Verbs under one word.

    Attributes:
        summary: First sentence of its help.
        members: Verbs and groups by name.
    """

    summary: str
    members: Mapping[str, Verb | Group]


def _entry(row: Mapping[str, Any]) -> Verb | Group:
    if "verbs" not in row:
        return Verb(row["home"], row["summary"], row.get("example", ""), tuple(row.get("see", ())))
    return Group(row["summary"], {name: _entry(inner) for name, inner in row["verbs"].items()})


HEADINGS: Mapping[str, Mapping[str, Verb | Group]] = {
    heading: {name: _entry(row) for name, row in rows.items()}
    for heading, rows in tomllib.loads(
        Path(__file__).with_name("surface.toml").read_text(encoding="utf-8")
    ).items()
}
"""The surface, as ``ragwitness --help`` shows it."""

EXIT_CODES = (
    f"Exit codes: {ExitCode.PASS} done; {ExitCode.ERROR} the target or something inside failed;"
    f" {ExitCode.USAGE} unusable input; {ExitCode.FAILED} --fail-on is met, or a check failed;"
    f" {ExitCode.INCONCLUSIVE} --fail-on is not met, but nothing was decided;"
    f" {ExitCode.CAPABILITY} the target lacks a capability; {ExitCode.INTERRUPTED} interrupted"
    " (the same command resumes)."
)
_HELP = {"help_option_names": ["-h", "--help"]}


class Surface(TyperGroup):
    """A group of the command line that imports a verb when it is called."""

    headings: ClassVar[Mapping[str, Mapping[str, Verb | Group]]] = HEADINGS

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names that help shows, in its order."""
        return [name for members in self.headings.values() for name in members]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a verb or group, imported now; None for an unknown name."""
        # Only the verb that is called is imported: help and completion stay fast.
        for members in self.headings.values():
            if cmd_name not in self.commands and (entry := members.get(cmd_name)):
                make: Any = _Subgroup if isinstance(entry, Group) else _verb
                self.commands[cmd_name] = make(cmd_name, entry)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load all names where one is unknown, so that the nearest can be suggested."""
        if self.get_command(ctx, args[0]) is None:
            for name in self.list_commands(ctx):
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the verbs under their headings; none is imported."""
        longest = max(map(len, self.list_commands(None)))
        for heading, members in self.headings.items():
            with section(formatter, heading):
                rows = [(name.ljust(longest), entry.summary) for name, entry in members.items()]
                formatter.write_dl(rows)


class _Subgroup(Surface):
    """Verbs under one word, as :class:`Group` lists them."""

    def __init__(self, name: str, group: Group) -> None:
        super().__init__(name=name, help=group.summary, no_args_is_help=True, rich_markup_mode=None)
        self.headings = {"Commands": group.members}  # type: ignore[misc]


@functools.cache  # a program that calls many verbs builds each but once
def _verb(name: str, entry: Verb) -> Any:
    module, _, function = entry.home.partition(":")
    maker = typer.Typer(add_completion=False, rich_markup_mode=None)
    body = getattr(importlib.import_module(f"ragwitness.cli.{module}"), function)
    maker.command(name, cls=Configurable, context_settings=_HELP)(with_options(body))
    command: Any = typer.main.get_command(maker)
    command.home, command.example, command.see = entry.home, entry.example, entry.see
    return command


app = typer.Typer(
    name="ragwitness",
    cls=Surface,
    help="Audit the privacy of retrieval-augmented generation (RAG) systems."
    " Every verdict comes with its error rate.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # half the start-up time
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"ragwitness {version('ragwitness')}")
        raise typer.Exit


def _start_logging(verbosity: int) -> None:
    """Write the log of this package to standard error: warnings, with -v all, with -vv details."""
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("ragwitness")
    logger.handlers[:] = [handler] if verbosity else []
    logger.setLevel(level)


def _pages(show: bool) -> None:
    if show:
        # Within the package once it is built; in a checkout they lie at its top.
        package = Path(__file__).parents[1]
        folders = (package / "pages" / "docs", package.parents[1] / "docs")
        typer.echo(next((str(folder) for folder in folders if folder.is_dir()), folders[0]))
        raise typer.Exit


@app.callback()
def _root(
    docs: Annotated[
        bool,
        typer.Option(
            "--docs",
            callback=_pages,
            is_eager=True,
            help="Print the folder of the pages that help names, such as docs/targets.md.",
        ),
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            callback=_start_logging,
            help="Show all of a result, and log waits, retries and decisions to standard error; -vv"
            " logs every request.",
        ),
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the verb."""


def run() -> None:
    """Entry point: no traceback for what the user can mend."""
    try:
        app()
    except RagwitnessError as error:
        # A verifier's refusal begins with the name of the check, which scripts may rely on.
        check = f"{error.check}: " if isinstance(error, VerificationError) else ""
        sys.stderr.write(f"error: {check}{error.message}\n")
        if error.hint:
            sys.stderr.write(f"  next: {error.hint}\n")
        sys.exit(error.exit_code)
    # `ragwitness ... | head`: the reader has gone, and that is not an error to explain.
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
