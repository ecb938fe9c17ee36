"""The time of a commitment, by a timestamp authority (RFC 3161): nobody has to believe the auditor.

The authority is sent the hash of the commitment and nothing else. Its token says that the hash was
there at a time; it is kept beside the commitment and can be checked by any tool of RFC 3161.
"""

from __future__ import annotations

from pathlib import Path

import httpx2

from ragwitness.core.errors import (
    InputError,
    TargetResponseError,
    TargetUnreachableError,
    VerificationError,
    import_extra,
)
from ragwitness.core.files import read_file, replace_file
from ragwitness.crypto.keys import LARGEST_STAMP, STAMPS, Stamp, read_stamp, stamp_of

_SECONDS = 30.0


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
    tsp = import_extra(*STAMPS)
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
        found = stamp_of(token, data, "timestamp")
    except (ValueError, VerificationError) as error:
        raise TargetResponseError(
            f"The timestamp authority's reply is no token of this commitment: {error}.", again
        ) from error
    # 3. As it came: other tools read the same bytes.
    replace_file(path, reply.content)
    return found
