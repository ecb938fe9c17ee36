"""From a query to the selected slots: embed, pay, then add noise and select."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.receipts import Request, RequestSignature
from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import Placement, has_word
from ragwitness.privacy.release import quantise, release
from ragwitness.privacy.streams import NoiseRecord, answer_key, sub_seed_number
from ragwitness.rag.pipeline import PARALLEL
from ragwitness.rag.protocol import ApiError
from ragwitness.service.documents import Indexes, documents_at
from ragwitness.service.meters import ChargeRequest, Refused, Reserved, Reserver, window_of
from ragwitness.service.principals import Principal
from ragwitness.service.store import SharedReads, Store
from ragwitness.service.window import Log, Logs


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """A query, and what the client adds to the key of the noise.

    Attributes:
        content: A text, or a vector of the client's own.
        nonce: The client's random text.
        checkpoint: The log's checkpoint that it saw last.
        signed: The account's signature, where the account has a key in the log.
    """

    content: str | list[float]
    nonce: str = ""
    checkpoint: str = ""
    signed: RequestSignature | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the query as sent, in hex: UTF-8, or doubles in little-endian order."""
        text = self.content
        data = text.encode() if isinstance(text, str) else np.array(text, "<f8").tobytes()
        return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The selection for a query.

    Attributes:
        slots: Best first; some may be empty.
        window: Number of the audit window; 0 with codes.
        sequence: Sequence number of the record within its account and window; 0 with codes.
        documents: Slot, id and text of the selected documents that may be shown, in their order.
        receipt: File for the account to keep; None without a log.
    """

    slots: tuple[int, ...]
    window: int = 0
    sequence: int = 0
    documents: tuple[dict[str, Any], ...] = ()
    receipt: str | None = None


class SpentError(Exception):
    """A meter has no room for the query.

    Args:
        by: The meter, for the operator's log alone.
        seconds_left: Until the next window.
    """

    def __init__(self, by: str, seconds_left: int) -> None:
        super().__init__(by)
        self.by, self.seconds_left = by, seconds_left


class Retriever:
    """Answers queries of any tenant, each over its own index.

    Args:
        store: The database.
        clock: Seconds since the epoch.
        logs: Audit windows, whose logs record answers before they leave.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        logs: Logs | None = None,
    ) -> None:
        self._logs = logs
        self._indexes = Indexes(store)
        self._documents = SharedReads(partial(documents_at, store))
        self._reserver = Reserver(store)
        self._clock = clock
        self._free = asyncio.Semaphore(PARALLEL)

    def window(self, principal: Principal) -> tuple[int, int]:
        """Return the number of the tenant's audit window and the seconds until the next."""
        return window_of(principal.created, principal.policy.claim.window, self._clock())

    def log(self, principal: Principal) -> Log | None:
        """Return the log in which the tenant's answers of this window stand.

        Raises:
            ApiError: The tenant has logs, and none is of this window.
        """
        number, _ = self.window(principal)
        return self._logs.of(principal, number) if self._logs is not None else None

    async def retrieve(self, principal: Principal, query: RetrievalQuery) -> Retrieved:
        """Answer a query, with the texts that may be shown.

        Raises:
            ApiError: The query is unusable, or the tenant has no index yet.
            SpentError: A meter has no room for it.
            StoreGoneError: The database failed.
        """
        # Whether an index was ever filled is public, and the same for every account.
        if not principal.edition:
            raise ApiError("This service holds no documents yet.", status=409, code="empty_index")
        placement = principal.policy.placement
        if placement is not None:
            return await self._placed(principal, query, placement)
        result = await self._noisy(principal, query)
        if not principal.policy.claim.texts:
            return result
        return replace(result, documents=await self._texts(principal, result.slots))

    async def _placed(
        self, principal: Principal, query: RetrievalQuery, placement: Placement
    ) -> Retrieved:
        """Answer from the placement, which was paid for once and for life."""
        if not isinstance(query.content, str):
            raise ApiError("This service takes a text, not a vector.", param="vector")
        codes = await self._index(principal)
        result = Retrieved(placement.answer(query.content, codes))
        if not principal.policy.claim.texts:
            return result
        # A slot that was drawn by lot shows nothing: the query has no word of its document.
        words = placement.words(query.content)
        slots = [slot for slot in result.slots if int(codes[slot]) in words]
        documents = tuple(
            document
            for document in await self._texts(principal, slots)
            if has_word(document["text"], words[int(codes[document["slot"]])])
        )
        return replace(result, documents=documents)

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

    async def _noisy(self, principal: Principal, query: RetrievalQuery) -> Retrieved:
        """Pay for a query, then answer it; an unusable query is refused before the meters."""
        # 1. The query's vector, quantised; a failure up to here is the client's and costs nothing.
        mechanism = principal.policy.mechanism
        window, seconds_left = self.window(principal)
        log = self._logs.of(principal, window) if self._logs is not None else None
        vector = await self._in_thread(_vector, principal, query)
        charge = ChargeRequest(
            principal.tenant,
            principal.account,
            principal.payer,
            principal.policy,
            window,
            vector,
            log.opened if log is not None else None,
        )
        # 2. In an audit window the log answers, after the meters were charged.
        if log is not None:
            return await self._logged(log, principal, query, charge, seconds_left)
        index = await self._index(principal)
        # 3. Pay first, durably: a crash from here on costs budget and never privacy.
        paid = await self._pay(charge, seconds_left)
        # 4. Noise keyed by this record alone, then the best K slots.
        key = _key(principal, query, window, paid)
        answer = await self._in_thread(release, vector, index, key, mechanism)
        return Retrieved(answer.ids, window, paid.sequence)

    def close(self) -> None:
        """Finish what is being charged and logged."""
        self._reserver.close()
        if self._logs is not None:
            self._logs.close()

    async def _pay(self, charge: ChargeRequest, left: int) -> Reserved:
        outcome = await self._reserver.reserve(charge)
        if isinstance(outcome, Refused):
            raise SpentError(outcome.by, left)
        return outcome

    async def _logged(
        self,
        log: Log,
        principal: Principal,
        query: RetrievalQuery,
        charge: ChargeRequest,
        left: int,
    ) -> Retrieved:
        """Answer out of an audit window; a repeated request gets the logged answer for free."""
        request = Request(
            principal.tenant_name,
            principal.account_name,
            query.digest,
            charge.vector,
            query.nonce,
            query.checkpoint,
            signed=query.signed,
        )
        answer = await log.check(principal, request)
        if answer is None:
            # Charged, then recorded: a crash in between costs budget, and the log has no gap.
            await self._pay(charge, left)
            answer = await log.record(principal, request)
        receipt = answer.receipt.encode().decode()
        return Retrieved(answer.ids, charge.window, answer.sequence, receipt=receipt)


def _key(principal: Principal, query: RetrievalQuery, window: int, paid: Reserved) -> bytes:
    """Return the key of the answer's noise, from the record alone (see ``privacy.streams``)."""
    policy = principal.policy
    number = sub_seed_number(paid.place, policy.claim.queries, paid.sequence)
    # Window, tenant, account and sequence make the record unique; nonce and checkpoint are the
    # client's, so that the provider cannot have tried keys beforehand.
    record = NoiseRecord(
        window=str(window),
        tenant=principal.tenant_name,
        account=principal.account_name,
        sequence=paid.sequence,
        nonce=query.nonce,
        checkpoint=query.checkpoint,
        query=query.digest,
        mechanism=policy.mechanism.digest,
    )
    return answer_key(paid.seed, number, record)


def _vector(principal: Principal, query: RetrievalQuery) -> NDArray[np.int16]:
    """Return the quantised query.

    Raises:
        ApiError: It has no usable vector; the reason is the client's own doing.
    """
    content = query.content
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
