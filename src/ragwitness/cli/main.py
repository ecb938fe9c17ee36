"""The ``ragwitness`` command: its surface as one table; a verb is imported when it is called.

Errors take two lines, and exit codes are fixed (``errors.ExitCode``).
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
    """

    home: str
    summary: str


@dataclass(frozen=True, slots=True)
class Group:
    """Verbs under one word.

    Attributes:
        summary: First sentence of its help.
        members: Verbs and groups by name.
    """

    summary: str
    members: Mapping[str, Verb | Group]


_CANARY = Group(
    "Find out whether a model was trained on retrieved text: plant canaries, then probe.",
    {
        "draw": Verb("canary:draw", "Draw a secret and commit to it."),
        "plant": Verb(
            "canary_plant:plant", "Send the traces to a service and vote on its answers."
        ),
        "probe": Verb("canary_probe:probe", "Ask a model about every trigger."),
        "status": Verb("canary:status", "Show an audit, and check it."),
    },
)
_COLLUSION = Group(
    "Work out what a privacy claim per account is worth when accounts pool their answers.",
    {
        "bound": Verb("collusion:bound", "Account for what k accounts learn together."),
        "calibrate": Verb("collusion:calibrate", "Find the noise for a joint budget."),
        "estimate": Verb("collusion:estimate", "Estimate how many accounts work together."),
    },
)
_TENANTS = Group(
    "Manage the tenants of the service: their documents, accounts, keys and budgets.",
    {
        "create": Verb("service:create", "Make a tenant, or several with one promise."),
        "list": Verb("service:list_", "List all tenants."),
        "policy": Verb("service:policy_", "Print a tenant's promise as a policy."),
        "add-documents": Verb("service:add_documents", "Add documents to a tenant's index."),
        "remove-documents": Verb(
            "service:remove_documents",
            "Take documents out of a tenant's index, each with all its parts.",
        ),
        "erase": Verb("service:erase", "Erase a tenant for good."),
        "add-account": Verb("service:add_account", "Admit accounts and print their keys."),
        "rotate-key": Verb("service:rotate_key", "Print a new key for an account."),
        "revoke": Verb("service:revoke", "End an account's access."),
        "budget": Verb("service:budget", "Show what has been spent."),
    },
)
_RECEIPT = Group(
    "Check what an account was given.",
    {
        "check": Verb("attest_checks:check", "Check a receipt offline."),
    },
)
_VERIFY = Verb("verify:verify", "Check a sealed file by itself, offline.")
_ATTEST = Group(
    "Prove to an auditor, window by window, that the privacy promise was kept.",
    {
        "commit": Verb("attest:commit", "Open a window."),
        "beacon": Verb("attest_checks:beacon", "Draw the value that enters the noise of a window."),
        "begin": Verb("attest:begin", "Log the value that enters the noise of a window."),
        "close": Verb("attest:close", "Close a window."),
        "pin": Verb("attest_checks:pin", "Say which policy you accept."),
        "challenge": Verb("attest_checks:challenge", "Draw the records to prove."),
        "prove": Verb("attest:prove", "Prove the challenged records."),
        "monitor": Verb("attest_checks:monitor", "Check that a log only grew."),
        "verify": _VERIFY,
        "receipt": _RECEIPT,
    },
)
_SERVICE = Group(
    "Run a retrieval service whose answers hide which documents it holds.",
    {
        "serve": Verb("service:serve", "Serve chat and private retrieval."),
        "tenants": _TENANTS,
        "restored": Verb(
            "service:restored", "Say that the database is a restored copy, before it is served."
        ),
    },
)
_LAB = Group(
    "Set up a RAG system of your own, and measure on it what papers did.",
    {
        "serve": Verb("lab:serve", "Serve a RAG system over a corpus."),
        "reproduce": Verb(
            "reproduce:reproduce", "Run a table of a paper and print it beside the published one."
        ),
    },
)

HEADINGS: Mapping[str, Mapping[str, Verb | Group]] = {
    "Where do I begin?": {
        "demo": Verb("demo:demo", "Try a whole audit on generated documents, offline."),
        "init": Verb("init:init", "Prepare a first audit, and write the file that runs it."),
        "doctor": Verb(
            "doctor:doctor", "Find out what a target can do and which audits it admits."
        ),
        "plan": Verb("plan:plan", "Estimate what audits would cost and find; nothing is sent."),
        "report": Verb("report:report", "Show a finished run again, in any format."),
        "view": Verb("report:view", "Show runs as pages in a browser, and begin new ones."),
    },
    "What is in there, and what comes out?": {
        "audit": Verb("audit:audit", "Find out whether documents are in a RAG system's database."),
        "mark": Verb(
            "mark:mark",
            "Draw words of documents by lot before the documents are shared, and keep the lots.",
        ),
        "leak": Verb("leak:leak", "Attack a RAG system and measure how much of its corpus leaks."),
        "canary": _CANARY,
    },
    "How do I protect it?": {
        "synthesize": Verb("synthesize:synthesize", "Make synthetic records from private ones."),
        "compare": Verb("compare:compare", "Compare substitutes of a corpus: privacy against use."),
        "collusion": _COLLUSION,
        "service": _SERVICE,
    },
    "How do I prove it?": {
        "seal": Verb(
            "seal:seal", "Make an evidence pack of a run that was sealed before its first query."
        ),
        "attest": _ATTEST,
        "verify": _VERIFY,
    },
    "How good are audits, and how do they scale?": {
        "evaluate": Verb("evaluate:evaluate", "Measure how well audits do on a corpus of yours."),
        "lab": _LAB,
    },
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
    command.home = entry.home
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
        from pathlib import Path

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
