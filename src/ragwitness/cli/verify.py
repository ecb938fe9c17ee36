"""``ragwitness verify``: PASS, FAIL or INCONCLUSIVE on one file, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import AsJson
from ragwitness.errors import ExitCode, InputError
from ragwitness.kit.options import Arg, Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.attest.trust import Trust
    from ragwitness.attest.verifier.case import Embed

_SMALL = 1 << 20
_DRAFT = "Begin with the trust.json that ragwitness attest commit writes beside the window."
_MOST_FILES = 100_000


def verify(
    bundle: Annotated[Path, PathRole.READS, Arg()],
    trust: Annotated[Path | None, PathRole.READS] = None,
    receipt: Annotated[list[Path] | None, PathRole.READS] = None,
    checkpoint: Annotated[list[Path] | None, PathRole.READS] = None,
    embedder: Annotated[str | None, PathRole.ADDRESS] = None,
    key: Annotated[str | None, Opt(metavar="TEXT")] = None,
    seal: Annotated[str | None, Opt(metavar="SHA256")] = None,
    roots: Annotated[Path | None, PathRole.READS] = None,
    models: Annotated[list[str] | None, Opt(metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a sealed file by itself, offline.

    It tells by the file what it is. Of an evidence pack it recomputes every score, p-value and
    verdict from the recorded answers, and says by name what hidden texts keep it from. Of the
    bundle of an audit window it checks the proofs. It needs no network, and believes nothing that
    the file says of itself; what the verdict rests on besides is in the verdict. It exits with 0
    for PASS, with 3 for FAIL, and with 4 for INCONCLUSIVE, where nothing is wrong and something is
    missing, such as hidden texts or your own terms (ragwitness attest pin).

    Args:
        bundle: A sealed file: an evidence pack that ragwitness seal wrote, or the bundle that
            ragwitness attest prove wrote.
        trust: For a bundle: your own trust.json with log and beacon. Without it no bundle
            can pass.
        receipt: For a bundle: an account's receipt, or a folder of them. May be repeated.
        checkpoint: A checkpoint of this log that somebody else was shown. May be repeated.
        embedder: For a bundle: embed the opened texts again, by minilm, hf:NAME, URL#MODEL or
            hashing:DIMENSION.
        key: For a pack: the public key of whoever ran the audit, as they published it.
        seal: For a pack: the seal that you were told of before the answers came.
        roots: For a pack: the certificates (PEM) of the timestamp authorities that you trust.
        models: For a pack: load this model, too, where the pack names it just so, or ask this
            server for it. Without it only packaged models are loaded. May be repeated.
    """
    import json

    from ragwitness.attest.bundle import MAX_ARCHIVE
    from ragwitness.cli.common import console, one_thread_per_answer, progress_bars
    from ragwitness.crypto.keys import PublicKey
    from ragwitness.evidence.kinds import SEALED, sealed_kind
    from ragwitness.kit.files import map_file, read_file
    from ragwitness.kit.workers import workers
    from ragwitness.report.terminal import terminal
    from ragwitness.results.verdict import KIND

    # Step 1: what the auditor brings. It is not in the bundle, because the provider wrote the
    # bundle.
    known: Trust | None = None
    if trust is not None:
        from ragwitness.attest.trust import parse_trust

        known = parse_trust(read_file(trust, _SMALL, _DRAFT))
    receipts = [read_file(path, _SMALL) for path in _files(receipt or ())]
    seen = [read_file(path, _SMALL) for path in _files(checkpoint or ())]
    embed = None if embedder is None else _embed(embedder)
    # Step 2: the file, of a bounded size before anything in it is believed, and what it is.
    data = map_file(
        bundle, MAX_ARCHIVE, "Give the file that ragwitness seal or ragwitness attest prove wrote."
    )
    kind = sealed_kind(data)
    judge = SEALED.load(kind)
    given: dict[str, object]
    if kind == "pack.json":
        from ragwitness.evidence.case import PackKnown

        of_bundles = {"trust": trust, "receipt": receipt, "embedder": embedder}
        _refuse_beside("a pack", **of_bundles)
        whose = None if key is None else PublicKey.parse(key.strip())
        given = {"known": PackKnown(whose, seal, seen, roots, models or ())}
        workers(1)  # answers are replayed one after the other, in this process
        one_thread_per_answer()
    else:
        _refuse_beside("a bundle", key=key, seal=seal, roots=roots, models=models)
        given = {"trust": known, "receipts": receipts, "seen": seen, "embed": embed}
    screen = console()
    # Step 3: the checks, one after the other; both forms of output show the same verdict.
    if as_json:
        found = judge(data, **given)
        typer.echo(json.dumps(KIND.stored(found), indent=1, allow_nan=False))
    else:
        items = "documents" if kind == "pack.json" else "proofs"
        with progress_bars(screen, items=items) as progress:
            found = judge(data, **given, progress=progress)
        screen.print(terminal(KIND.sheet(found), width=screen.width))
    # Step 4: the exit code. Something missing is not something wrong, and neither is a pass.
    codes = {"pass": ExitCode.PASS, "fail": ExitCode.FAILED, "inconclusive": ExitCode.INCONCLUSIVE}
    raise typer.Exit(codes[found.outcome])


def _refuse_beside(what: str, **options: object) -> None:
    """Refuse options that say nothing about this kind of file: they would seem to be checked."""
    if idle := next((name for name, value in options.items() if value), None):
        raise InputError(f"--{idle} does not apply to {what}.", "Leave it out.")


def _files(given: Sequence[Path]) -> list[Path]:
    """Return files, and those in folders in the order of their names."""
    found: list[Path] = []
    for path in given:
        found += sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    if len(found) > _MOST_FILES:
        raise InputError(f"{len(found):,} files are too many.", "Check a sample of the receipts.")
    return found


def _embed(name: str) -> Embed:
    from ragwitness.models.registry import load_embedder

    return load_embedder(name).embed
