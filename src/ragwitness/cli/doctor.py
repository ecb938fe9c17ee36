"""``ragwitness doctor``: what a target can do, measured."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["doctor"]


def doctor(
    target: Annotated[str, typer.Argument(help="lab:FILE or the base URL of an endpoint.")],
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    key_env: Annotated[
        str, typer.Option(help="Environment variable that holds the API key.")
    ] = "OPENAI_API_KEY",
) -> None:
    """Send a few harmless queries and say which audits the target admits."""
    import asyncio

    from ragwitness.cli.common import console, resolve
    from ragwitness.errors import CapabilityError
    from ragwitness.runs import examine
    from ragwitness.types import Capability

    opened = resolve(target, timeout=timeout, key_env=key_env)
    report = asyncio.run(examine(opened))
    screen = console()
    for label, value in report.lines():
        screen.print(f"{label:<24}{value}", markup=False)
    if Capability.TOP_LOGPROBS not in report.capabilities:
        raise CapabilityError(
            "No audit of this version can be run: s-rag needs log-probabilities.",
            "Ask for a model or server that returns them (see 'logprobs' in its documentation).",
        )
    screen.print(f"{'audits possible':<24}s-rag (single, probing)", markup=False)
