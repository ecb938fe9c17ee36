"""Audit windows of the service: each answer is logged before it leaves, with a receipt.

The log alone gives an account its place and a query its sequence, and with them its noise
(:class:`ragwitness.attest.window.Window`); the database's meters only limit. They are charged
first, so a crash in between costs budget and leaves no gap in the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, and_, insert, select

from ragwitness.attest.commit import Contents
from ragwitness.attest.commitments import checkpoint_token
from ragwitness.attest.policy import WindowPolicy as Promised
from ragwitness.attest.receipts import Request
from ragwitness.attest.window import LoggedAnswer, Window
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file
from ragwitness.crypto.hashing import b64
from ragwitness.crypto.keys import read_key
from ragwitness.crypto.notes import Checkpoint, Note
from ragwitness.crypto.records import OpenRecord, record_hash
from ragwitness.rag.protocol import ApiError
from ragwitness.service.documents import index_rows
from ragwitness.service.meters import window_of
from ragwitness.service.policy import TenantPolicy
from ragwitness.service.principals import Principal
from ragwitness.service.store import Store
from ragwitness.service.tables import attested, documents, tenants, windows
from ragwitness.service.tenants import find_tenant

# An audit window takes from the database its policy, its indexes and its number. From then on
# the window's log has every answer of it: the meters refuse any other, in the transaction that
# charges it.

_THRESHOLD = 0.95  # least cosine of two queries that joins their accounts


@dataclass(frozen=True, slots=True, eq=False)
class HeldIndexes:
    """The indexes of a policy's tenants in a database.

    Attributes:
        contents: Their indexes, by the tenant's name.
        editions: The edition of each.
        embedder: Name of the embedder that made all vectors.
    """

    contents: Mapping[str, Contents]
    editions: Mapping[str, int]
    embedder: str


def policy_text(store: Store, tenant: str) -> str:
    """Return a tenant's promise as the policy of its first free audit window, TOML.

    Raises:
        InputError: No such tenant, or its selections cannot be proved.
    """
    with store.reading() as connection:
        row = find_tenant(connection, tenant)
        policy = TenantPolicy.from_json(row.policy)
        claim, mechanism = policy.claim, policy.mechanism
        # No earlier window can be bound: its answers have left.
        first, _ = window_of(row.created, claim.window, time.time())
        number = _free(connection, row, first, None)
    # Only the coarse integer grid is covered by the proof of a selection.
    if claim.scale is None:
        raise InputError(
            f"The noise of {tenant} has a grid that drops bits of the scores (a shift), which the"
            " selection proof does not cover.",
            "Create the tenant anew with --scale 128; its policy never changes.",
        )
    lines = {
        "window": f"{tenant}-{number}",
        "relation": claim.relation,
        "queries": claim.queries,
        # Places are fixed when the window opens; room for every account that there is.
        "accounts_most": max(row.next_place, claim.accounts),
        "epsilon": float(claim.epsilon),
        "delta": claim.delta,
        "k_max": claim.accounts,
        "joint_delta": claim.joint_delta,
        "nonces_required": True,
    }
    sizes = ("dimension", "capacity", "top", "scale")
    noise = {name: getattr(mechanism, name) for name in sizes} | {"sigma": float(claim.sigma or 0)}
    estimator = {"name": "pairs", "threshold": _THRESHOLD}
    return (
        f"{_toml(lines)}\n[estimator]\n{_toml(estimator)}\n"
        f"[tenants.{json.dumps(tenant)}]\n{_toml(noise)}"
    )


def read_contents(store: Store, promised: Promised) -> HeldIndexes:
    """Return the indexes of a policy's tenants.

    Raises:
        InputError: No such tenant, an index that nothing was added to, two embedders, or the
            database answers its queries otherwise than the policy says.
    """
    contents, editions, embedders = {}, {}, set()
    with store.reading(frozen=True) as connection:
        # Every tenant at one moment, and answered as its policy says.
        for name in promised.tenants:
            row = find_tenant(connection, name)
            policy = TenantPolicy.from_json(row.policy)
            _check(promised, name, policy)
            if not row.edition:
                raise InputError(
                    f"Nothing was ever added to the index of {name}.",
                    f"ragwitness service tenants add-documents {name} CORPUS",
                )
            contents[name] = _contents(connection, row.id, policy)
            editions[name] = row.edition
            embedders.add(policy.claim.embedder)
    if len(embedders) > 1:
        raise InputError(
            f"The tenants have several embedders: {', '.join(sorted(embedders))}.",
            "Open a window of its own for each.",
        )
    return HeldIndexes(contents, editions, embedders.pop())


def take_windows(
    store: Store,
    promised: Promised,
    opened: OpenRecord,
    editions: Mapping[str, int],
    number: int | None = None,
    now: float | None = None,
) -> dict[str, int]:
    """Bind a window of each tenant to a log.

    Args:
        store: The database.
        promised: The policy.
        opened: The record that the log opens with.
        editions: Editions of the indexes that were committed to.
        number: Number of each window; None takes each tenant's first in which nothing was charged.
        now: Seconds since the epoch; None: the clock.

    Returns:
        The window's number for each tenant.

    Raises:
        InputError: Documents were added meanwhile, the name of the window was used before, or the
            window has begun, is over or has a log.
    """
    moment = time.time() if now is None else now
    numbers = {}
    with store.writing() as connection:
        rows = [find_tenant(connection, name) for name in promised.tenants]
        for row in sorted(rows, key=lambda row: row.id):  # the meters lock in this order as well
            locked = find_tenant(connection, row.name, lock=True)
            # Under the tenant's lock: the index is the one committed to, the window is free, and
            # from the insert on the meters refuse an answer outside the log.
            if locked.edition != editions[row.name]:
                raise InputError(
                    f"Documents of {row.name} were added while the window was committed to.",
                    "Commit again.",
                )
            claim = TenantPolicy.from_json(locked.policy).claim
            first, _ = window_of(locked.created, claim.window, moment)
            numbers[row.name] = _free(connection, locked, first, number)
            _check_name(connection, locked, promised.window)
            values = {"tenant": locked.id, "window": numbers[row.name], "name": promised.window}
            # The opening record's hash names the log, whatever its folder is called.
            log = record_hash(opened).hex()
            connection.execute(insert(attested).values(**values, log=log))
    return numbers


def check_unbound(store: Store, tenant: str, now: float | None = None) -> None:
    """Check that no window of a tenant, under way or to come, was committed to.

    Raises:
        InputError: One was: with other documents its queries would be refused.
    """
    with store.reading() as connection:
        row = find_tenant(connection, tenant)
        length = TenantPolicy.from_json(row.policy).claim.window
        first, _ = window_of(row.created, length, time.time() if now is None else now)
        query = select(attested.c.window).where(
            attested.c.tenant == row.id, attested.c.window >= first
        )
        bound = sorted(connection.execute(query).scalars())
    # The first such window names the problem.
    if bound:
        raise InputError(
            f"Window {bound[0]} of {tenant} was committed to as the index is now; with more"
            " documents its queries would be refused.",
            "Add them when it is over, or close it and say --end-window.",
        )


def held_windows(store: Store, promised: Promised, log: str) -> dict[str, tuple[int, int]]:
    """Return row and number of the windows that are bound to a log, by the tenant's name.

    Args:
        store: The database.
        promised: The log's policy.
        log: Hash of its open record, in hex.

    Raises:
        InputError: There are none, or a tenant is answered otherwise than the policy says.
    """
    query = select(tenants.c.id, tenants.c.name, tenants.c.policy, attested.c.window)
    query = query.join(attested, attested.c.tenant == tenants.c.id)
    with store.reading() as connection:
        rows = connection.execute(query.where(attested.c.log == log)).all()
    # Another database than the one committed from, or only a part of it.
    if {row.name for row in rows} != set(promised.tenants):
        raise InputError(
            f"The window {promised.window} was not committed to out of this database.",
            "ragwitness attest commit --database DB binds a window to the database it came from.",
        )
    for row in rows:
        _check(promised, row.name, TenantPolicy.from_json(row.policy))
    return {row.name: (row.id, row.window) for row in rows}


def _check(promised: Promised, name: str, policy: TenantPolicy) -> None:
    """Check that the database answers a tenant's queries as an audit's policy says."""
    # The digest covers dimension, capacity, top, scale and noise alike.
    differ = "mechanism" if policy.mechanism.digest != promised.tenants[name].digest else ""
    if policy.claim.queries != promised.queries:
        differ = "number of queries"
    if differ:
        raise InputError(
            f"The policy gives {name} another {differ} than the database.",
            f"ragwitness service tenants policy {name} prints one that fits.",
        )


def _contents(connection: Connection, tenant: int, policy: TenantPolicy) -> Contents:
    mechanism = policy.mechanism
    rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    # The log never holds a text: it commits to its hash.
    digests, names = [""] * mechanism.capacity, [""] * mechanism.capacity
    for row in connection.execute(select(documents).where(documents.c.tenant == tenant)):
        rows[row.slot] = np.frombuffer(row.vector, "<i2")
        digests[row.slot] = hashlib.sha256(row.text.encode()).hexdigest()
        names[row.slot] = f"{row.name}#{row.part}" if row.part else row.name
    return Contents(rows, digests, names)


def _free(connection: Connection, tenant: Any, first: int, number: int | None) -> int:
    """Return the number of a window without answers and without a log."""
    logged = select(attested.c.window).where(attested.c.tenant == tenant.id)
    begun = select(windows.c.number).where(
        and_(windows.c.tenant == tenant.id, windows.c.charged > 0, windows.c.number >= first)
    )
    # A window with one answer outside the log can never be audited as a whole.
    taken = {*connection.execute(logged).scalars(), *connection.execute(begun).scalars()}
    if number is None:
        return next(free for free in range(first, first + len(taken) + 1) if free not in taken)
    if number < first or number in taken:
        reason = "is over" if number < first else "has begun or has a log"
        raise InputError(
            f"Window {number} of {tenant.name} {reason}; the one under way is {first}.",
            "Leave --window out to take the first that is free.",
        )
    return number


def _check_name(connection: Connection, tenant: Any, name: str) -> None:
    query = select(attested.c.window).where(attested.c.tenant == tenant.id)
    if connection.execute(query.where(attested.c.name == name)).first() is not None:
        raise InputError(
            f"{tenant.name} has had a window {name} before; two logs under one name look like two"
            " versions of one.",
            "Give the policy another name: window = …",
        )


def _toml(fields: Mapping[str, object]) -> str:
    """Return lines of TOML; a JSON number, boolean or string of printable ASCII is one there."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


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
        self._same: dict[tuple[int, int], bool] = {}
        self._published = time.monotonic()
        # One query at a time holds the window's lock; the others wait in this queue.
        self._queue = ThreadPoolExecutor(1, "log")

    async def checkpoint(self, principal: Principal, key: bytes = b"") -> dict[str, Any]:
        """Admit an account, publish the log, and return what the account's next query names.

        Args:
            principal: The account.
            key: Key with which it will sign, 32 bytes; none for an account that does not.

        Returns:
            ``checkpoint`` and its signed ``note``; the names and the ``sequence`` that the account
            signs; its ``admission`` with the proof that it is under the checkpoint.

        Raises:
            ApiError: The window is closed, all its places are taken, or the key cannot be taken.
        """
        names = (principal.tenant_name, principal.account_name)

        def publish() -> dict[str, Any]:
            # The record of admission gives the account its place and its key.
            window, ledger = self._window, self._window.ledger
            try:
                window.admit(*names, key)
            except InputError as error:
                full = len(ledger.accounts) >= window.policy.accounts_most
                if not key or ledger.closed is not None or full:
                    raise
                raise ApiError(error.message, code="log_refused") from error
            token, note = self._publish()
            account = ledger.accounts[names]
            path = ledger.log.inclusion(account.admitted, int(token.split()[0]))
            return {
                "checkpoint": token,
                "note": note,
                "window": window.policy.window,
                "tenant": names[0],
                "account": names[1],
                "sequence": account.count,
                "admission": {
                    "entry": ledger.entry(account.admitted).decode(),
                    "index": account.admitted,
                    "path": [b64(node) for node in path],
                },
            }

        return await self._run(lambda: self._refusals_as_replies(principal, publish))

    async def check(self, principal: Principal, request: Request) -> LoggedAnswer | None:
        """Check a request before it is paid for; return its answer if it was logged before.

        Raises:
            ApiError: The log cannot take it, or documents were added after the commitment.
        """

        def check() -> LoggedAnswer | None:
            self._same_index(principal)
            try:
                return self._window.logged(request)
            except InputError as error:
                ledger, signed = self._window.ledger, request.signed
                account = ledger.accounts.get((principal.tenant_name, principal.account_name))
                full = account and account.count >= self._window.policy.queries
                if full and ledger.closed is None:
                    return None  # the meters refuse it, in their own words
                # The account has signed another number than its next.
                if account and account.key and signed and signed.sequence != account.count:
                    raise ApiError(error.message, status=409, code="log_sequence") from error
                raise

        return await self._run(lambda: self._refusals_as_replies(principal, check))

    async def record(self, principal: Principal, request: Request) -> LoggedAnswer:
        """Answer a query that is paid for; its record is on the disk once this returns.

        Raises:
            ApiError: The log cannot take it.
            RagwitnessError: The disk is full or fails.
        """

        def record() -> LoggedAnswer:
            answer = self._window.record(request)
            if time.monotonic() - self._published > _PUBLISH:
                self._publish()
            return answer

        return await self._run(lambda: self._refusals_as_replies(principal, record))

    def check_index(self, tenant: int, name: str) -> bool:
        """Return whether the database still holds the index that was committed to."""
        mechanism = self._window.policy.tenants[name]
        edition, rows = index_rows(self._store, tenant, mechanism)
        same = bool(np.array_equal(rows, self._window.rows(name)))
        self._same[tenant, edition] = same
        return same

    def close(self) -> None:
        """Finish what is being logged."""
        self._queue.shutdown()

    def _same_index(self, principal: Principal) -> None:
        same = self._same.get((principal.tenant, principal.edition))
        if same is None:
            same = self.check_index(principal.tenant, principal.tenant_name)
        if not same:
            raise ApiError(
                "The index has changed since this window was committed to.",
                status=409,
                code="index_changed",
            )

    def _publish(self) -> tuple[str, str]:
        path = self._window.public / "checkpoint"
        note = read_file(path, _MOST_NOTE)
        # Only a log that has grown is signed again.
        if _token(note) != self._window.checkpoint:
            note = self._window.publish()
        self._published = time.monotonic()
        return _token(note), note.decode()

    def _refusals_as_replies(self, principal: Principal, call: Callable[[], _T]) -> _T:
        """Run a call on the window; its refusal becomes a reply."""
        try:
            return call()
        except InputError as error:
            ledger = self._window.ledger
            # From the reason that lasts longest to the one that a client can mend at once.
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
        return await asyncio.wrap_future(self._queue.submit(call))


def _token(note: bytes) -> str:
    checkpoint = Checkpoint.parse(Note.parse(note).text)
    return checkpoint_token(checkpoint.size, checkpoint.root)


class Logs:
    """The audit windows of a server.

    Args:
        store: The database.
        folders: Folders of the windows.
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
        # One key signs all logs of a server.
        keys = [read_key(Path(key))] if folders else []
        # Each window is checked wholly before the server starts.
        for folder in folders:
            window = Window.load(Path(folder), keys)
            if not window.ledger.beacon and window.ledger.closed is None:
                raise InputError(
                    f"The window in {folder} has no beacon, without which its noise could have been"
                    " chosen and no verification passes.",
                    f"The auditor draws one (ragwitness attest beacon {folder}/public), and"
                    f" ragwitness attest begin {folder} logs it.",
                )
            log = Log(window, store)
            self._all.append(log)
            for tenant, key_of_window in held_windows(store, window.policy, log.opened).items():
                if key_of_window in self._logs:
                    raise InputError(f"{folder} is given a second time.", "Name each window once.")
                self._logs[key_of_window] = log
                if not log.check_index(key_of_window[0], tenant):
                    raise InputError(
                        f"The database holds another index of {tenant} than {folder} was committed"
                        " to.",
                        "Documents that were added since wait for the next window: ragwitness"
                        " commit.",
                    )

    def of(self, principal: Principal, number: int) -> Log | None:
        """Return the log in which an answer must stand; None for a tenant without one.

        Args:
            principal: Who asks.
            number: Number of the tenant's window that is under way.

        Raises:
            ApiError: The tenant has logs, and none is of this window.
        """
        # A tenant that was promised a log is never answered outside it.
        log = self._logs.get((principal.tenant, number))
        if log is None and any(tenant == principal.tenant for tenant, _ in self._logs):
            raise no_log()
        return log

    def close(self) -> None:
        """Finish what is being logged."""
        for log in self._all:
            log.close()


def no_log() -> ApiError:
    """Return the refusal of a query whose answer would be in no log, or the wrong one."""
    message = "Answers of this tenant are logged, and this server has no log for this window."
    return ApiError(message, status=409, code="no_log")
