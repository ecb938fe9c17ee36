"""A LlamaIndex retriever over the private service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ragwitness.crypto.keys import PrivateKey
from ragwitness.service.clients import Client, ServiceDocument


class LlamaIndexRetriever(BaseRetriever):  # type: ignore[misc]
    """Retrieves by ``/v1/retrieval``; each question is charged to the key's account.

    Args:
        url: Of the service.
        key: Of an account.
        timeout: Seconds.
        account: The account's signing key, or its file: each question is then signed.
        receipts: Folder in which the receipts of signed questions are kept.
    """

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float = 60.0,
        account: PrivateKey | Path | str | None = None,
        receipts: Path | str | None = None,
        **more: Any,
    ) -> None:
        self._client = Client(url, key, timeout, account, receipts)
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
        return _nodes(self._client.retrieve(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[Any]:
        return _nodes(await self._client.aretrieve(query_bundle.query_str))


def _nodes(found: list[ServiceDocument]) -> list[Any]:
    """Nodes with scores from 1 down by their rank: postprocessors drop a node without any."""
    return [
        NodeWithScore(
            node=TextNode(
                id_=document.id,
                text=document.text,
                metadata={"id": document.id, "slot": document.slot},
            ),
            score=1 - rank / len(found),
        )
        for rank, document in enumerate(found)
    ]
