"""A draw sealed for a third party: they can open it when the auditor will not, and nobody else can.

An ephemeral X25519 key and the third party's give a key by HKDF-SHA256, under which the opened draw
stands in ChaCha20-Poly1305, bound to the commitment. Whoever opens it checks the draw against the
commitment as ever: what was sealed cannot be another draw than the one committed to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import read_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

_INFO = b"ragwitness/canary-seal/v1"
_PUBLIC = 32
_NONCE = bytes(12)  # every seal has a key of its own
_MAKE = (
    "openssl genpkey -algorithm X25519 -out key.pem; openssl pkey -in key.pem -pubout -out pub.pem"
)


def seal(data: bytes, commitment: bytes, recipient: Path) -> bytes:
    """Return bytes that the holder of the recipient's private key alone can read.

    Args:
        data: The opened draw.
        commitment: 32 bytes, as published.
        recipient: X25519 public key (PEM).

    Raises:
        InputError: The file holds no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(read_file(recipient))
    except ValueError as error:
        raise InputError(f"{recipient} holds no public key.", f"Make one: {_MAKE}") from error
    if not isinstance(public, X25519PublicKey):
        raise InputError(f"{recipient} holds no X25519 key.", f"Make one: {_MAKE}")
    own = X25519PrivateKey.generate()
    ours, theirs = own.public_key().public_bytes_raw(), public.public_bytes_raw()
    key = _key(own, public, ours, theirs)
    return ours + ChaCha20Poly1305(key).encrypt(_NONCE, data, commitment)


def unseal(sealed: bytes, commitment: bytes, private: Path) -> bytes:
    """Return what was sealed.

    Args:
        sealed: From :func:`seal`.
        commitment: As published.
        private: The recipient's X25519 private key (PEM).

    Raises:
        InputError: The file holds no such key.
        VerificationError: ``draw.seal``; it was sealed for somebody else, with another commitment,
            or changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        own = load_pem_private_key(read_file(private, secret=True), None)
    except (ValueError, TypeError) as error:
        raise InputError(f"{private} holds no private key.", f"Make one: {_MAKE}") from error
    if not isinstance(own, X25519PrivateKey):
        raise InputError(f"{private} holds no X25519 key.", f"Make one: {_MAKE}")
    try:
        other = X25519PublicKey.from_public_bytes(sealed[:_PUBLIC])
        key = _key(own, other, sealed[:_PUBLIC], own.public_key().public_bytes_raw())
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed[_PUBLIC:], commitment)
    except (InvalidTag, ValueError) as error:
        raise VerificationError(
            "draw.seal",
            "The seal does not open: it is for another key or commitment, or was changed.",
        ) from error


def _key(own: X25519PrivateKey, other: X25519PublicKey, ours: bytes, theirs: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    shared = own.exchange(other)
    return HKDF(SHA256(), 32, salt=None, info=_INFO + ours + theirs).derive(shared)
