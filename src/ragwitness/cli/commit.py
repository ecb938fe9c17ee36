"""``ragwitness commit``: open an audit window, phase A."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.signing import Json, key_at, print_values
from ragwitness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragwitness.attest.committing import Contents

__all__ = ["commit"]


def _example(show: bool) -> None:
    if show:
        from ragwitness.attest.policy_file import EXAMPLE

        typer.echo(EXAMPLE, nl=False)
        raise typer.Exit


def commit(
    policy: Annotated[Path, typer.Option(help="What is promised, TOML; see --example-policy.")],
    setup: Annotated[Path, typer.Option(help="Folder that ragwitness setup made.")],
    key: Annotated[Path, typer.Option(help="The log's private key; made if --name is given.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="The window's folder.")],
    index: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENANT=FILE",
            help="Documents (JSONL, CSV, text, a folder), or vectors (.npy, one row per slot)."
            " May be repeated.",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="The service's, in place of --index, for serve --attest."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--window", help="With --database: the tenants' window; the first free one."),
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="minilm, hf:NAME, URL#MODEL or hashing:DIMENSION.")
    ] = "minilm",
    name: Annotated[
        str | None, typer.Option(help="Name of the log, for a new key; e.g. example.org/log.")
    ] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the documents' text.")
    ] = None,
    example_policy: Annotated[  # noqa: ARG001  # read before the rest
        bool,
        typer.Option(
            "--example-policy", callback=_example, is_eager=True, help="Print a policy and exit."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Open a window: commit to what it holds before any query.

    That is indexes, noise, embedder and policy. OUTPUT/public is for everybody, OUTPUT/secret for
    nobody else. OUTPUT/trust.json holds what the auditor compares with what it knows: the log's
    public key, and the setup's digest.
    """
    import sys

    from ragwitness.attest.committing import open_window
    from ragwitness.attest.embedder import Embedder
    from ragwitness.attest.policy_file import read_policy
    from ragwitness.attest.publishing import window_key
    from ragwitness.attest.window import Window
    from ragwitness.cli.from_database import held_indexes, take
    from ragwitness.cli.indexing import artifacts, read_indexes
    from ragwitness.crypto.keys import KeyKind

    promised = read_policy(policy)
    if output.exists():
        raise InputError(f"{output} exists; a window is opened once.", "Choose another -o.")
    if (database is None) is not bool(index):
        raise InputError(
            "A window's indexes come from files or from a database.",
            "Give --index TENANT=FILE for each tenant, or --database DB.",
        )
    held = None if database is None else held_indexes(promised, database)
    contents: Mapping[str, Contents]
    if held is None:
        contents = read_indexes(promised, index or (), embedder, text_field)
    else:
        contents, embedder = held.contents, held.embedder
    signer = window_key(key_at(key, name, KeyKind.NOTE), promised.window)

    def progress(step: str) -> None:
        sys.stderr.write(f"committing: {step}\n")

    by = Embedder.of(artifacts(embedder))
    open_window(output, promised, contents, by, setup, [signer], progress)
    numbers: dict[str, int] = {}
    if database is not None and held is not None:
        numbers = take(output, promised, database, held, number)
    digest = _trust(output, signer.public.text)
    window = Window.load(output)
    values: dict[str, object] = {
        "window": promised.window,
        "folder": str(output),
        "policy": promised.digest,
        "setup": digest,
        "log": signer.public.text,
        "checkpoint": window.checkpoint,
        "tenants": list(promised.tenants),
    }
    if numbers:
        values["numbers"] = numbers
    print_values(values, as_json=as_json)


def _trust(folder: Path, key: str) -> str:
    """Write what an auditor has to compare; return the setup's digest."""
    from ragwitness.attest.folder import read_bytes, write_whole
    from ragwitness.attest.index import sha256_hex
    from ragwitness.attest.trust import Trust
    from ragwitness.crypto.keys import PublicKey
    from ragwitness.crypto.notes import Policy as Signers

    digest = sha256_hex(read_bytes(folder / "public" / "setup.json", 1 << 20))
    trust = Trust(Signers((PublicKey.parse(key),)), digest)
    write_whole(folder / "trust.json", trust.encode())
    return digest
