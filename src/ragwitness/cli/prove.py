"""``ragwitness prove``: answer a challenge with a bundle, phase D of the provider."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.signing import Json, Key, Output, print_values

__all__ = ["prove"]

_LONGEST = 1 << 20


def prove(
    window: Annotated[Path, typer.Argument(help="The window's folder, closed.")],
    challenge: Annotated[Path, typer.Argument(help="What ragwitness challenge wrote.")],
    setup: Annotated[Path, typer.Option(help="Folder of the setup the window was opened with.")],
    key: Key,
    output: Output,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Answer a second challenge: opens the noise of more answers, for good.",
        ),
    ] = False,
    prover: Annotated[
        str, typer.Option(help="built-in, or a program that is installed: groth16py, snarkjs.")
    ] = "built-in",
    as_json: Json = False,
) -> None:
    """Prove the challenged records and write the bundle. A verifier needs nothing else of it.

    The noise of these records is opened, and their queries where the provider keeps them. A run
    that is stopped goes on where it was.
    """
    from ragwitness.attest.challenge import parse_challenge
    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.proving import prove_window
    from ragwitness.attest.window import Window
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.signing import new_file
    from ragwitness.crypto.keys import read_key
    from ragwitness.crypto.proofs.proving import load_prover_setup
    from ragwitness.errors import InputError

    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another file with -o.")
    asked = parse_challenge(read_bytes(challenge, _LONGEST))
    held = Window.load(window, [read_key(key)])
    with progress_bars(console(), items="records") as progress:
        data = prove_window(held, asked, load_prover_setup(setup, prover), progress, again=again)
    new_file(output, data)
    values: dict[str, object] = {
        "bundle": str(output),
        "bytes": len(data),
        "records": len(asked.records),
    }
    print_values(values, as_json=as_json)
