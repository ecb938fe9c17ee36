"""A private retriever in front of one of LangChain, LlamaIndex or Haystack.

The retriever behind it must return every document, for whatever is asked: what it would choose by
itself would leak before any noise. No framework is imported; its objects are recognised by their
methods, and returned as they came, without their scores.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, insert
from sqlalchemy import select as select_rows

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.privacy.codes import Placement, has_word
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import select, slot_noise
from ragwitness.service.documents import lock_tenant, place_documents
from ragwitness.service.meters import Reserver
from ragwitness.service.middleware import current_principal
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.store import Store
from ragwitness.service.tables import ballots
from ragwitness.service.tenants import find_tenant


class Meter(Protocol):
    """The costs of a private retriever: a draw for each document, or a charge for each query."""

    def place(self, texts: Mapping[str, str]) -> dict[str, int]:
        """Return the group of each document, by id; one that is new is drawn, for life."""

    def charge(self, vector: NDArray[np.int16]) -> None:
        """Charge one query; :class:`~ragwitness.service.meters.SpentError` where there is no room.

        Args:
            vector: Of the query, quantised, shape (dimension,).
        """


class TenantMeter:
    """The meter of one tenant in the service's database; safe across threads.

    Queries are charged to the account that :class:`~ragwitness.service.middleware.KeyedAccounts`
    found in the request.

    Args:
        store: The database.
        tenant: Name of the tenant (``ragwitness service tenants create``).

    Raises:
        InputError: No such tenant.
    """

    def __init__(self, store: Store, tenant: str) -> None:
        with store.reading() as connection:
            row = find_tenant(connection, tenant)
        self._store, self._tenant, self.policy = store, row.id, TenantPolicy.from_json(row.policy)
        self._reserver = Reserver(store)
        self._groups: dict[str, int] = {}

    def place(self, texts: Mapping[str, str]) -> dict[str, int]:
        """Return the group of each document, by id; one that is new is drawn, for life."""
        placement = self.policy.placement
        new = [Document(name, text) for name, text in texts.items() if name not in self._groups]
        if new and placement is not None:
            with self._store.writing() as connection:
                self._groups |= place_documents(connection, self._tenant, placement, new)
        return {name: self._groups[name] for name in texts}

    def use(self, names: Sequence[str], most: int) -> set[str]:
        """Return the documents that had votes left (``service.votes``), and take one of each.

        Raises:
            StoreGoneError: The database failed.
        """
        of_tenant = ballots.c.tenant == self._tenant
        with self._store.writing() as connection:
            lock_tenant(connection, self._tenant)
            rows = connection.execute(select_rows(ballots.c.name, ballots.c.used).where(of_tenant))
            used = dict(map(tuple, rows))
            voters = {name for name in names if used.get(name, 0) < most}
            for name in voters:
                connection.execute(delete(ballots).where(of_tenant, ballots.c.name == name))
                row = {"tenant": self._tenant, "name": name, "used": used.get(name, 0) + 1}
                connection.execute(insert(ballots).values(**row))
        return voters

    def charge(self, vector: NDArray[np.int16]) -> None:
        """Charge one query of the account that asks.

        Raises:
            SpentError: A meter has no room for it.
            StoreGoneError: The database failed.
        """
        principal = current_principal()
        if principal.tenant != self._tenant:
            raise InputError("The account that asks is another tenant's.")
        self._reserver.charge(principal, vector).result()


class PrivateRetriever:
    """Chooses among the documents of a retriever under a tenant's promise.

    It has the methods of the retriever behind it: ``invoke`` and ``ainvoke``
    (LangChain), ``retrieve`` and ``aretrieve`` (LlamaIndex), ``run`` and ``run_async`` (Haystack).

    Args:
        retriever: Returns every document, each with an id. With noise it gives scores from -1 to 1:
            nodes with a score, or a LangChain vector store.
        policy: Its mechanism chooses.
        meter: Keeps the draws, and charges queries.
    """

    def __init__(self, retriever: Any, policy: TenantPolicy, meter: Meter) -> None:
        self._retriever, self._policy, self._meter = retriever, policy, meter
        self._documents: dict[str, str] | None = None

    def invoke(self, query: str, *_: Any, **__: Any) -> list[Any]:
        """Return documents of LangChain."""
        return self._choose(query, self._langchain(query, "invoke"))

    async def ainvoke(self, query: str, *_: Any, **__: Any) -> list[Any]:
        """Return documents of LangChain."""
        return await self._later(query, await self._langchain(query, "ainvoke"))

    def retrieve(self, query: Any) -> list[Any]:
        """Return nodes of LlamaIndex."""
        return self._choose(_text_of(query), self._retriever.retrieve(query))

    async def aretrieve(self, query: Any) -> list[Any]:
        """Return nodes of LlamaIndex."""
        return await self._later(_text_of(query), await self._retriever.aretrieve(query))

    def run(self, query: str = "", **more: Any) -> dict[str, list[Any]]:
        """Return documents of Haystack."""
        arguments = {"query": query} if query else {}
        reply = self._retriever.run(**arguments, **more)["documents"]
        return {"documents": self._choose(query, reply)}

    async def run_async(self, query: str = "", **more: Any) -> dict[str, list[Any]]:
        """Return documents of Haystack."""
        arguments = {"query": query} if query else {}
        reply = await self._retriever.run_async(**arguments, **more)
        return {"documents": await self._later(query, reply["documents"])}

    def refresh(self) -> None:
        """Take other documents than before: some were added, changed or removed."""
        self._documents = None

    def _langchain(self, query: str, method: str) -> Any:
        """Return what LangChain's retriever returns, or its vector store with scores."""
        store = getattr(self._retriever, "vectorstore", self._retriever)
        scored = "similarity_search_with_relevance_scores"
        if self._policy.placement is None and hasattr(store, scored):
            name = f"a{scored}" if method == "ainvoke" else scored
            return getattr(store, name)(query, k=self._policy.claim.capacity)
        return getattr(self._retriever, method)(query)

    async def _later(self, query: str, reply: Any) -> list[Any]:
        return await asyncio.to_thread(self._choose, query, reply)

    def _choose(self, query: str, reply: Any) -> list[Any]:
        # By id, an order that neither the question nor a score has a part in.
        pool = sorted(map(_candidate, reply), key=lambda candidate: candidate[0])
        documents = dict(row[:2] for row in pool)
        if self._documents not in (None, documents) or len(documents) < len(pool):
            raise InputError(
                "The retriever returned other documents than before, or one id twice.",
                "Let it return all of them (top_k), each with an id; after a change: refresh().",
            )
        self._documents = documents
        capacity = self._policy.claim.capacity
        if len(pool) > capacity:
            raise InputError(f"{len(pool)} documents are more than the capacity, {capacity}.")
        placement = self._policy.placement
        if placement is not None:
            return self._placed(query, pool, placement)
        return self._noisy(pool, self._policy.mechanism)

    def _placed(self, query: str, pool: list[Any], placement: Placement) -> list[Any]:
        """Return the documents that were placed under the question's words and have one of them."""
        groups = self._meter.place(dict(row[:2] for row in pool))
        codes = np.array([groups[name] for name, *_ in pool], np.int32)
        words = placement.words(query)
        chosen = [pool[at] for at in placement.answer(query, codes)]
        return [
            item
            for name, text, _, item in chosen
            if groups[name] in words and has_word(text, words[groups[name]])
        ]

    def _noisy(self, pool: list[Any], mechanism: Mechanism) -> list[Any]:
        """Pay, then add noise to every score, then select (eq. 2.1)."""
        scores = np.array([score for _, _, score, _ in pool], np.float64)
        if not (np.abs(scores) <= 1).all():  # None and NaN too
            raise InputError(
                "The retriever gives no scores from -1 to 1, which the noise is made for.",
                "Give a retriever by cosine that scores each document, or a tenant with codes.",
            )
        # The worst that a query can cost: its vector stays with the retriever.
        vector = np.zeros(mechanism.dimension, np.int16)
        vector[0] = mechanism.scale
        self._meter.charge(vector)
        noisy = np.full(mechanism.capacity, mechanism.empty_score, np.int64)
        steps = np.floor(scores * mechanism.scale**2 / (1 << mechanism.shift)).astype(np.int64)
        noisy[: len(pool)] = np.clip(steps, *mechanism.bounds)
        noisy += slot_noise(mechanism, os.urandom(32))
        return [pool[at][3] for at in select(noisy, mechanism.top).ids if at < len(pool)]


def _text_of(query: Any) -> str:
    """Return the text of a LlamaIndex query bundle, or of a string."""
    return str(getattr(query, "query_str", query))


def _candidate(item: Any) -> tuple[str, str, float | None, Any]:
    """Return id, text and score of a framework's document, and the document without its score."""
    item, score = item if isinstance(item, tuple) else (item, getattr(item, "score", None))
    node = getattr(item, "node", item)
    name = getattr(node, "node_id", None) or getattr(node, "id", None)
    if name is None:  # LangChain's Qdrant keeps it elsewhere
        name = (getattr(node, "metadata", None) or {}).get("_id")
    text = getattr(node, "page_content", None) or getattr(node, "content", None)
    if text is None and hasattr(node, "get_content"):
        text = node.get_content()
    if not isinstance(name, str) or not isinstance(text, str):
        raise InputError(
            f"A {type(node).__name__} without an id or a text was returned.",
            "Give each document an id of its own when it is stored.",
        )
    if hasattr(item, "score"):
        item = copy.copy(item)
        item.score = None
    return name, text, score, item
