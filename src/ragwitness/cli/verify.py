"""``ragwitness verify``: PASS, FAIL or INCONCLUSIVE on one file, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.signing import Json
from ragwitness.errors import ExitCode, InputError

if TYPE_CHECKING:
    from ragwitness.attest.trust import Trust
    from ragwitness.attest.verdict import Empirical
    from ragwitness.attest.verifying.steps import Embed

__all__ = ["verify"]

_SMALL = 1 << 20
_DRAFT = "Begin with the trust.json that ragwitness commit writes beside the window."
_MOST_FILES = 100_000


def verify(
    bundle: Annotated[Path, typer.Argument(help="File that ragwitness prove wrote.")],
    trust: Annotated[
        Path | None,
        typer.Option(
            help="Your own trust.json: log, setup, beacon. Without it nothing can pass.",
        ),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(help="Receipt of an account, or a folder of them. May be repeated."),
    ] = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(help="Checkpoint of this log that someone else was shown. May be repeated."),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="Embed the opened texts again: minilm, hf:NAME, hashing:DIMENSION, …"),
    ] = None,
    empirical: Annotated[
        Path | None, typer.Option(help="Lower bound that an attack has shown, JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check an audit window from its bundle alone. No network, no index, no trust in the provider.

    Exit codes: 0 PASS, 3 FAIL, 4 INCONCLUSIVE (nothing is wrong, and something is missing).
    """
    from ragwitness.attest.archive import MAX_ARCHIVE
    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.trust import parse_trust
    from ragwitness.attest.verifying import verify as judge
    from ragwitness.cli.common import console, progress_bars

    known: Trust | None = None
    if trust is not None:
        known = parse_trust(read_bytes(trust, _SMALL, _DRAFT))
    receipts = [read_bytes(path, _SMALL) for path in _files(receipt or ())]
    seen = [read_bytes(path, _SMALL) for path in _files(checkpoint or ())]
    shown = None if empirical is None else _empirical(empirical)
    embed = None if embedder is None else _embed(embedder)
    data = read_bytes(bundle, MAX_ARCHIVE, "Give the file that ragwitness prove wrote.")
    screen = console()
    if as_json:
        found = judge(data, known, receipts=receipts, seen=seen, embed=embed, empirical=shown)
        _print_json(found)
    else:
        from ragwitness.report.attested import verdict_terminal

        with progress_bars(screen, items="proofs") as progress:
            found = judge(
                data,
                known,
                receipts=receipts,
                seen=seen,
                embed=embed,
                empirical=shown,
                progress=progress,
            )
        screen.print(verdict_terminal(found))
    codes = {
        "pass": ExitCode.PASS,
        "fail": ExitCode.FAILED,
        "inconclusive": ExitCode.INCONCLUSIVE,
    }
    raise typer.Exit(codes[found.outcome])


def _print_json(verdict: Any) -> None:
    import json

    from ragwitness.report.attested import verdict_json

    typer.echo(json.dumps(verdict_json(verdict), indent=1, allow_nan=False))


def _files(given: Sequence[Path]) -> list[Path]:
    """Return files, and those in folders in the order of their names."""
    found: list[Path] = []
    for path in given:
        found += sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    if len(found) > _MOST_FILES:
        raise InputError(f"{len(found):,} files are too many.", "Check a sample of the receipts.")
    return found


def _embed(name: str) -> Embed:
    from ragwitness.service.embedding import tenant_embedder

    return tenant_embedder(name).embed


def _empirical(path: Path) -> Empirical:
    from ragwitness.attest.empirical import parse_empirical
    from ragwitness.attest.folder import read_bytes

    return parse_empirical(read_bytes(path, _SMALL))
