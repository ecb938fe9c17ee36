"""``ragwitness challenge``: which records a provider has to prove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.signing import Json
from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.attest.challenge import Challenge
    from ragwitness.attest.trust import Trust
    from ragwitness.crypto.notes import Checkpoint

__all__ = ["challenge"]

_NOTE = 1 << 18
_LOG = 512 << 20


def challenge(
    public: Annotated[
        Path, typer.Argument(help="The closed window's public folder, or a copy of it.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="File for the provider.")],
    trust: Annotated[
        Path | None,
        typer.Option(
            help="Your trust.json: the close is checked by it, and it gets beacon, number of"
            " records and close."
        ),
    ] = None,
    beacon: Annotated[
        str | None,
        typer.Option(
            help="Public random value in hex, drawn after the close.", show_default="drawn here"
        ),
    ] = None,
    records: Annotated[int | None, typer.Option(help="How many to prove.")] = None,
    share: Annotated[
        float | None, typer.Option(help="As many as find this share of bad records, e.g. 0.05.")
    ] = None,
    miss: Annotated[float, typer.Option(help="How often --share may go unseen.")] = 0.05,
    everything: Annotated[bool, typer.Option("--all", help="All of them: Mode A.")] = False,
    as_json: Json = False,
) -> None:
    """Draw the records that a provider has to prove. It could not foresee the randomness.

    The window must be closed before the beacon is known; then the close fixes every record.
    """
    from dataclasses import replace

    from ragwitness.attest.challenge import make_challenge, records_for
    from ragwitness.attest.folder import write_whole
    from ragwitness.attest.openings import checkpoint_token

    if (records is not None) + (share is not None) + everything != 1:
        raise InputError("Say how many records to prove.", "Give --records, --share or --all.")
    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another -o.")
    known = None if trust is None else _trust(trust)
    close, population = _close(public, known)
    if everything:
        count = population
    elif share is not None:
        count = records_for(population, share, miss)
    else:
        count = records or 0
    made = make_challenge(_beacon(beacon), close, population, count)
    shown = checkpoint_token(close.size, close.root)
    if trust is not None and known is not None:
        # First: a challenge that nobody remembers is worth nothing.
        _remember(trust, known, replace(known, beacon=made.beacon, records=count, close=shown))
    write_whole(output, made.encode())
    _print(made, shown, as_json=as_json)


def _print(made: Challenge, close: str, *, as_json: bool) -> None:
    import json

    from ragwitness.attest.verifying import sampling_of
    from ragwitness.report.attested import sampling_line

    sampling = sampling_of(made.population, len(made.records))
    if as_json:
        values = {
            "beacon": made.beacon.hex(),
            "close": close,
            "population": made.population,
            "records": list(made.records),
            "detection": [{"bad": bad, "chance": found} for bad, found in sampling.detection],
        }
        typer.echo(json.dumps(values, indent=2))
        return
    typer.echo(f"beacon  {made.beacon.hex()}\nclose   {close}")
    typer.echo(sampling_line(sampling).replace("were proved", "are to be proved"))


def _beacon(text: str | None) -> bytes:
    import os

    if text is None:
        return os.urandom(32)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InputError(
            f"The beacon {text[:40]!r} is no hex.", "Give 32 random bytes as 64 hex digits."
        ) from error


def _trust(path: Path) -> Trust:
    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.trust import parse_trust

    return parse_trust(read_bytes(path, 1 << 20))


def _remember(path: Path, known: Trust, drawn: Trust) -> None:
    """Write a challenge into a trust file that has none, or this one.

    Raises:
        VerificationError: ``challenge.close``; the log was closed otherwise when it was drawn.
        InputError: Another was drawn before.
    """
    from ragwitness.attest.folder import write_whole
    from ragwitness.errors import VerificationError

    if known.close not in ("", drawn.close):
        raise VerificationError(
            "challenge.close",
            f"The log was closed with {known.close!r} when {path} got its challenge, and now with"
            f" {drawn.close!r}: it has two histories.",
        )
    if known.beacon and known != drawn:
        raise InputError(
            f"{path} holds the beacon of a challenge; a window has one.",
            f"The same is made again by --beacon {known.beacon.hex()} --records {known.records}.",
        )
    write_whole(path, drawn.encode())


def _close(public: Path, trust: Trust | None) -> tuple[Checkpoint, int]:
    """Return the closing checkpoint and the number of query records, checked against each other.

    Raises:
        InputError: The window is not closed, or a file is missing.
        VerificationError: The checkpoint is not of this log, or not by the trusted keys.
    """
    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.ledger import read_entries
    from ragwitness.crypto.log import MerkleLog
    from ragwitness.crypto.notes import Checkpoint, Note, open_checkpoint
    from ragwitness.crypto.transcript import CloseRecord, QueryRecord, decode
    from ragwitness.errors import VerificationError

    path = public / "close.checkpoint"
    if not path.exists():
        raise InputError(
            f"{public} holds no close.checkpoint: the window is open, or this is another folder.",
            "Close it first (ragwitness close), and give its public folder.",
        )
    data = read_bytes(path, _NOTE)
    if trust is not None:
        found = open_checkpoint(data, trust.notes).checkpoint
    else:
        found = Checkpoint.parse(Note.parse(data).text)
    entries = list(read_entries(read_bytes(public / "log" / "entries.bin", _LOG)))
    log = MerkleLog()
    log.extend(entries)
    if (log.size, log.root()) != (found.size, found.root):
        raise VerificationError("log.root", f"The log in {public} is not the one that was closed.")
    records = list(map(decode, entries))
    if not records or not isinstance(records[-1], CloseRecord):
        raise VerificationError("close.last", f"The log in {public} ends with no close record.")
    return found, sum(isinstance(record, QueryRecord) for record in records)
