"""Answers that stand in an audit window's log before they leave, each with a receipt.

The log alone gives an account its place and a query its sequence, and with them its noise
(:class:`ragwitness.attest.window.Window`); the database's meters only limit. They are charged
first, so a crash in between costs budget and leaves no gap in the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from ragwitness.attest.folder import read_bytes
from ragwitness.attest.openings import checkpoint_token
from ragwitness.attest.window import Answered, Request, Window
from ragwitness.crypto.keys import read_key
from ragwitness.crypto.notes import Checkpoint, Note
from ragwitness.crypto.transcript import record_hash
from ragwitness.errors import InputError
from ragwitness.rag.requests import ApiError
from ragwitness.service.committing import held_windows
from ragwitness.service.indexes import index_rows
from ragwitness.service.principals import Principal
from ragwitness.service.store import Store

__all__ = ["Log", "Logs", "no_log"]

_PUBLISH = 10.0  # seconds between two published checkpoints while there are queries
_MOST_NOTE = 1 << 16

_T = TypeVar("_T")


class Log:
    """One audit window, for one process of the service.

    Args:
        window: Loaded with the log's key.
        store: The database that it came from.

    Attributes:
        opened: Hash of the log's open record, by which the database knows it.
    """

    def __init__(self, window: Window, store: Store) -> None:
        self.opened = record_hash(window.ledger.opened).hex()
        self._window = window
        self._store = store
        self._alike: dict[tuple[int, int], bool] = {}
        self._published = time.monotonic()
        # One query at a time holds the window's lock; the others wait here, not in its way.
        self._one = ThreadPoolExecutor(1, "log")

    async def checkpoint(self, principal: Principal) -> tuple[str, str]:
        """Admit an account, publish the log, and return its checkpoint and how to name it.

        Raises:
            ApiError: The window is closed, or all its places are taken.
        """

        def publish() -> tuple[str, str]:
            self._window.admit(principal.tenant_name, principal.account_name)
            return self._publish()

        return await self._run(lambda: self._told(principal, publish))

    async def check(self, principal: Principal, request: Request) -> Answered | None:
        """Check a request before it is paid for; return its answer if it was logged before.

        Raises:
            ApiError: The log cannot take it, or documents were added after the commitment.
        """

        def check() -> Answered | None:
            self._same_index(principal)
            try:
                return self._window.logged(request)
            except InputError:
                if self._spent(principal):
                    return None  # the meters say so, too, in their own words
                raise

        return await self._run(lambda: self._told(principal, check))

    async def record(self, principal: Principal, request: Request) -> Answered:
        """Answer a query that is paid for; its record is on the disk once this returns.

        Raises:
            ApiError: The log cannot take it.
            RagwitnessError: The disk is full or fails.
        """

        def record() -> Answered:
            found = self._window.record(request)
            if time.monotonic() - self._published > _PUBLISH:
                self._publish()
            return found

        return await self._run(lambda: self._told(principal, record))

    def check_index(self, tenant: int, name: str) -> bool:
        """Return whether the database still holds the index that was committed to."""
        mechanism = self._window.policy.tenants[name]
        edition, rows = index_rows(self._store, tenant, mechanism)
        alike = bool(np.array_equal(rows, self._window.rows(name)))
        self._alike[tenant, edition] = alike
        return alike

    def close(self) -> None:
        """Finish what is being logged."""
        self._one.shutdown()

    def _same_index(self, principal: Principal) -> None:
        alike = self._alike.get((principal.tenant, principal.edition))
        if alike is None:
            alike = self.check_index(principal.tenant, principal.tenant_name)
        if not alike:
            raise ApiError(
                "The index has changed since this window was committed to.",
                status=409,
                code="index_changed",
            )

    def _publish(self) -> tuple[str, str]:
        path = self._window.public / "checkpoint"
        note = read_bytes(path, _MOST_NOTE)
        found = Checkpoint.parse(Note.parse(note).text)
        if checkpoint_token(found.size, found.root) != self._window.checkpoint:
            note = self._window.publish()
            found = Checkpoint.parse(Note.parse(note).text)
        self._published = time.monotonic()
        return checkpoint_token(found.size, found.root), note.decode()

    def _spent(self, principal: Principal) -> bool:
        ledger, most = self._window.ledger, self._window.policy.queries
        held = ledger.accounts.get((principal.tenant_name, principal.account_name))
        return ledger.closed is None and held is not None and held.count >= most

    def _told(self, principal: Principal, call: Callable[[], _T]) -> _T:
        """Run something on the window; what it refuses becomes a reply."""
        try:
            return call()
        except InputError as error:
            ledger = self._window.ledger
            if ledger.closed is not None:
                raise ApiError(
                    "This window is closed.", status=409, code="window_closed"
                ) from error
            if (principal.tenant_name, principal.account_name) in ledger.accounts:
                raise ApiError(error.message, code="log_refused") from error
            if len(ledger.accounts) >= self._window.policy.accounts_most:
                raise ApiError(
                    "All places of this window are taken.", status=409, code="window_full"
                ) from error
            raise ApiError(
                "This account has no place in the log yet: GET /v1/log/checkpoint, then name that"
                " checkpoint beside a fresh nonce.",
                status=409,
                code="not_admitted",
            ) from error

    async def _run(self, call: Callable[[], _T]) -> _T:
        return await asyncio.wrap_future(self._one.submit(call))


class Logs:
    """The audit windows of a server.

    Args:
        store: The database.
        folders: Of the windows.
        key: File with the log's private key.

    Raises:
        InputError: A folder or the key is unusable, two windows are the same tenant's at the same
            time, or the database is another or has changed since.
    """

    def __init__(self, store: Store, folders: Sequence[str], key: str) -> None:
        self._logs: dict[tuple[int, int], Log] = {}
        self._all: list[Log] = []
        if folders and not key:
            raise InputError(
                "An audit window cannot be served without its log's key.", "Give it: --key KEY."
            )
        keys = [read_key(Path(key))] if folders else []
        for folder in folders:
            window = Window.load(Path(folder), keys)
            log = Log(window, store)
            self._all.append(log)
            for tenant, place in held_windows(store, window.policy, log.opened).items():
                if place in self._logs:
                    raise InputError(f"{folder} is given a second time.", "Name each window once.")
                self._logs[place] = log
                _check_index(log, place[0], tenant, folder)

    def of(self, principal: Principal, number: int) -> Log | None:
        """Return the log in which an answer must stand; None for a tenant without one.

        Args:
            principal: Who asks.
            number: Of the tenant's window that is under way.

        Raises:
            ApiError: The tenant has logs, and none is of this window.
        """
        found = self._logs.get((principal.tenant, number))
        if found is None and any(tenant == principal.tenant for tenant, _ in self._logs):
            raise no_log()
        return found

    def close(self) -> None:
        """Finish what is being logged."""
        for log in self._all:
            log.close()


def no_log() -> ApiError:
    """Return the refusal of a query whose answer would stand in no log, or the wrong one."""
    message = "Answers of this tenant stand in a log, and this server has none for this window."
    return ApiError(message, status=409, code="no_log")


def _check_index(log: Log, tenant: int, name: str, folder: str) -> None:
    if not log.check_index(tenant, name):
        raise InputError(
            f"The database holds another index of {name} than {folder} was committed to.",
            "Documents that were added since wait for the next window: ragwitness commit.",
        )
