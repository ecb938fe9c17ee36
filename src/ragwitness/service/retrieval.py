"""From a query to the selected slots: embed, pay, then add noise and select."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import Placement, has_word
from ragwitness.privacy.release import quantise, release
from ragwitness.rag.pipeline import PARALLEL
from ragwitness.rag.protocol import ApiError
from ragwitness.service.documents import Indexes, documents_at
from ragwitness.service.meters import Reserver
from ragwitness.service.principals import Principal
from ragwitness.service.store import SharedReads, Store


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The selection for a query.

    Attributes:
        slots: Best first; with noise some may be empty.
        documents: Slot, id and text of the selected documents that may be shown, in their order.
    """

    slots: tuple[int, ...]
    documents: tuple[dict[str, Any], ...] = ()


class Retriever:
    """Answers queries of any tenant, each over its own index.

    Args:
        store: The database.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._indexes = Indexes(store)
        self._documents = SharedReads(partial(documents_at, store))
        self._reserver = Reserver(store, clock)
        self._free = asyncio.Semaphore(PARALLEL)

    def window(self, principal: Principal) -> tuple[int, int]:
        """Return the number of the tenant's audit window and the seconds until the next."""
        return self._reserver.window(principal)

    async def retrieve(self, principal: Principal, content: str | list[float]) -> Retrieved:
        """Answer a query, with the texts that may be shown.

        Args:
            principal: Who asks.
            content: A text, or a vector of the client's own.

        Raises:
            ApiError: The query is unusable, or the tenant has no index yet.
            SpentError: A meter has no room for it.
            StoreGoneError: The database failed.
        """
        # Whether an index was ever filled is public, and the same for every account.
        if not principal.edition:
            raise ApiError("This service holds no documents yet.", status=409, code="empty_index")
        if (placement := principal.policy.placement) is not None:
            return await self._placed(principal, content, placement)
        return await self._noisy(principal, content)

    async def _placed(
        self, principal: Principal, content: str | list[float], placement: Placement
    ) -> Retrieved:
        """Answer from the placement, which was paid for once and for life."""
        if not isinstance(content, str):
            raise ApiError("This service takes a text, not a vector.", param="vector")
        index = await self._index(principal)
        at = [*placement.answer(content, index.codes)]
        code_of = dict(zip(index.slots[at].tolist(), index.codes[at].tolist(), strict=True))
        if not principal.policy.claim.texts:
            return Retrieved((*code_of,))
        # A slot that was drawn by lot shows nothing: the query has no word of its document.
        words = placement.words(content)
        slots = [slot for slot in code_of if code_of[slot] in words]
        documents = tuple(
            document
            for document in await self._texts(principal, slots)
            if has_word(document["text"], words[code_of[document["slot"]]])
        )
        return Retrieved((*code_of,), documents)

    async def _noisy(self, principal: Principal, content: str | list[float]) -> Retrieved:
        """Pay for a query, then answer it; an unusable query is refused before the meters."""
        # 1. The query's vector, quantised; a failure up to here is the client's and costs nothing.
        mechanism = principal.policy.mechanism
        vector = await self._in_thread(_vector, principal, content)
        index = await self._index(principal)
        # 2. Pay first, durably: a crash from here on costs budget and never privacy.
        await asyncio.wrap_future(self._reserver.charge(principal, vector))
        # 3. Fresh noise, then the best K slots.
        answer = await self._in_thread(release, vector, index, os.urandom(32), mechanism)
        if not principal.policy.claim.texts:
            return Retrieved(answer.ids)
        return Retrieved(answer.ids, await self._texts(principal, answer.ids))

    async def _texts(
        self, principal: Principal, slots: Sequence[int]
    ) -> tuple[dict[str, Any], ...]:
        """Return slot, id and text of the documents in some slots, in that order; no empty ones."""
        keys = [(principal.tenant, slot) for slot in slots]
        return tuple((await self._documents.of(keys)).values()) if keys else ()

    async def _index(self, principal: Principal) -> Any:
        return await self._in_thread(
            self._indexes.get, principal.tenant, principal.edition, principal.policy.finder
        )

    async def _in_thread(self, run: Callable[..., Any], *arguments: Any) -> Any:
        async with self._free:
            return await asyncio.to_thread(run, *arguments)

    def close(self) -> None:
        """Finish what is being charged."""
        self._reserver.close()


def _vector(principal: Principal, content: str | list[float]) -> NDArray[np.int16]:
    """Return the quantised query.

    Raises:
        ApiError: It has no usable vector; the reason is the client's own doing.
    """
    mechanism = principal.policy.mechanism
    # A text is embedded here; a client's own vector must fit the index.
    if isinstance(content, str):
        embedder = load_embedder(principal.policy.claim.embedder)
        floats = np.asarray(embedder.embed([content]), np.float64)
        if floats.shape != (1, mechanism.dimension) or not np.isfinite(floats).all():
            raise RagwitnessError("The tenant's embedder gave no usable vector.")
        floats = floats[0]
    else:
        floats = np.array(content, np.float64)
        if len(floats) != mechanism.dimension:
            raise ApiError(
                f"The vector has {len(floats)} numbers, not {mechanism.dimension}.", param="vector"
            )
    try:
        return quantise(floats, mechanism)
    except InputError:
        raise ApiError("The query has no direction: its vector is zero.", param="query") from None
