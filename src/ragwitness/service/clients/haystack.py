"""A Haystack component that retrieves from the private service."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret

from ragwitness.service.clients import Client, ServiceDocument


@component
class HaystackRetriever:
    """Retrieves by ``/v1/retrieval``; each question is charged to the key's account.

    Args:
        url: Of the service.
        key: Of an account; a pipeline that is written to a file needs it from the environment.
        timeout: Seconds.
        account: File of the account's signing key: each question is then signed.
        receipts: Folder in which the receipts of signed questions are kept.
    """

    def __init__(
        self,
        url: str,
        key: Secret,
        timeout: float = 60.0,
        account: str | None = None,
        receipts: str | None = None,
    ) -> None:
        self._url, self._key, self._timeout = url, key, timeout
        self._signing = {"account": account, "receipts": receipts}
        self._client = Client(url, str(key.resolve_value()), timeout, account, receipts)

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str) -> dict[str, list[Any]]:
        """Return the documents selected for a question."""
        return {"documents": [_document(document) for document in self._client.retrieve(query)]}

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline is stored as; a key that is no variable is refused."""
        fields = {"url": self._url, "key": self._key.to_dict(), "timeout": self._timeout}
        return dict(default_to_dict(self, **fields, **self._signing))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRetriever:
        """Return what :meth:`to_dict` stored."""
        data["init_parameters"]["key"] = Secret.from_dict(data["init_parameters"]["key"])
        retriever: HaystackRetriever = default_from_dict(cls, data)
        return retriever


def _document(one: ServiceDocument) -> Any:
    return Document(id=one.id, content=one.text, meta={"slot": one.slot})
