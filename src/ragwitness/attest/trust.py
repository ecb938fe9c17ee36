"""What a verifier knows before it opens a bundle: whose log, and which randomness.

Nothing in a bundle can say these: a provider that made them up could prove anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from ragwitness.attest.commitments import parse_token
from ragwitness.attest.pins import STRICT, Digest, Pins, Whole, read_strict
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import canonical
from ragwitness.crypto.keys import PublicKey
from ragwitness.crypto.notes.witness import Signers

_VERSION = "ragwitness/trust/v1"


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
                "version": _VERSION,
                "witnesses": [key.text for key in self.notes.witnesses],
            }
        )


@dataclass(frozen=True, slots=True)
class _TrustFile:
    """The fields of the file; those of before that say nothing any more are passed over."""

    version: Literal["ragwitness/trust/v1"]
    log: list[str]
    witnesses: list[str] = field(default_factory=list)
    quorum: Whole | None = None
    beacon: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] = ""
    records: Whole = 0
    close: str = ""
    pins: Pins = field(default_factory=Pins)
    noise_beacon: Digest = ""
    noise_open: str = ""
    noise_time: Whole = 0
    setup: Any = None
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


def parse_trust(data: bytes) -> Trust:
    """Return what a trust file says. It is the verifier's own: any JSON layout will do.

    Raises:
        InputError: It is not a trust file, or a value in it cannot be.
    """
    found = read_strict(_TrustFile, data, "The trust file")
    # A quorum has no default: 0 would let the log vouch for itself.
    if found.witnesses and found.quorum is None:
        raise _wrong("it names witnesses, and no quorum says how many of them must have signed")
    log, witnesses = (tuple(map(PublicKey.parse, keys)) for keys in (found.log, found.witnesses))
    return Trust(
        Signers(log, witnesses, found.quorum or 0),
        bytes.fromhex(found.beacon),
        found.records,
        _token("close", found.close),
        found.pins,
        bytes.fromhex(found.noise_beacon),
        _token("noise_open", found.noise_open),
        found.noise_time,
    )


def _token(name: str, text: str) -> str:
    """Return the checkpoint that a trust file names, whose form is checked."""
    try:
        if text:
            parse_token(text, name)
    except VerificationError as error:
        raise _wrong(f"{name} is not the size and the root of a checkpoint") from error
    return text


def _wrong(why: str) -> InputError:
    return InputError(
        f"This is no trust file: {why}.",
        "Write one by hand from the log's public key, see docs/attest.md.",
    )
