"""A LangChain retriever over the private service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from ragwitness.crypto.keys import PrivateKey
from ragwitness.service.clients import Client, ServiceDocument


class LangChainRetriever(BaseRetriever):  # type: ignore[misc]
    """Retrieves by ``/v1/retrieval``; each question is charged to the key's account.

    Args:
        url: Of the service.
        key: Of an account; it is in no field, so no trace and no dump shows it.
        timeout: Seconds.
        account: The account's signing key, or its file: each question is then signed.
        receipts: Folder in which the receipts of signed questions are kept.
    """

    _client: Client = PrivateAttr()

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float = 60.0,
        account: PrivateKey | Path | str | None = None,
        receipts: Path | str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._client = Client(url, key, timeout, account, receipts)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:  # noqa: ARG002
        return [_document(document) for document in self._client.retrieve(query)]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ARG002
    ) -> list[Any]:
        return [_document(document) for document in await self._client.aretrieve(query)]


def _document(one: ServiceDocument) -> Any:
    return Document(page_content=one.text, id=one.id, metadata={"id": one.id, "slot": one.slot})
