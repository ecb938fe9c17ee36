"""What a window is checked with: the setup's public part, one file of canonical JSON."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.encoding import parse_hex
from ragwitness.crypto.proofs.groth16 import VerifyingKey
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G2,
    G2_BYTES,
    encode_g1,
    encode_g2,
    parse_g1,
    parse_g2,
)
from ragwitness.crypto.proofs.shape import MASKS, Shape
from ragwitness.errors import InputError, VerificationError

__all__ = ["MOST_SETUP_BYTES", "VERSION", "VerifierSetup"]

VERSION = "ragwitness/setup/v1"
MOST_SETUP_BYTES = 1 << 16

_NORM_PUBLICS = 6
_HINT = "Use the setup.json that `ragwitness setup` wrote with this version."


@dataclass(frozen=True, slots=True)
class VerifierSetup:
    """Everything that a verifier needs of a setup. Its digest is what a verifier has to trust.

    Attributes:
        shape: Sizes and bounds.
        tau: [τ]₂.
        masks: [τⁿ], [τⁿ⁺¹], [τⁿ⁺²].
        link: Verifying key of the selection circuit.
        norm: Verifying key of the norm circuit.
    """

    shape: Shape
    tau: G2
    masks: tuple[G1, ...]
    link: VerifyingKey
    norm: VerifyingKey

    def encode(self) -> bytes:
        """Return the file."""
        return canonical(
            {
                "link": self.link.encode().hex(),
                "masks": [encode_g1(point).hex() for point in self.masks],
                "norm": self.norm.encode().hex(),
                "shape": asdict(self.shape),
                "tau": encode_g2(self.tau).hex(),
                "version": VERSION,
            }
        )

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode` in hex."""
        return self.digest_bytes.hex()

    @property
    def digest_bytes(self) -> bytes:
        """SHA-256 of :meth:`encode`, 32 bytes."""
        return hashlib.sha256(self.encode()).digest()

    @classmethod
    def parse(cls, data: bytes) -> VerifierSetup:
        """Return what :meth:`encode` wrote; every point is checked.

        Raises:
            VerificationError: ``setup.version``, ``setup.fields``, ``setup.shape``, another
                ``setup.…`` for JSON that is not canonical or points that are none.
            MissingExtraError: py_ecc is not installed.
        """
        fields = parse(data, MOST_SETUP_BYTES, "setup")
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            raise VerificationError("setup.version", f"This is no setup of {VERSION}.", _HINT)
        names = {"link", "masks", "norm", "shape", "tau", "version"}
        if set(fields) != names or not isinstance(fields["masks"], list):
            raise VerificationError("setup.fields", "A field of the setup is missing, or too many.")
        shape = _shape(fields["shape"])
        if len(fields["masks"]) != MASKS:
            raise VerificationError("setup.fields", f"A setup has {MASKS} points for masks.")
        masks = tuple(parse_g1(_bytes(text, G1_BYTES), "setup") for text in fields["masks"])
        tau = parse_g2(_bytes(fields["tau"], G2_BYTES), "setup")
        if (0, 0) in masks or tau == ((0, 0), (0, 0)):
            raise VerificationError("setup.fields", "A power of τ is the point at infinity.")
        link = _key(fields["link"], 4 + 3 * shape.top - 1)
        return cls(shape, tau, masks, link, _key(fields["norm"], _NORM_PUBLICS))


def _shape(fields: object) -> Shape:
    names = {"slots", "top", "dimension", "scale", "reach"}
    if not isinstance(fields, dict) or set(fields) != names:
        raise VerificationError("setup.shape", "The setup's shape has missing or unknown fields.")
    try:
        return Shape(**fields)
    except InputError as error:
        raise VerificationError("setup.shape", error.message) from error


def _bytes(text: object, size: int) -> bytes:
    if not isinstance(text, str):
        raise VerificationError("setup.fields", "A point of the setup is no text.")
    return parse_hex(text, size, "setup.hex")


def _key(text: object, publics: int) -> VerifyingKey:
    if not isinstance(text, str):
        raise VerificationError("setup.fields", "A key of the setup is no text.")
    data = parse_hex(text, len(text) // 2, "setup.hex")
    try:
        return VerifyingKey.parse(data, publics)
    except VerificationError as error:
        raise VerificationError("setup.key", f"A verifying key is none: {error.message}") from error
