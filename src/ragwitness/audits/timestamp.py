"""The time of a commitment, by a timestamp authority (RFC 3161): nobody has to believe the auditor.

The authority is sent the hash of the commitment and nothing else. Its token says that the hash was
there at a time; it is kept beside the commitment and can be checked by any tool of RFC 3161.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2

from ragwitness.errors import (
    InputError,
    MissingExtraError,
    TargetResponseError,
    TargetUnreachableError,
    VerificationError,
)
from ragwitness.kit.files import read_file, replace_file

LARGEST_STAMP = 100_000
"""Bytes of a reply; tokens have some 6,000."""

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a token says.

    Attributes:
        at: Time of the authority.
        trusted: Whether its signature was checked against roots that the caller trusts.
    """

    at: datetime
    trusted: bool


def stamp(path: Path, data: bytes, url: str, again: str) -> Stamp:
    """Have bytes stamped, and keep the token; one that is there already is kept.

    Args:
        path: Of the token.
        data: What is stamped; its hash alone is sent.
        url: Of the authority.
        again: What to do where that fails.

    Raises:
        InputError: The URL cannot be used, or the token cannot be written.
        MissingExtraError: The library is not installed.
        TargetUnreachableError: The authority cannot be reached.
        TargetResponseError: It refuses, or its reply is no token of these bytes.
        VerificationError: ``timestamp``; the token that is there is of other bytes.
    """
    tsp = _library()
    if path.exists():
        return read_stamp(read_file(path, LARGEST_STAMP, again), data, str(path))
    # 1. The hash of the commitment, and a number that no earlier reply can hold.
    request = tsp.TimestampRequestBuilder().data(data).nonce(nonce=True).build()
    headers = {"Content-Type": "application/timestamp-query"}
    try:
        with httpx2.Client(timeout=_SECONDS) as client:
            reply = client.post(url, content=request.as_bytes(), headers=headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise InputError("The timestamp authority's URL cannot be used.", again) from error
    except httpx2.HTTPError as error:
        raise TargetUnreachableError(
            f"The timestamp authority cannot be reached ({type(error).__name__}).", again
        ) from error
    # 2. A token of this very request: its hash and its number.
    if reply.status_code != 200 or len(reply.content) > LARGEST_STAMP:
        raise TargetResponseError(
            f"The timestamp authority answered with status {reply.status_code}.", again
        )
    try:
        token = tsp.decode_timestamp_response(reply.content)
        if token.status != 0 or token.tst_info.nonce != request.nonce:
            raise ValueError("it was refused, or is of another request")
        found = _stamp(token, data, "timestamp")
    except (ValueError, VerificationError) as error:
        raise TargetResponseError(
            f"The timestamp authority's reply is no token of this commitment: {error}.", again
        ) from error
    # 3. As it came: other tools read the same bytes.
    replace_file(path, reply.content)
    return found


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
    tsp = _library()
    try:
        read = tsp.decode_timestamp_response(token)
        found = _stamp(read, data, check)
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


def _stamp(token: Any, data: bytes, check: str) -> Stamp:
    """The time of a token, if it is of these bytes."""
    info = token.tst_info
    name = {32: "sha256", 48: "sha384", 64: "sha512"}.get(len(info.message_imprint.message), "")
    if not name or hashlib.new(name, data).digest() != info.message_imprint.message:
        raise VerificationError(check, "The token is of another commitment.")
    return Stamp(info.gen_time, trusted=False)


def _library() -> Any:
    try:
        import rfc3161_client
    except ImportError as error:
        raise MissingExtraError("A timestamp", "timestamp") from error
    return rfc3161_client
