"""What a verifier knows before it opens a bundle: whose log, and which randomness.

Nothing in a bundle can say these: a provider that made them up could prove anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from ragwitness.attest.commitments import parse_token
from ragwitness.attest.pins import Pins, parse_pins
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.keys import PublicKey
from ragwitness.crypto.notes.witness import Signers
from ragwitness.errors import InputError, VerificationError

TRUST_VERSION = "ragwitness/trust/v1"

_LONGEST = 1 << 20
_LISTS, _HEX = ("log", "witnesses"), ("beacon", "noise_beacon")
_IGNORED = "setup"  # of trust files of before: proofs no longer rest on a setup that one chooses
_LATER = ("noise_beacon", "noise_open", "noise_time")  # written where they say something


@dataclass(frozen=True, slots=True)
class Trust:
    """A verifier's own knowledge.

    Attributes:
        notes: Keys of the log and of its witnesses, and how many of these must have signed.
        beacon: The public random value of the challenge; empty before there is one.
        records: How many records were challenged; 0 before there is a challenge.
        close: The close from which they were drawn, as
            :func:`~ragwitness.attest.commitments.checkpoint_token` writes it; empty before. A log
            that is closed again once the beacon is known can be closed so that bad records are
            missed.
        pins: What the window's policy and embedder must be. A trust file of before has
            none, and nothing passes by it.
        noise_beacon: The public value that enters every noise of the window; empty for none.
        noise_open: A checkpoint of the opened window, as ``checkpoint_token`` writes it, that was
            shown before that value was drawn; empty where the verifier did not see one.
        noise_time: When the value became known, POSIX seconds; 0 where that is not known. Either
            of the two shows that the provider had committed to its secret before.
    """

    notes: Signers
    beacon: bytes = b""
    records: int = 0
    close: str = ""
    pins: Pins = field(default_factory=Pins)
    noise_beacon: bytes = b""
    noise_open: str = ""
    noise_time: int = 0

    @property
    def listeners(self) -> Signers:
        """Keys whose signatures count under what the log showed while it served.

        No witness is asked for: none can have signed yet.
        """
        return replace(self.notes, quorum=0)

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        pins = self.pins.plain()
        noise = {
            "noise_beacon": self.noise_beacon.hex(),
            "noise_open": self.noise_open,
            "noise_time": self.noise_time,
        }
        return canonical(
            ({"pins": pins} if pins else {})
            | {name: value for name, value in noise.items() if value}
            | {
                "beacon": self.beacon.hex(),
                "close": self.close,
                "log": [key.text for key in self.notes.log],
                "quorum": self.notes.quorum,
                "records": self.records,
                "version": TRUST_VERSION,
                "witnesses": [key.text for key in self.notes.witnesses],
            }
        )


def parse_trust(data: bytes) -> Trust:
    """Return what a trust file says. It is the verifier's own: any JSON layout will do.

    Raises:
        InputError: It is not a trust file, or a value in it cannot be.
    """
    value = _value(data)
    known = {"version", "quorum", "records", "close", "pins", _IGNORED, *_LISTS, *_HEX, *_LATER}
    if unknown := sorted(value.keys() - known):
        raise _wrong(f"it has a field {unknown[0]!r}")
    # A quorum has no default: 0 would let the log vouch for itself.
    if value.get("witnesses") and "quorum" not in value:
        raise _wrong("it names witnesses, and no quorum says how many of them must have signed")
    # Types first, so that nothing below can raise another error.
    lists = {name: value.get(name, []) for name in _LISTS}
    texts = {name: value.get(name, "") for name in _HEX}
    numbers = {name: value.get(name, 0) for name in ("quorum", "records", "noise_time")}
    for name, found in lists.items():
        if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
            raise _wrong(f"{name} is not a list of public keys")
    for name, found in texts.items():
        if not isinstance(found, str) or not re.fullmatch(r"([0-9a-f]{2})*", found):
            raise _wrong(f"{name} is not lower-case hex")
    if len(texts["noise_beacon"]) not in (0, 64):
        raise _wrong("noise_beacon is not 32 bytes in hex")
    for name, found in numbers.items():
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise _wrong(f"{name} is not a whole number")
    log, witnesses = (tuple(map(PublicKey.parse, lists[name])) for name in _LISTS)
    notes = Signers(log, witnesses, numbers["quorum"])
    close, opened = (_token(name, value.get(name, "")) for name in ("close", "noise_open"))
    return Trust(
        notes,
        bytes.fromhex(texts["beacon"]),
        numbers["records"],
        close,
        parse_pins(value.get("pins", {})),
        bytes.fromhex(texts["noise_beacon"]),
        opened,
        numbers["noise_time"],
    )


def _token(name: str, text: object) -> str:
    """Return the checkpoint that a trust file names, whose form is checked."""
    if not isinstance(text, str):
        raise _wrong(f"{name} is not a text")
    try:
        if text:
            parse_token(text, name)
    except VerificationError as error:
        raise _wrong(f"{name} is not the size and the root of a checkpoint") from error
    return text


def _value(data: bytes) -> dict[str, Any]:
    try:
        value = parse(canonical(json.loads(data, parse_float=str)), _LONGEST, "trust")
    except (ValueError, RecursionError, InputError, VerificationError) as error:
        raise _wrong("it is no JSON, or holds numbers that are not whole") from error
    if not isinstance(value, dict) or value.get("version") != TRUST_VERSION:
        raise _wrong(f"its version is not {TRUST_VERSION!r}")
    return value


def _wrong(why: str) -> InputError:
    return InputError(
        f"This is no trust file: {why}.",
        "Write one by hand from the log's public key, see docs/attest.md.",
    )
