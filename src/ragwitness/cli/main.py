"""The ``ragwitness`` command: one file per verb, errors in two lines, fixed exit codes."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from ragwitness.cli import (
    audit,
    canary,
    challenge,
    close,
    collusion,
    commit,
    compare,
    corpus,
    demo,
    doctor,
    evaluate,
    lab,
    leak,
    merge,
    monitor,
    owner,
    plan,
    prove,
    receipt,
    report,
    reproduce,
    serve,
    setup,
    synthesize,
    tenants,
    verify,
    view,
    work,
)
from ragwitness.cli.config import Configurable
from ragwitness.cli.outputs import EXIT_CODES
from ragwitness.errors import RagwitnessError, VerificationError

__all__ = ["app", "run"]

app = typer.Typer(
    name="ragwitness",
    help="Audit retrieval-augmented generation (RAG) systems; every verdict has its error rate.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # half the start-up time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_verb = partial(app.command, cls=Configurable)  # with --config
_verb("demo")(demo.demo)
_verb("plan")(plan.plan)
_verb("audit", epilog=EXIT_CODES)(audit.audit)
_verb("work", epilog=EXIT_CODES)(work.work)
_verb("merge", epilog=EXIT_CODES)(merge.merge)
_verb("owner", epilog=EXIT_CODES)(owner.owner)
_verb("leak", epilog=EXIT_CODES)(leak.leak)
_verb("synthesize", epilog=EXIT_CODES)(synthesize.synthesize)
_verb("compare", epilog=EXIT_CODES)(compare.compare)
_verb("evaluate")(evaluate.evaluate)
_verb("doctor")(doctor.doctor)
_verb("reproduce")(reproduce.reproduce)
_verb("report", epilog=EXIT_CODES)(report.report)
_verb("view")(view.view)
_verb("serve")(serve.serve)
_verb("setup")(setup.setup)
_verb("commit")(commit.commit)
_verb("close")(close.close)
_verb("challenge")(challenge.challenge)
_verb("prove")(prove.prove)
_verb("verify", epilog=EXIT_CODES)(verify.verify)
_verb("monitor", epilog=EXIT_CODES)(monitor.monitor)
app.add_typer(canary.app, name="canary")
app.add_typer(collusion.app, name="collusion")
app.add_typer(corpus.app, name="corpus")
app.add_typer(lab.app, name="lab")
app.add_typer(receipt.app, name="receipt")
app.add_typer(tenants.app, name="tenants")


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"ragwitness {version('ragwitness')}")
        raise typer.Exit


@app.callback()
def _root(
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
        check = f"{error.check}: " if isinstance(error, VerificationError) else ""
        sys.stderr.write(f"error: {check}{error.message}\n")
        if error.hint:
            sys.stderr.write(f"  next: {error.hint}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
