"""``ragwitness doctor``: what a target can do, measured, and what auditing it would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.common import TARGET

if TYPE_CHECKING:
    from ragwitness.runs import AuditPlan
    from ragwitness.types import Capability

__all__ = ["doctor"]


def doctor(
    target: Annotated[str, typer.Argument(help=TARGET)],
    documents: Annotated[
        str | None, typer.Option(help="Documents in question: also say what audits would cost.")
    ] = None,
    known_out: Annotated[
        str | None,
        typer.Option(help="Documents known to be outside; default: 200 generated ones."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    key_env: Annotated[
        str | None,
        typer.Option(help="Variable with the API key; OPENAI_API_KEY for api.openai.com alone."),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
) -> None:
    """Send a few harmless queries and say which audits the target admits.

    With --documents also what each of them would cost, how long it would take and what share of
    members it could find; see ragwitness plan, which asks no target.
    """
    import asyncio

    from ragwitness.cli.common import console
    from ragwitness.errors import CapabilityError
    from ragwitness.targets import (
        CapabilityReport,
        RetryPolicy,
        TransportOptions,
        open_target,
        probe_capabilities,
    )

    plan = _plan(documents, known_out, text_field, paragraphs=paragraphs)

    async def examine() -> CapabilityReport:
        opened = await open_target(
            target,
            TransportOptions(read_timeout=timeout, key_env=key_env, retry=RetryPolicy(retries=1)),
        )
        try:
            return await probe_capabilities(opened)
        finally:
            await opened.close()

    found = asyncio.run(examine())
    screen = console()
    possible, broken = _admitted(found.capabilities)
    for label, value in (
        ("target", found.target),
        ("capabilities", ", ".join(sorted(found.capabilities))),
        ("alternatives per token", str(found.alternatives)),
        ("prompt scores (echo)", {True: "yes", False: "no", None: "not asked"}[found.echo]),
        ("seconds per answer", f"{found.latency:.2f}"),
        ("queries spent", str(found.requests)),
        ("audits possible", ", ".join(possible) or "none"),
        *(() if plan else (("cost and power", "ragwitness plan --documents FILE"),)),
        *(("note", note) for note in (*found.notes, *broken)),
    ):
        screen.print(f"{label:<24}{value}", markup=False)
    if not possible:
        raise CapabilityError(
            "No audit can be run: the target answers with nothing that can be read.",
            "Look at one answer of it by hand.",
        )
    if plan is not None:
        _foresee(plan, possible, found.latency)


def _plan(
    documents: str | None, known_out: str | None, text_field: str | None, *, paragraphs: bool
) -> AuditPlan | None:
    """Read the documents before anything is sent; None without any.

    Raises:
        InputError: They cannot be used, or there are only known ones.
    """
    from ragwitness.cli.common import read_documents
    from ragwitness.errors import InputError
    from ragwitness.runs import AuditPlan

    if documents is None and known_out is not None:
        raise InputError("--known-out serves --documents, which is missing.", "Give both.")
    if documents is None:
        return None
    known = (
        () if known_out is None else read_documents(known_out, text_field, paragraphs=paragraphs)
    )
    return AuditPlan(read_documents(documents, text_field, paragraphs=paragraphs), known)


def _foresee(plan: AuditPlan, names: list[str], latency: float) -> None:
    from ragwitness.cli.common import console
    from ragwitness.cli.plan import assumed, foresee
    from ragwitness.report.forecast import forecast_terminal
    from ragwitness.runs import OutlookPlan

    asked = OutlookPlan(plan, assumed(names))
    outlook = foresee(asked, dict.fromkeys(names), "reader", latency)
    console().print(forecast_terminal(outlook))


def _admitted(capabilities: frozenset[Capability]) -> tuple[list[str], list[str]]:
    """Names of the audits whose needs are met, and why others' plug-ins cannot be loaded."""
    from ragwitness.errors import InputError
    from ragwitness.membership.registry import audit_names, build_audit
    from ragwitness.models import load_language_model

    proxy = load_language_model("reader")
    names, broken = [], []
    for name in audit_names():
        try:
            if build_audit(name, proxy).requires <= capabilities:
                names.append(name)
        except InputError as error:
            broken.append(error.message)
    return names, broken
