"""Signing keys (Ed25519, RFC 8032) in the key texts of signed notes, and timestamps (RFC 3161).

A public key is one line, ``name+key id+base64(type ‖ key)`` (C2SP signed-note, "vkey"); a private
one ``PRIVATE+KEY+name+key id+base64(type ‖ seed)``, in a file that its owner alone can read.
"""

from __future__ import annotations

import enum
import hashlib
import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError, VerificationError, import_extra, require
from ragwitness.core.files import read_file, replace_file
from ragwitness.crypto.hashing import b64, parse_b64

_PRIVATE = "PRIVATE+KEY+"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_ID_BYTES = 4
_LONGEST_FILE = 4096


# edwards25519 (RFC 8032, 5.1): -x² + y² = 1 + d x² y² over the integers modulo p.
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)


@lru_cache(1024)
def key_fault(key: bytes) -> str:
    """Return why 32 bytes are no public key that only its owner can sign under; empty if they are.

    They are a number above the field, no point of the curve (a key of another curve, as a rule), or
    a point of order 1, 2, 4 or 8. Under such a point anybody can write signatures that hold.
    """
    number = int.from_bytes(key, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    # RFC 8032, 5.1.3: x² = (y² - 1) / (d y² + 1), whose root exists for points of the curve alone.
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if y >= _P or (x * x - square) % _P or (x == 0 and sign):
        return "is no point of edwards25519 (a key of another curve?)"
    # Three doublings: 8 P is the neutral element (0, 1) for points of small order alone.
    for _ in range(3):
        product = _D * x * x * y * y
        x, y = (
            2 * x * y * pow(1 + product, -1, _P) % _P,
            (y * y + x * x) * pow(1 - product, -1, _P) % _P,
        )
    return "is of small order: anybody could sign under it" if (x, y) == (0, 1) else ""


class KeyKind(enum.IntEnum):
    """Use of a key, by the type byte that C2SP signed-note assigns."""

    NOTE = 0x01
    """Ed25519 over a note's text."""
    COSIGNATURE = 0x04
    """Ed25519 over a checkpoint and a time, by a witness (cosignature/v1)."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A name, the use of the key, and the key.

    Attributes:
        name: No spaces, no plus sign; a URL without its scheme, e.g. ``example.org/log``.
        kind: Use of the key.
        material: 32 bytes.
    """

    name: str
    kind: KeyKind
    material: bytes

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.material) != _KEY_BYTES:
            raise InputError(
                f"The public key of {self.name} has {len(self.material)} bytes, not {_KEY_BYTES}."
            )

    @property
    def key_id(self) -> bytes:
        """First 4 bytes of SHA-256(name ‖ newline ‖ type ‖ key)."""
        kind = bytes([self.kind])
        return sha256(self.name.encode() + b"\n" + kind + self.material).digest()[:_ID_BYTES]

    @property
    def text(self) -> str:
        """The one line by which the key is published."""
        return f"{self.name}+{self.key_id.hex()}+{b64(bytes([self.kind]) + self.material)}"

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Return the key of one line.

        Raises:
            InputError: Not a key of a known type, or its id is not that of name and key.
        """
        kind, material, name = _split(text, text.split("+", 2))
        key = cls(name, kind, material)
        if key.text != text:
            raise InputError(f"{text[:60]!r} is no public key: its id is not that of its key.")
        if fault := key_fault(material):
            raise InputError(f"The key of {name} {fault}.")
        return key

    def verify(self, message: bytes, signature: bytes) -> None:
        """Check a bare signature over ``message``.

        Raises:
            VerificationError: ``signature.size`` or ``signature.invalid``.
        """
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        # Length first, then the signature.
        size = f"A signature by {self.name} has {len(signature)} bytes."
        require(len(signature) == _SIGNATURE_BYTES, "signature.size", size)
        require(not (fault := key_fault(self.material)), "signature.invalid", f"The key {fault}.")
        try:
            Ed25519PublicKey.from_public_bytes(self.material).verify(signature, message)
        except InvalidSignature as error:
            raise VerificationError(
                "signature.invalid", f"{self.name} did not sign this, or it was changed since."
            ) from error


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A signing key; its text form and ``repr`` never show the seed by accident.

    Attributes:
        name: As of the public key.
        kind: Use of the key.
        seed: 32 secret bytes.
    """

    name: str
    kind: KeyKind
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.seed) != _KEY_BYTES:
            raise InputError(f"A signing key's seed has {_KEY_BYTES} bytes, not {len(self.seed)}.")

    @classmethod
    def generate(cls, name: str, kind: KeyKind = KeyKind.NOTE) -> PrivateKey:
        """Return a fresh key.

        Raises:
            InputError: The name has a space or a plus sign.
        """
        return cls(name, kind, os.urandom(_KEY_BYTES))

    @property
    def public(self) -> PublicKey:
        """The key that verifies."""
        return PublicKey(self.name, self.kind, self._key().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Return the bare signature over ``message``."""
        signature: bytes = self._key().sign(message)
        return signature

    def _key(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)


def write_key(path: Path, key: PrivateKey) -> None:
    """Write a private key to a new file that its owner alone can read.

    Raises:
        InputError: The file exists, or cannot be written.
    """
    kind = bytes([key.kind])
    text = f"{_PRIVATE}{key.name}+{key.public.key_id.hex()}+{b64(kind + key.seed)}\n"
    try:
        replace_file(path, text, secret=True, new=True)
    except FileExistsError as error:
        raise InputError(
            f"{path} exists; a key is never overwritten.", "Choose another file, or move it away."
        ) from error


def read_key(path: Path) -> PrivateKey:
    """Return the private key of a file.

    Raises:
        InputError: The file is unreadable, others can read it, or it holds no private key.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    # A key that others can read may have signed for others.
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"{path} is a private key that other users of this machine can open.",
            f"Run: chmod 600 {path}",
        )
    # One line; errors never quote it.
    text = data.decode("utf-8", "replace").removesuffix("\n")
    if not text.startswith(_PRIVATE):
        raise InputError(f"{path} holds no private key.", f"Its line starts with {_PRIVATE}")
    body = text.removeprefix(_PRIVATE)
    fields = body.split("+", 2)
    try:
        kind, seed, name = _split(body, fields)
        key = PrivateKey(name, kind, seed)
    except InputError as error:  # its message quotes the text, which is secret here
        raise InputError(f"{path} holds no valid private key.") from error.__cause__
    if key.public.key_id.hex() != fields[1]:
        raise InputError(f"{path} holds a private key whose id is not its own.")
    return key


def _split(text: str, parts: list[str]) -> tuple[KeyKind, bytes, str]:
    """Return kind, key bytes and name out of ``name+id+base64``."""
    try:
        name, _, encoded = parts
        data = parse_b64(encoded, "key")
        return KeyKind(data[0]), data[1:], name
    except (VerificationError, ValueError, IndexError):
        raise InputError(
            f"{text[:60]!r} is no key of a known type.", "It looks like name+1a2b3c4d+base64."
        ) from None


def _check_name(name: str) -> None:
    if not name or "+" in name or " " in name or not name.isprintable():
        raise InputError(
            f"{name!r} cannot name a key: it is empty, or has a space, a plus or a control sign.",
            "Use a URL without its scheme, e.g. example.org/log.",
        )


# Timestamps (RFC 3161): an authority's token says that bytes existed at a time. Tokens are read
# here; :mod:`ragwitness.evidence.log_client` asks for them.

LARGEST_STAMP = 100_000
"""Bytes of a reply; tokens have some 6,000."""

STAMPS = ("rfc3161_client", "A timestamp", "timestamp")
"""The library that reads tokens, its purpose, and the extra that brings it."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Contents of a token.

    Attributes:
        at: Time of the authority.
        trusted: Whether its signature was checked against roots that the caller trusts.
    """

    at: datetime
    trusted: bool


def read_stamp(
    token: bytes, data: bytes, name: str, roots: Path | None = None, check: str = "timestamp"
) -> Stamp:
    """Read a token, and check it.

    Args:
        token: As the authority sent it.
        data: The stamped bytes.
        name: Of the token, for people.
        roots: Certificates (PEM) that the caller trusts; None checks the hash and no signature.
        check: Name of the check in an error.

    Raises:
        InputError: The certificates cannot be read.
        MissingExtraError: The library is not installed.
        VerificationError: The token is of other bytes, or of an authority that is not trusted.
    """
    # The token is of these bytes.
    tsp = import_extra(*STAMPS)
    try:
        response = tsp.decode_timestamp_response(token)
        stamp = stamp_of(response, data, check)
    except ValueError as error:
        raise VerificationError(check, f"{name} is no token: {error}.") from error
    if roots is None:
        return stamp
    from cryptography.x509 import load_pem_x509_certificates

    # Its signature leads to a trusted certificate.
    builder = tsp.VerifierBuilder()
    try:
        for certificate in load_pem_x509_certificates(read_file(roots)):
            builder = builder.add_root_certificate(certificate)
    except ValueError as error:
        raise InputError(f"{roots} holds no certificates: {error}.", "Give PEM.") from error
    try:
        builder.build().verify_message(response, data)
    except tsp.VerificationError as error:
        raise VerificationError(
            check, f"{name} is not signed by an authority of {roots}: {error}."
        ) from error
    return Stamp(stamp.at, trusted=True)


def stamp_of(token: Any, data: bytes, check: str) -> Stamp:
    """Return the time of a token that was decoded.

    Raises:
        VerificationError: ``check``; it is of other bytes than ``data``.
    """
    info = token.tst_info
    name = {32: "sha256", 48: "sha384", 64: "sha512"}.get(len(info.message_imprint.message), "")
    if not name or hashlib.new(name, data).digest() != info.message_imprint.message:
        raise VerificationError(check, "The token is of another commitment.")
    return Stamp(info.gen_time, trusted=False)
