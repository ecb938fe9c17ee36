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
from ragwitness.service.meters import (
    ChargeRequest,
    MeterReading,
    Refused,
    Reserved,
    Reserver,
    window_of,
)
from ragwitness.service.principals import Principal, read_meters
from ragwitness.service.store import SharedReads, Store
from ragwitness.service.window import Log, Logs

_SMALL = 1 << 20
"""Numbers of an index that are scored in a fifth of a millisecond."""


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What is asked, and what the client adds to the noise.

    Attributes:
        what: A text, or a vector of the client's own.
        nonce: The client's random text.
        checkpoint: The log's checkpoint that it saw last.
        signed: The account's signature, where the account has a key in the log.
    """

    what: str | list[float]
    nonce: str = ""
    checkpoint: str = ""
    signed: RequestSignature | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the query as sent, in hex: UTF-8, or doubles in little-endian order."""
        given = self.what
        content = given.encode() if isinstance(given, str) else np.array(given, "<f8").tobytes()
        return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a query selected.

    Attributes:
        slots: Best first; some may be empty.
        window: Number of the audit window.
        sequence: Sequence number of the record within its account and window.
        reading: The account's meters after it; None where nothing is metered.
        seconds_left: Until the next window.
        documents: Slot, id and text of the selected documents that may be shown, in their order.
        receipt: File for the account to keep; None where answers stand in no log.
    """

    slots: tuple[int, ...]
    window: int
    sequence: int
    reading: MeterReading | None
    seconds_left: int
    documents: tuple[dict[str, object], ...] = ()
    receipt: str | None = None


class SpentError(Exception):
    """A meter has no room for the query.

    Args:
        by: Which, for the log alone.
        reading: The account's meters.
        seconds_left: Until the next window.
    """

    def __init__(self, by: str, reading: MeterReading, seconds_left: int) -> None:
        super().__init__(by)
        self.by, self.reading, self.seconds_left = by, reading, seconds_left


class Retriever:
    """Answers queries of any tenant, each over its own index.

    Args:
        store: The database.
        clock: Seconds since the epoch.
        logs: Audit windows in whose logs answers stand before they leave.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        logs: Logs | None = None,
    ) -> None:
        self._store = store
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
        # An index to which nothing was ever added: public, and the same for every account.
        if not principal.edition:  # a state of the tenant's that its operator ends for good
            raise ApiError("This service holds no documents yet.", status=409, code="empty_index")
        placement = principal.policy.placement
        if placement is not None:
            return await self._placed(principal, query, placement)
        found = await self._noisy(principal, query)
        if not principal.policy.claim.texts:
            return found
        return replace(found, documents=await self._shown(principal, found.slots))

    async def _placed(
        self, principal: Principal, query: RetrievalQuery, placement: Placement
    ) -> Retrieved:
        """Answer from where documents were placed for life: nothing is left to pay for."""
        if not isinstance(query.what, str):
            raise ApiError("This service takes a text, not a vector.", param="vector")
        codes = await self._index(principal)
        found = Retrieved(placement.answer(query.what, codes), 0, 0, None, 0)
        if not principal.policy.claim.texts:
            return found
        # A slot that was drawn by lot shows nothing: its document was not asked for.
        words = placement.words(query.what)
        asked = [slot for slot in found.slots if int(codes[slot]) in words]
        shown = [
            one
            for one in await self._shown(principal, asked)
            if has_word(str(one["text"]), words[int(codes[one["slot"]])])
        ]
        return replace(found, documents=tuple(shown))

    async def _shown(
        self, principal: Principal, slots: Sequence[int]
    ) -> tuple[dict[str, Any], ...]:
        """Return slot, id and text of the documents in some slots, in that order; no empty ones."""
        places = [(principal.tenant, slot) for slot in slots]
        return tuple((await self._documents.of(places)).values()) if places else ()

    async def _index(self, principal: Principal) -> Any:
        place = principal.tenant, principal.edition
        index = self._indexes.held(*place)
        if index is not None:
            return index
        return await self._aside(False, self._indexes.get, *place, principal.policy.finder)

    async def _aside(self, brief: bool, run: Callable[..., Any], *given: Any) -> Any:
        """Run in a thread, unless to hand it to one takes longer than the work."""
        if brief:
            return run(*given)
        async with self._free:
            return await asyncio.to_thread(run, *given)

    async def _noisy(self, principal: Principal, query: RetrievalQuery) -> Retrieved:
        """Pay for a query, then answer it; what can be refused is refused before the meters."""
        # 1. The query's vector, quantised; a failure up to here is the client's and costs nothing.
        mechanism = principal.policy.mechanism
        window, left = self.window(principal)
        log = self._logs.of(principal, window) if self._logs is not None else None
        vector = await self._aside(not isinstance(query.what, str), _vector, principal, query)
        ask = ChargeRequest(
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
            return await self._logged(log, principal, query, ask, left)
        index = await self._index(principal)
        # 3. Pay first, durably: a crash from here on costs budget and never privacy.
        paid = await self._pay(ask, left)
        # 4. Noise keyed by this record alone, then the best K slots.
        key = _key(principal, query, window, paid)
        small = mechanism.capacity * mechanism.dimension <= _SMALL
        found = await self._aside(small, release, vector, index, key, mechanism)
        return Retrieved(found.ids, window, paid.sequence, paid.reading, left)

    def close(self) -> None:
        """Finish what is being charged and logged."""
        self._reserver.close()
        if self._logs is not None:
            self._logs.close()

    async def _pay(self, ask: ChargeRequest, left: int) -> Reserved:
        outcome = await self._reserver.reserve(ask)
        if isinstance(outcome, Refused):
            raise SpentError(outcome.by, outcome.reading, left)
        return outcome

    async def _logged(
        self, log: Log, principal: Principal, query: RetrievalQuery, ask: ChargeRequest, left: int
    ) -> Retrieved:
        """Answer out of an audit window; a repetition gets what was logged, and costs nothing."""
        request = Request(
            principal.tenant_name,
            principal.account_name,
            query.digest,
            ask.vector,
            query.nonce,
            query.checkpoint,
            signed=query.signed,
        )
        # 2a. The same request again: what was logged leaves once more, no privacy is spent twice.
        found = await log.check(principal, request)
        if found is not None:
            reading = await asyncio.to_thread(read_meters, self._store, principal, ask.window)
        else:
            # 2b. Charged, then recorded: a crash in between costs budget, and the log has no gap.
            reading = (await self._pay(ask, left)).reading
            found = await log.record(principal, request)
        text = found.receipt.encode().decode()
        return Retrieved(found.ids, ask.window, found.sequence, reading, left, receipt=text)


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
    given = query.what
    mechanism = principal.policy.mechanism
    if isinstance(given, str):
        embedder = load_embedder(principal.policy.claim.embedder)
        floats = np.asarray(embedder.embed([given]), np.float64)
        if floats.shape != (1, mechanism.dimension) or not np.isfinite(floats).all():
            raise RagwitnessError("The tenant's embedder gave no usable vector.")
        floats = floats[0]
    else:
        floats = np.array(given, np.float64)
        if len(floats) != mechanism.dimension:
            raise ApiError(
                f"The vector has {len(floats)} numbers, not {mechanism.dimension}.", param="vector"
            )
    try:
        return quantise(floats, mechanism)
    except InputError:
        raise ApiError("The query has no direction: its vector is zero.", param="query") from None
