"""``ragwitness monitor``: does a log still hold what it showed before?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.signing import Json, Trusted, print_values

__all__ = ["monitor"]

_LONGEST = 1 << 18


def monitor(
    public: Annotated[Path, typer.Argument(help="A window's public folder, or a copy of it.")],
    trust: Trusted,
    state: Annotated[
        Path, typer.Option(help="Where you keep the last checkpoint that you accepted.")
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="One that somebody else was shown: compare it with STATE, no more."),
    ] = None,
    cosign: Annotated[
        Path | None, typer.Option(help="Your key as a witness; made if --name is given.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Your name as a witness, for a new key.")] = None,
    as_json: Json = False,
) -> None:
    """Check that a log only grew since the last look. With --cosign, sign that as a witness.

    Exits with 3 where it did not: log.rolled_back, log.split_view, log.consistency; then STATE and
    the checkpoint, both signed by the log, are the evidence. With --cosign, STATE holds the
    checkpoint with your signature, for the provider to publish.
    """
    import time

    from ragwitness.attest.folder import read_bytes, write_whole
    from ragwitness.attest.monitoring import compare, watch
    from ragwitness.cli.signing import key_at, signers
    from ragwitness.crypto.keys import KeyKind

    who = signers(trust, witnessed=cosign is None and checkpoint is None)
    if checkpoint is not None:
        theirs, mine = read_bytes(checkpoint, _LONGEST), read_bytes(state, _LONGEST)
        first, second = compare(public / "log", theirs, mine, who)
        sizes: dict[str, object] = {"holds": True, "sizes": [first.size, second.size]}
        print_values({**sizes, "log": first.origin}, as_json=as_json)
        return
    note = read_bytes(public / "checkpoint", _LONGEST)
    known = read_bytes(state, _LONGEST) if state.exists() else None
    key = key_at(cosign, name, KeyKind.COSIGNATURE) if cosign is not None else None
    seen = watch(public / "log", note, who, known, key, int(time.time()))
    write_whole(state, seen.note)
    values: dict[str, object] = {
        "holds": True,
        "log": seen.new.checkpoint.origin,
        "before": seen.old.size if seen.old else None,
        "now": seen.new.checkpoint.size,
        "witness": key.public.text if key else None,
    }
    print_values(values, as_json=as_json)
