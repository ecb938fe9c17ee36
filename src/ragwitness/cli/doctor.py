"""``ragwitness doctor``: what a target can do, measured, and what auditing it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.caps import KeyEnv, PriceIn, PriceOut, Timeout
from ragwitness.cli.common import TARGET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.table import Table

    from ragwitness.runs import AuditPlan, Budget, Outlook
    from ragwitness.targets import CapabilityReport, TransportOptions
    from ragwitness.types import Capability

__all__ = ["doctor"]

_SAMPLES = 20  # shown as an example; 95 % intervals are then at most .46 wide
_DRAWN = {
    True: "differ at temperature 1",
    False: "alike at temperature 1: it may not sample, and alike samples count as one",
    None: "could not be asked for",
}


def doctor(
    target: Annotated[str, typer.Argument(help=TARGET)],
    documents: Annotated[
        str | None, typer.Option(help="Documents in question: also say what audits would cost.")
    ] = None,
    known_out: Annotated[
        str | None,
        typer.Option(help="Documents known to be outside; default: 200 generated ones."),
    ] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
    timeout: Timeout = 30.0,
    key_env: KeyEnv = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
) -> None:
    """Send a few harmless queries; say which audits are possible.

    With --documents also what each of them would cost (in money too, where prices are given), how
    long it would take and what share of members it could find; see ragwitness plan, which asks no
    target. A target without log-probabilities is asked whether its answers differ when sampled.
    """
    import asyncio

    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import check_writable
    from ragwitness.errors import CapabilityError
    from ragwitness.report.forecast import forecast_terminal
    from ragwitness.runs import Budget
    from ragwitness.targets import RetryPolicy, TransportOptions

    plan = _plan(documents, known_out, text_field, paragraphs=paragraphs)
    budget = Budget(price_in=price_in, price_out=price_out)
    if json_out is not None:
        check_writable(json_out)
    options = TransportOptions(read_timeout=timeout, key_env=key_env, retry=RetryPolicy(retries=1))
    found = asyncio.run(_examine(target, options))
    possible, broken = _admitted(found.capabilities)
    sampled = _by_sampling(found.capabilities)
    screen = console()
    lines = (
        *_seen(found),
        ("audits possible", ", ".join(possible) or "none"),
        *(
            (f"{name} by sampling", f"--set sampled={_SAMPLES}, {_SAMPLES} times the queries")
            for name in sampled
        ),
        *((("samples", _DRAWN[found.samples_differ]),) if sampled else ()),
        *(() if plan else (("cost and power", "ragwitness plan --documents FILE"),)),
        *(("note", note) for note in (*found.notes, *broken)),
    )
    screen.print(_beside(lines))
    outlook = None
    if plan is not None and possible:
        outlook = _foresee(plan, dict.fromkeys(possible) | sampled, found.latency, budget)
        screen.print(forecast_terminal(outlook))
    if json_out is not None:
        _store(json_out, found, possible, sampled, outlook)
    if not possible:
        raise CapabilityError(
            "No audit can be run: the target answers with nothing that can be read.",
            "Look at one answer of it by hand.",
        )


async def _examine(target: str, options: TransportOptions) -> CapabilityReport:
    """Ask the target what it can do, and where it shows text alone, whether its answers differ."""
    from ragwitness.targets import open_target, probe_capabilities
    from ragwitness.targets.probe import probe_sampling
    from ragwitness.types import Capability

    opened = await open_target(target, options)
    try:
        found = await probe_capabilities(opened)
        if Capability.TOP_LOGPROBS in found.capabilities:
            return found
        return await probe_sampling(opened, found)
    finally:
        await opened.close()


def _beside(lines: Iterable[tuple[str, str]]) -> Table:
    """Lay labels and values out in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid()
    table.add_column(width=24)
    table.add_column(overflow="fold")
    for label, value in lines:
        table.add_row(Text(label), Text(value))
    return table


def _seen(found: CapabilityReport) -> tuple[tuple[str, str], ...]:
    return (
        ("target", found.target),
        ("capabilities", ", ".join(sorted(found.capabilities))),
        ("alternatives per token", str(found.alternatives)),
        ("prompt scores (echo)", {True: "yes", False: "no", None: "not asked"}[found.echo]),
        ("seconds per answer", f"{found.latency:.2f}"),
        ("queries spent", str(found.requests)),
    )


def _store(
    path: Path,
    found: CapabilityReport,
    possible: list[str],
    sampled: Mapping[str, Any],
    outlook: Outlook | None,
) -> None:
    """Write everything seen and foreseen as JSON."""
    from dataclasses import asdict

    from ragwitness.cli.plan import store
    from ragwitness.report.forecast import forecast_json

    data = asdict(found) | {
        "capabilities": sorted(found.capabilities),
        "notes": list(found.notes),
        "audits": possible,
        "audits_by_sampling": {name: config.sampled for name, config in sampled.items()},
        "forecast": None if outlook is None else forecast_json(outlook),
    }
    store(path, data)


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


def _foresee(
    plan: AuditPlan, configs: Mapping[str, Any], latency: float, budget: Budget
) -> Outlook:
    from ragwitness.cli.plan import assumed, foresee
    from ragwitness.runs import OutlookPlan

    asked = OutlookPlan(plan, assumed(configs), budget=budget)
    return foresee(asked, configs, "reader", latency)


def _by_sampling(capabilities: frozenset[Capability]) -> dict[str, Any]:
    """Configurations of the audits that can estimate the log-probabilities a target lacks."""
    from dataclasses import replace

    from ragwitness.membership.registry import AUDITS, configure
    from ragwitness.types import Capability

    if Capability.TOP_LOGPROBS in capabilities:
        return {}
    configs = {name: configure(name) for name in AUDITS}
    return {
        name: replace(config, sampled=_SAMPLES)
        for name, config in configs.items()
        if hasattr(config, "sampled")
    }


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
