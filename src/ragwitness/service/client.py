"""A client of the private service's ``/v1/retrieval``, for a retriever of any framework.

No score comes with a document: a noisy one would reveal more than the order, which is paid for.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from ragwitness.core.errors import TargetResponseError, TargetUnreachableError

if TYPE_CHECKING:
    from ragwitness.crypto.keys import PrivateKey
    from ragwitness.service.signer import Signer


@dataclass(frozen=True, slots=True)
class ServiceDocument:
    """A document that the service selected.

    Attributes:
        id: Its name, or ``slot N`` where the tenant gives no texts away.
        text: Of the document; empty where the tenant gives none.
        slot: Its public number.
    """

    id: str
    text: str
    slot: int


class Client:
    """Asks a service for documents; each question is charged to the key's account.

    Args:
        url: Of the service, with or without ``/v1``.
        key: Of an account.
        timeout: Seconds.
        account: The account's signing key, or its file (made where there is none). Each query is
            then signed, for tenants whose answers are logged (``service.signer.Signer``).
        receipts: Folder in which the receipts of signed queries are kept.
    """

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float = 60.0,
        account: PrivateKey | Path | str | Signer | None = None,
        receipts: Path | str | None = None,
    ) -> None:
        base = url.rstrip("/").removesuffix("/v1")
        self._url, self._log = f"{base}/v1/retrieval", f"{base}/v1/log/checkpoint"
        self._signer: Signer | None = None
        if account is not None:
            from ragwitness.service.signer import Signer

            self._signer = account if isinstance(account, Signer) else Signer(account, receipts)
        # Kept for all questions: a connection each would be a handshake each.
        self._http = httpx2.Client(timeout=timeout, headers={"Authorization": f"Bearer {key}"})
        weakref.finalize(self, self._http.close)  # frameworks drop a retriever, and close nothing

    def __repr__(self) -> str:
        """Return the address; never the key."""
        return f"Client({self._url!r})"

    def retrieve(self, query: str) -> list[ServiceDocument]:
        """Return the documents selected for a question, best first; an empty slot is left out.

        Raises:
            TargetUnreachableError: The service does not answer.
            TargetResponseError: It refuses, or answers otherwise than agreed.
            VerificationError: A signed query's receipt or place in the log is not the account's.
        """
        if self._signer is not None:
            return _documents(*self._signer.ask(query, self._signed), "")
        with _answering():
            reply = self._http.post(self._url, json={"query": query})
        return _documents(reply.status_code, _json_of(reply), reply.headers.get("retry-after", ""))

    def _signed(
        self, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, Any]]:
        """Post a signed body, or fetch the log's checkpoint."""
        with _answering():
            reply = (
                self._http.get(self._log, headers=headers)
                if body is None
                else self._http.post(self._url, json=body, headers=headers)
            )
        content = _json_of(reply)
        return reply.status_code, content if isinstance(content, dict) else {}


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except httpx2.HTTPError as error:
        raise TargetUnreachableError(
            f"The service does not answer ({type(error).__name__}).", "Check its address."
        ) from None


def _json_of(reply: httpx2.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        return None


def _documents(status: int, body: Any, wait: str) -> list[ServiceDocument]:
    try:
        # A refusal keeps the service's own words; every other form is no reply of the service.
        if status != 200:
            raise TargetResponseError(
                f"The service refused with {status}: {body['error']['message']}",
                f"Ask again in {wait} seconds." if wait else "",
            )
        if "documents" in body:
            return [
                ServiceDocument(document["id"], document["text"], document["slot"])
                for document in body["documents"]
            ]
        return [ServiceDocument(f"slot {slot}", "", slot) for slot in body["ids"]]
    except (ValueError, KeyError, TypeError):
        raise TargetResponseError(
            f"The service's reply ({status}) is none of /v1/retrieval."
        ) from None
