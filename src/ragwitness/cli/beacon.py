"""``ragwitness attest beacon`` and ``begin``: a public value enters the noise before any answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.cli.attest import print_values
from ragwitness.cli.options import AsJson, Key, Window
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file, replace_file
from ragwitness.core.options import Arg, Opt, PathRole

_SMALL = 1 << 20


def beacon(
    public: Annotated[Path, PathRole.READS, Arg()],
    trust: Annotated[Path, PathRole.KEEPS],
    output: Annotated[Path, PathRole.WRITES, Opt("--out", short="-o")],
    value: Annotated[str | None, Opt(shown="drawn here")] = None,
    source: str = "drawn by the auditor",
    as_json: AsJson = False,
) -> None:
    """Draw the value that enters the noise of a window.

    The provider has committed to its secret, so that neither of you chooses the noise alone. It
    must be logged (ragwitness attest begin) before the first query is answered.

    Args:
        public: The public folder of the opened window, or a copy of it.
        trust: Your own trust.json. The opening is checked by it, and the value and the opening are
            written into it.
        output: The file for the provider, to be made.
        value: A public random value that came after the opening: 64 lower-case hex digits.
        source: Where the value comes from, e.g. the round of a public beacon.
    """
    import os
    from dataclasses import replace

    from pydantic import ValidationError

    from ragwitness.attest.commitments import checkpoint_token
    from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
    from ragwitness.attest.trust import parse_trust
    from ragwitness.crypto.notes.note import MAX_NOTE
    from ragwitness.crypto.notes.witness import open_checkpoint
    from ragwitness.crypto.transcript.records import BeaconRecord, encode

    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another -o.")
    known = parse_trust(read_file(trust, _SMALL))
    # Step 1: the opening, signed: what the provider committed to before this value was drawn.
    opened = open_checkpoint(read_file(public / "open.checkpoint", MAX_NOTE), known.listeners)
    shown = checkpoint_token(opened.checkpoint.size, opened.checkpoint.root)
    window = WindowPolicy.parse(read_file(public / "policy.json", MOST_BYTES)).window
    # Step 2: the value, in its one spelling.
    drawn = os.urandom(32).hex() if value is None else value
    try:
        record = BeaconRecord(window=window, value=drawn, source=source)
    except ValidationError as error:
        raise InputError(
            f"{drawn[:80]!r} is no beacon, or {source[:80]!r} no source of one.",
            "Give 32 bytes as 64 lower-case hex digits, and a source of 1 to 256 characters.",
        ) from error
    # Step 3: into the trust file first: a value that nobody remembers binds nobody.
    if known.noise_beacon and known.noise_beacon.hex() != drawn:
        raise InputError(
            f"{trust} holds another beacon of the noise; a window has one.",
            f"The same is made again by --value {known.noise_beacon.hex()}.",
        )
    replace_file(
        trust, replace(known, noise_beacon=bytes.fromhex(drawn), noise_open=shown).encode()
    )
    replace_file(output, encode(record))
    print_values(
        {"window": window, "beacon": drawn, "source": source, "opening": shown}, as_json=as_json
    )


def begin(
    window: Window,
    file: Annotated[Path, PathRole.READS, Arg()],
    key: Key,
    as_json: AsJson = False,
) -> None:
    """Log the value that enters the noise of a window.

    Do it before the first query: a window whose noise you could have chosen alone passes no
    verification. It is logged once.

    Args:
        file: The file that ragwitness attest beacon wrote.
    """
    from ragwitness.attest.window import Window
    from ragwitness.crypto.keys import read_key
    from ragwitness.crypto.transcript.records import BeaconRecord, decode

    held = Window.load(window, [read_key(key)])
    record = decode(read_file(file, _SMALL))
    if not isinstance(record, BeaconRecord) or record.window != held.policy.window:
        raise InputError(
            f"{file} is no beacon of the window {held.policy.window}.",
            "Ask the auditor for one: ragwitness attest beacon.",
        )
    held.begin(record.value, record.source)
    held.publish()
    print_values({"beacon": record.value, "checkpoint": held.checkpoint}, as_json=as_json)
