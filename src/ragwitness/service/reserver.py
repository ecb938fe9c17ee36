"""One thread per process that charges queries: whatever waits shares one transaction.

A commit has to reach the disk, which takes milliseconds; two hundred queries in flight would stand
in line for two hundred of them.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future

from ragwitness.errors import InputError
from ragwitness.service.meters import Ask, Meters, Refused, Reserved
from ragwitness.service.store import Store

__all__ = ["Reserver"]

_TOGETHER = 64
"""Most queries of one transaction: the others of its tenants wait that long."""


class Reserver:
    """Charges queries of one process, in the order they come.

    Args:
        store: Where the meters are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._meters = Meters()
        self._waiting: queue.SimpleQueue[_Wanted | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="meters", daemon=True)
        self._thread.start()

    async def reserve(self, ask: Ask) -> Reserved | Refused:
        """Charge a query; it is paid for, durably, once this returns.

        Raises:
            StoreGoneError: The database failed; the query may have been charged.
        """
        wanted: _Wanted = (ask, Future())
        self._waiting.put(wanted)
        return await asyncio.wrap_future(wanted[1])

    def close(self) -> None:
        """Finish what waits and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            wanted, last = self._next()
            # Who has hung up meanwhile is not charged.
            live = [one for one in wanted if one[1].set_running_or_notify_cancel()]
            if live:
                self._charge(live)
            if last:
                return

    def _next(self) -> tuple[list[_Wanted], bool]:
        """Return what waits, at least one, and whether it is the last."""
        found: list[_Wanted] = []
        while len(found) < _TOGETHER:
            try:
                one = self._waiting.get(block=not found)
            except queue.Empty:
                break
            if one is None:
                return found, True
            found.append(one)
        return found, False

    def _charge(self, wanted: list[_Wanted]) -> None:
        try:
            with self._store.writing() as connection:
                outcomes = self._meters.charge(connection, [ask for ask, _ in wanted])
        except BaseException as error:  # the thread must outlive it, and every query be told
            self._meters.forget()
            tenants = sorted({ask.tenant for ask, _ in wanted})
            if isinstance(error, InputError) and len(tenants) > 1:
                # What is stored of one cannot be read; nothing was committed. The others go on.
                for tenant in tenants:
                    self._charge([one for one in wanted if one[0].tenant == tenant])
                return
            for _, future in wanted:
                future.set_exception(error)
            return
        for (_, future), outcome in zip(wanted, outcomes, strict=True):
            future.set_result(outcome)


_Wanted = tuple[Ask, "Future[Reserved | Refused]"]
