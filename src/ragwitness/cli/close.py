"""``ragwitness close``: end an audit window, phase C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.signing import Json, Key, print_values

__all__ = ["close"]


def close(
    window: Annotated[Path, typer.Argument(help="The window's folder.")],
    key: Key,
    as_json: Json = False,
) -> None:
    """Close a window and sign its last checkpoint. The coalition is estimated and logged.

    No query can follow. WINDOW/public/close.checkpoint is what a challenge is drawn from.
    """
    from ragwitness.attest.closing import close_window
    from ragwitness.attest.window import Window
    from ragwitness.crypto.keys import read_key

    held = Window.load(window, [read_key(key)])
    found = close_window(held)
    cap = held.policy.k_max
    values: dict[str, object] = {
        "window": held.policy.window,
        "queries": found.queries,
        "accounts": len(held.ledger.accounts),
        "coalition": found.size,
        "k_max": cap,
        "within_policy": found.size <= cap,
        "checkpoint": held.checkpoint,
    }
    print_values(values, as_json=as_json)
    if found.size > cap and not as_json:
        typer.echo(f"An audit will fail: {found.size} accounts asked alike, {cap} are declared.")
