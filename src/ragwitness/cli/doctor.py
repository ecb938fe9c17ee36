"""``ragwitness doctor``: what a target can do, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.types import Capability

__all__ = ["doctor"]


def doctor(
    target: Annotated[str, typer.Argument(help="lab:FILE or the base URL of an endpoint.")],
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    key_env: Annotated[
        str | None,
        typer.Option(help="Variable with the API key; OPENAI_API_KEY for api.openai.com alone."),
    ] = None,
) -> None:
    """Send a few harmless queries and say which audits the target admits."""
    import asyncio

    from ragwitness.cli.common import console, resolve
    from ragwitness.errors import CapabilityError
    from ragwitness.targets import (
        CapabilityReport,
        RetryPolicy,
        TransportOptions,
        probe_capabilities,
    )

    async def examine() -> CapabilityReport:
        opened = await resolve(
            target,
            TransportOptions(read_timeout=timeout, key_env=key_env, retry=RetryPolicy(retries=1)),
        )
        try:
            return await probe_capabilities(opened)
        finally:
            await opened.close()

    found = asyncio.run(examine())
    screen = console()
    possible = _admitted(found.capabilities)
    for label, value in (
        ("target", found.target),
        ("capabilities", ", ".join(sorted(found.capabilities))),
        ("alternatives per token", str(found.alternatives)),
        ("prompt scores (echo)", {True: "yes", False: "no", None: "not asked"}[found.echo]),
        ("seconds per answer", f"{found.latency:.2f}"),
        ("queries spent", str(found.requests)),
        ("audits possible", ", ".join(possible) or "none"),
        *(("note", note) for note in found.notes),
    ):
        screen.print(f"{label:<24}{value}", markup=False)
    if not possible:
        raise CapabilityError(
            "No audit can be run: the target answers with nothing that can be read.",
            "Look at one answer of it by hand.",
        )


def _admitted(capabilities: frozenset[Capability]) -> list[str]:
    """Names of the audits whose needs are met."""
    from ragwitness.membership.registry import AUDITS, build_audit
    from ragwitness.models import load_language_model

    proxy = load_language_model("reader")
    return [name for name in AUDITS if build_audit(name, proxy).requires <= capabilities]
