"""What a timestamp authority's token says (RFC 3161): that bytes were there at a time.

:mod:`ragwitness.evidence.log_client` asks for tokens; here they are read, and nothing is sent.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError, VerificationError, import_extra
from ragwitness.core.files import read_file

LARGEST_STAMP = 100_000
"""Bytes of a reply; tokens have some 6,000."""

STAMPS = ("rfc3161_client", "A timestamp", "timestamp")
"""The library that reads tokens, what it is for, and the extra that brings it."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a token says.

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
        data: What was stamped.
        name: Of the token, for people.
        roots: Certificates (PEM) that the caller trusts; None checks the hash and not who signed.
        check: Name of the check in an error.

    Raises:
        InputError: The certificates cannot be read.
        MissingExtraError: The library is not installed.
        VerificationError: The token is of other bytes, or not signed by who is trusted.
    """
    tsp = import_extra(*STAMPS)
    try:
        read = tsp.decode_timestamp_response(token)
        found = stamp_of(read, data, check)
    except ValueError as error:
        raise VerificationError(check, f"{name} is no token: {error}.") from error
    if roots is None:
        return found
    from cryptography.x509 import load_pem_x509_certificates

    builder = tsp.VerifierBuilder()
    try:
        for one in load_pem_x509_certificates(read_file(roots)):
            builder = builder.add_root_certificate(one)
    except ValueError as error:
        raise InputError(f"{roots} holds no certificates: {error}.", "Give PEM.") from error
    try:
        builder.build().verify_message(read, data)
    except tsp.VerificationError as error:
        raise VerificationError(
            check, f"{name} is not signed by an authority of {roots}: {error}."
        ) from error
    return Stamp(found.at, trusted=True)


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
