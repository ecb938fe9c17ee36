"""An account that signs its queries: its key stays with the client."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.attest.receipts import (
    Receipt,
    Request,
    account_key,
    check_admission,
    check_openings,
    draw_nonce,
    sign_request,
    verify_request,
)
from ragwitness.core.errors import TargetResponseError, VerificationError
from ragwitness.core.files import replace_file
from ragwitness.crypto.hashing import parse_hash
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.records import SignedQueryRecord

KEY_HEADER = "X-Ragwitness-Account-Key"

_WINDOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_STALE = ("log_sequence", "log_refused", "not_admitted", "no_log", "window_closed")
_AGAIN = 429  # and whatever is above 499: the same request may still be answered

Reply = tuple[int, dict[str, Any]]
Send = Callable[[dict[str, Any] | None, dict[str, str]], Reply]
"""Posts a body, or fetches the log's checkpoint with None; returns status and reply."""


@dataclass(frozen=True, slots=True)
class _Position:
    """The position of an account in a window's log."""

    window: str
    tenant: str
    account: str
    checkpoint: str
    sequence: int


class Signer:
    """Signs what one account asks, one query after the other.

    For each number of a window it signs one request. A request without an answer is sent again
    unchanged, before anything else: the provider has one noise for it and no choice. A refusal
    gives no second signature either, unless the number was used up: a service that refuses until
    it likes the noise would choose it.

    Args:
        key: The account's, or its file, which is made where there is none.
        receipts: Folder in which receipts are kept. With it a program that is started again knows
            how often the account has asked; without it, it believes the service.
    """

    def __init__(self, key: PrivateKey | Path | str, receipts: Path | str | None = None) -> None:
        self._key = key if isinstance(key, PrivateKey) else account_key(Path(key))
        self._public = self._key.public.material
        self._receipts = None if receipts is None else Path(receipts)
        self._place: _Position | None = None
        self._next: dict[str, int] = {}
        self._signed: dict[str, tuple[int, str]] = {}  # by window: the last number, and its query
        self._pending: dict[str, Any] | None = None
        self._one = threading.Lock()

    def ask(self, query: str, send: Send) -> Reply:
        """Return the service's reply to a signed query, its receipt checked and kept.

        Raises:
            VerificationError: The log admits the account with another key, or the receipt is of
                something else than was signed.
            TargetResponseError: The service asks for a second signature under one number, or has
                refused what was signed under it.
        """
        with self._one:
            # 1. A signed request without an answer: the same request once more.
            if self._pending is not None:
                pending = self._pending["query"]
                reply = self._send(self._pending, send)
                if pending == query or self._pending is not None:
                    return reply
            # 2. The next number. Where the log has moved on, its next number, and no other.
            position = self._place or self._enter(send)
            reply = self._send(self._sign(position, query), send)
            if reply[0] != 200 and _code(reply[1]) in _STALE and self._pending is None:
                fresh = self._enter(send)
                if fresh.window == position.window and fresh.sequence <= position.sequence:
                    return reply
                reply = self._send(self._sign(fresh, query), send)
            return reply

    def _enter(self, send: Send) -> _Position:
        """Register the key, check that the log has it, and learn the next number."""
        status, reply = send(None, {KEY_HEADER: self._public.hex()})
        if status != 200:
            raise TargetResponseError(f"The service gives no place in its log: {_message(reply)}")
        # The reply is untrusted: each field is parsed before it is used.
        try:
            position = _Position(
                window=str(reply["window"]),
                tenant=str(reply["tenant"]),
                account=str(reply["account"]),
                checkpoint=str(reply["checkpoint"]),
                sequence=int(reply["sequence"]),
            )
            admission = reply["admission"]
            path = [parse_hash(node, "admit.path") for node in admission["path"]]
            entry, index = admission["entry"].encode(), int(admission["index"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TargetResponseError("The service's place in its log is none.") from error
        # The log must have admitted this account with this key, and no other.
        record = check_admission(entry, index, path, position.checkpoint, self._public)
        admitted = (record.window, record.tenant, record.account)
        if admitted != (
            position.window,
            position.tenant,
            position.account,
        ) or not _WINDOW.fullmatch(admitted[0]):
            raise VerificationError("admit.account", "The log admits another account or window.")
        # The service may not count fewer queries than the receipts do.
        least = max(self._next.get(position.window, 0), self._kept(position))
        if position.sequence < least:
            raise TargetResponseError(
                f"The service says that this account has asked {position.sequence:,} times; it"
                f" holds receipts of {least:,}. A second signature under one number is not given."
            )
        self._place = position
        return position

    def _sign(self, place: _Position, query: str) -> dict[str, Any]:
        # A number that was signed already is never signed for another query.
        last, before = self._signed.get(place.window, (-1, ""))
        if place.sequence <= last:
            raise TargetResponseError(
                f"The service refused what was signed under number {place.sequence:,}"
                f" ({before[:60]!r}) and still has no other for it. A second signature under one"
                " number would let it choose between two noises.",
                "Wait for the next window.",
            )
        self._signed[place.window] = (place.sequence, query)
        # The signature covers the query's digest and a fresh nonce, not the vector.
        digest = hashlib.sha256(query.encode()).hexdigest()
        nothing = np.zeros(0, np.int16)  # the vector is the service's
        nonce = draw_nonce()
        request = Request(place.tenant, place.account, digest, nothing, nonce, place.checkpoint)
        signed = sign_request(self._key, place.window, request, place.sequence).signed
        assert signed is not None  # noqa: S101  # sign_request gives one
        self._pending = {
            "query": query,
            "nonce": nonce,
            "checkpoint": place.checkpoint,
            "sequence": place.sequence,
            "blinding": signed.blinding.hex(),
            "signature": signed.signature.hex(),
        }
        return self._pending

    def _send(self, body: dict[str, Any], send: Send) -> Reply:
        """Send a signed request; forget it once it is answered, or can be answered no more."""
        status, reply = send(body, {})
        if status == _AGAIN or status >= 500:
            return status, reply
        if status == 200:
            self._check(body, reply)
        else:  # whether the number is used up, the log says
            self._place = None
        self._pending = None
        return status, reply

    def _check(self, body: dict[str, Any], reply: dict[str, Any]) -> None:
        """Compare the receipt with the signed request, and keep it."""
        data = str(reply.get("receipt", "")).encode()
        receipt = Receipt.parse(data)
        record = check_openings(receipt)
        # The receipt must be of this very request and of these ids.
        if (
            not isinstance(record, SignedQueryRecord)
            or record.signature != body["signature"]
            or list(receipt.opened.ids) != reply.get("ids")
        ):
            raise VerificationError(
                "receipt.request", "The receipt is of another request or answer than this one."
            )
        verify_request(record, bytes.fromhex(record.signature), self._public)
        # Keep the receipt, and count the query.
        number = int(record.sequence) + 1
        self._next[record.window] = max(number, self._next.get(record.window, 0))
        if self._receipts is not None:
            replace_file(self._receipts / f"{record.window}.{number - 1:06}.json", data)
        if self._place is not None and self._place.window == record.window:
            self._place = replace(self._place, sequence=number)

    def _kept(self, place: _Position) -> int:
        """Return how many queries of the window the kept receipts say there were."""
        if self._receipts is None or not self._receipts.is_dir():
            return 0
        names = [path.name for path in self._receipts.glob(f"{place.window}.??????.json")]
        return 1 + max((int(name.split(".")[-2]) for name in names), default=-1)


def _code(reply: dict[str, Any]) -> str:
    error = reply.get("error")
    return str(error.get("code")) if isinstance(error, dict) else ""


def _message(reply: dict[str, Any]) -> str:
    error = reply.get("error")
    return str(error.get("message")) if isinstance(error, dict) else "its reply has another form"
