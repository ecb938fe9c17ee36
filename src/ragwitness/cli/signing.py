"""Keys and the verifier's trust file, for the verbs of an audit window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.crypto.keys import KeyKind, PrivateKey
    from ragwitness.crypto.notes import Policy as Signers

__all__ = ["Json", "Key", "Output", "Trusted", "key_at", "new_file", "print_values", "signers"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Key = Annotated[Path, typer.Option("--key", help="The log's private key.")]
Output = Annotated[Path, typer.Option("--out", "-o", help="File to write; must not exist.")]
Trusted = Annotated[
    Path, typer.Option("--trust", help="Your own trust.json: whose signatures count.")
]

_LONGEST = 1 << 20


def key_at(path: Path, name: str | None, kind: KeyKind) -> PrivateKey:
    """Return the key of a file; where there is none and a name is given, make one.

    Raises:
        InputError: The file holds no key, or is missing and there is no name.
    """
    from ragwitness.crypto.keys import PrivateKey, read_key, write_key

    if path.exists():
        return read_key(path)
    if name is None:
        raise InputError(
            f"There is no key in {path}.", "With --name NAME one is made, e.g. example.org/log."
        )
    made = PrivateKey.generate(name, kind)
    write_key(path, made)
    return made


def signers(path: Path, *, witnessed: bool = False) -> Signers:
    """Return whose signatures count under what a log shows while it serves, out of a trust file.

    Args:
        path: The file.
        witnessed: Ask for its quorum of witnesses, who sign later than receipts are given.
    """
    from dataclasses import replace

    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.trust import parse_trust

    known = parse_trust(read_bytes(path, _LONGEST))
    return replace(known.notes, strict=False) if witnessed else known.listeners


def new_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist.

    Raises:
        InputError: It exists, or cannot be written.
    """
    from ragwitness.attest.folder import write_whole

    if path.exists():
        raise InputError(f"{path} exists; it is not overwritten.", "Choose another file with -o.")
    write_whole(path, data)


def print_values(values: dict[str, object], *, as_json: bool) -> None:
    """Print names and values in two columns, or as JSON; what cannot be seen is named."""
    if as_json:
        import json

        typer.echo(json.dumps(values, indent=2))
        return
    from ragwitness.report.wording import visible

    width = max(map(len, values))
    for name, value in values.items():
        parts = (
            [f"{key} {part}" for key, part in value.items()] if isinstance(value, dict) else value
        )
        shown = ", ".join(map(str, parts)) if isinstance(parts, list) else parts
        typer.echo(f"{name.replace('_', ' '):<{width}}  {visible(str(shown), _LONGEST)}")
