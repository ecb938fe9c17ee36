"""Retrievers of LangChain, LlamaIndex and Haystack over the private service's ``/v1/retrieval``.

Each is a module of its own, which imports its framework: ``ragwitness.clients.langchain``,
``.llamaindex`` and ``.haystack``. No score comes with a document: a noisy one that left the
service would tell more than the order does, and is not paid for.
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx2

from ragwitness.errors import TargetResponseError, TargetUnreachableError


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
    """

    def __init__(self, url: str, key: str, timeout: float = 60.0) -> None:
        base = url.rstrip("/").removesuffix("/v1")
        self._url = f"{base}/v1/retrieval"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._timeout = timeout

    def __repr__(self) -> str:
        """Return the address; never the key."""
        return f"Client({self._url!r})"

    def retrieve(self, query: str) -> list[ServiceDocument]:
        """Return the documents selected for a question, best first; an empty slot is left out.

        Raises:
            TargetUnreachableError: The service does not answer.
            TargetResponseError: It refuses, or answers otherwise than agreed.
        """
        try:
            with httpx2.Client(timeout=self._timeout) as http:
                reply = http.post(self._url, json={"query": query}, headers=self._headers)
        except httpx2.HTTPError as error:
            raise _unreachable(error) from None
        return _read(reply)

    async def aretrieve(self, query: str) -> list[ServiceDocument]:
        """Return the same without blocking.

        Raises:
            TargetUnreachableError: The service does not answer.
            TargetResponseError: It refuses, or answers otherwise than agreed.
        """
        try:
            async with httpx2.AsyncClient(timeout=self._timeout) as http:
                reply = await http.post(self._url, json={"query": query}, headers=self._headers)
        except httpx2.HTTPError as error:
            raise _unreachable(error) from None
        return _read(reply)


def _unreachable(error: Exception) -> TargetUnreachableError:
    return TargetUnreachableError(
        f"The service does not answer ({type(error).__name__}).", "Check its address."
    )


def _read(reply: httpx2.Response) -> list[ServiceDocument]:
    try:
        told = reply.json()
        if reply.status_code != 200:
            wait = reply.headers.get("retry-after")
            raise TargetResponseError(
                f"The service refused with {reply.status_code}: {told['error']['message']}",
                f"Ask again in {wait} seconds." if wait else "",
            )
        if "documents" in told:
            return [
                ServiceDocument(one["id"], one["text"], one["slot"]) for one in told["documents"]
            ]
        return [ServiceDocument(f"slot {slot}", "", slot) for slot in told["ids"]]
    except (ValueError, KeyError, TypeError):
        raise TargetResponseError(
            f"The service's reply ({reply.status_code}) is none of /v1/retrieval."
        ) from None
