"""One query: what may be asked under the policy, and the record that it becomes (R2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from ragwitness.attest.ledger import Account, Ledger
from ragwitness.attest.openings import parse_token
from ragwitness.attest.policy import Policy
from ragwitness.attest.receipts import Opened, Receipt
from ragwitness.crypto.commitments import commit, draw_blinding
from ragwitness.crypto.transcript import AdmitRecord, QueryRecord
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.mechanism import check_rows
from ragwitness.privacy.streams import Record

__all__ = [
    "Answered",
    "Request",
    "account_of",
    "admission_record",
    "check_request",
    "noise_record",
    "open_request",
    "query_record",
]

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NONCE = re.compile(r"[\x20-\x7e]{0,256}", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One query as a client sent it.

    Attributes:
        tenant: Whose index is asked.
        account: Who asks.
        query: SHA-256 of the query as it was sent, in hex.
        vector: Its integer vector, shape (dimension,).
        nonce: The client's own random text.
        checkpoint: Which the client names: the window's at the time when the client saw it.
        text: The query itself, if it is to be kept for a challenge.
    """

    tenant: str
    account: str
    query: str
    vector: NDArray[np.integer]
    nonce: str
    checkpoint: str
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What goes back to the client.

    Attributes:
        ids: Slots, best first.
        sequence: Queries of the account in the log before it.
        receipt: For the account to keep.
    """

    ids: tuple[int, ...]
    sequence: int
    receipt: Receipt


def check_request(policy: Policy, request: Request) -> None:
    """Check what does not hang on the log.

    Raises:
        InputError: An unknown tenant, no digest, a text of another digest, a nonce that is missing
            or unusable, or a vector that is no integer vector within the scale.
    """
    mechanism = policy.tenants.get(request.tenant)
    if mechanism is None:
        raise InputError(
            f"The window has no tenant {request.tenant!r}.",
            f"Its tenants: {', '.join(policy.tenants)}.",
        )
    if not _DIGEST.fullmatch(request.query):
        raise InputError(f"{request.query[:80]!r} is no SHA-256 in lower-case hex.")
    if request.text is not None and _digest(request.text) != request.query:
        raise InputError("The query's text has another SHA-256 than the one that is given.")
    if not _NONCE.fullmatch(request.nonce):
        raise InputError("A nonce is at most 256 printable ASCII characters.")
    if policy.nonces_required and not request.nonce:
        raise InputError(
            "The policy asks for a nonce of the client with every query.",
            "Send a random one, e.g. 16 bytes in hex, and compare it with the receipt's.",
        )
    if check_rows(request.vector, mechanism).shape[0] != 1:
        raise InputError("A query has one vector.")


def account_of(policy: Policy, ledger: Ledger, request: Request) -> Account:
    """Return the account of a request that the log allows.

    Raises:
        InputError: The account is not admitted or has asked all it may, or the checkpoint is none
            of this log's, or older than the account's admission.
    """
    account = ledger.accounts.get((request.tenant, request.account))
    if account is None:
        raise InputError(
            f"{request.account!r} is not admitted to {request.tenant}.",
            "Admit it first (Window.admit): its place must be logged before its first nonce.",
        )
    if account.count >= policy.queries:
        raise InputError(
            f"{request.account} has asked all its {policy.queries:,} queries of this window.",
            "Ask in the next one.",
        )
    try:
        size, root = parse_token(request.checkpoint, "checkpoint")
    except VerificationError as error:
        raise InputError(error.message, "Name the last checkpoint that was handed out.") from error
    log = ledger.log
    if size > log.size or not account.admitted < size or log.root(size) != root:
        raise InputError(
            f"{request.checkpoint[:80]!r} is no checkpoint of this log since the account was"
            " admitted.",
            "Name the last checkpoint that was handed out.",
        )
    return account


def admission_record(policy: Policy, tenant: str, account: str, place: int) -> AdmitRecord:
    """Return the record that gives an account its place.

    Raises:
        InputError: The name is no name.
    """
    try:
        return AdmitRecord(window=policy.window, tenant=tenant, account=account, place=str(place))
    except ValidationError as error:
        raise InputError(
            f"{account[:80]!r} cannot name an account.",
            "Use 1 to 256 characters, no control signs among them.",
        ) from error


def noise_record(policy: Policy, request: Request, sequence: int) -> Record:
    """Return what the noise of an answer hangs on (A2)."""
    return Record(
        window=policy.window,
        tenant=request.tenant,
        account=request.account,
        sequence=sequence,
        nonce=request.nonce,
        checkpoint=request.checkpoint,
        query=request.query,
        mechanism=policy.tenants[request.tenant].digest,
    )


def open_request(request: Request, ids: tuple[int, ...]) -> Opened:
    """Return what the record of an answered request will commit to, with fresh blindings."""
    return Opened(
        bytes.fromhex(request.query),
        np.asarray(request.vector).reshape(-1).astype(np.int16),
        ids,
        (draw_blinding(), draw_blinding(), draw_blinding()),
    )


def query_record(policy: Policy, request: Request, account: Account, opened: Opened) -> QueryRecord:
    """Return the record of an answered request."""
    query, vector, answer = (commit(opening).hex() for opening in opened.openings)
    return QueryRecord(
        window=policy.window,
        tenant=request.tenant,
        account=request.account,
        sequence=str(account.count),
        number=str(account.place * policy.queries + account.count),
        nonce=request.nonce,
        checkpoint=request.checkpoint,
        query=query,
        vector=vector,
        mechanism=policy.tenants[request.tenant].digest,
        answer=answer,
        prior=account.last.hex(),
    )


def _digest(text: str) -> str:
    try:
        return sha256(text.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise InputError(
            "The query's text holds half a surrogate pair: that is no text."
        ) from error
