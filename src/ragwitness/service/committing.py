"""What an audit window takes from the database: policy, indexes, and which window it is to be.

From then on every answer of that window stands in the window's log: the meters refuse a query that
would be answered otherwise, in the transaction that charges it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, insert, select

from ragwitness.attest.committing import Contents
from ragwitness.attest.policy import Policy as Promised
from ragwitness.crypto.transcript import OpenRecord, record_hash
from ragwitness.errors import InputError
from ragwitness.service.meters import window_of
from ragwitness.service.policy import Policy
from ragwitness.service.schema import attested, documents, tenants, windows
from ragwitness.service.store import Store
from ragwitness.service.tenants import find_tenant

__all__ = ["Held", "check_unbound", "held_windows", "policy_text", "read_contents", "take_windows"]

_THRESHOLD = 0.95  # least cosine of two queries that joins their accounts


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a database holds of a policy's tenants.

    Attributes:
        contents: Their indexes, by the tenant's name.
        editions: Which edition of each.
        embedder: Name of the one that made all vectors.
    """

    contents: Mapping[str, Contents]
    editions: Mapping[str, int]
    embedder: str


def policy_text(
    store: Store, tenant: str, window: str | None = None, accounts_most: int | None = None
) -> str:
    """Return a tenant's promise as the policy of an audit window, TOML.

    Args:
        store: The database.
        tenant: Name of the tenant.
        window: Name of the window; None: the tenant's with the number of the first that is free.
        accounts_most: Accounts that can be admitted; None: those there are, k_max at least.

    Raises:
        InputError: No such tenant, or its selections cannot be proved.
    """
    with store.reading() as connection:
        row = find_tenant(connection, tenant)
        policy = Policy.from_json(row.policy)
        claim, mechanism = policy.claim, policy.mechanism
        first, _ = window_of(row.created, claim.window, time.time())
        number = _free(connection, row, first, None)
    if claim.scale is None:
        raise InputError(
            f"The noise of {tenant} has a grid that drops bits of the scores (a shift), which the"
            " selection proof does not cover.",
            "Create the tenant anew with --scale 128; its policy never changes.",
        )
    most = accounts_most or max(row.next_place, claim.accounts)
    lines = {
        "window": window or f"{tenant}-{number}",
        "relation": claim.relation,
        "queries": claim.queries,
        "accounts_most": most,
        "epsilon": float(claim.epsilon),
        "delta": claim.delta,
        "k_max": claim.accounts,
        "joint_delta": claim.joint_delta,
        "nonces_required": True,
    }
    noise = {
        "dimension": mechanism.dimension,
        "capacity": mechanism.capacity,
        "top": mechanism.top,
        "scale": mechanism.scale,
        "sigma": float(claim.sigma or 0.0),
    }
    estimator = {"name": "pairs", "threshold": _THRESHOLD}
    return (
        f"{_toml(lines)}\n[estimator]\n{_toml(estimator)}\n"
        f"[tenants.{json.dumps(tenant)}]\n{_toml(noise)}"
    )


def read_contents(store: Store, promised: Promised) -> Held:
    """Return the indexes of a policy's tenants.

    Raises:
        InputError: No such tenant, an index that nothing was added to, two embedders, or the
            database answers its queries otherwise than the policy says.
    """
    contents, editions, embedders = {}, {}, set()
    with store.reading(frozen=True) as connection:
        for name in promised.tenants:
            row = find_tenant(connection, name)
            policy = Policy.from_json(row.policy)
            _check(promised, name, policy)
            if not row.edition:
                raise InputError(
                    f"Nothing was ever added to the index of {name}.",
                    f"ragwitness tenants add-documents {name} CORPUS",
                )
            contents[name] = _contents(connection, row.id, policy)
            editions[name] = row.edition
            embedders.add(policy.claim.embedder)
    if len(embedders) > 1:
        raise InputError(
            f"The tenants have several embedders: {', '.join(sorted(embedders))}.",
            "Open a window of its own for each.",
        )
    return Held(contents, editions, embedders.pop())


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
        editions: Of the indexes that were committed to.
        number: Of the windows; None: of each tenant the first in which nothing was charged.
        now: Seconds since the epoch; None: the clock.

    Returns:
        The window's number for each tenant.

    Raises:
        InputError: Documents were added meanwhile, the name of the window was used before, or the
            window has begun, is over or has a log.
    """
    moment = time.time() if now is None else now
    found = {}
    with store.writing() as connection:
        rows = [find_tenant(connection, name) for name in promised.tenants]
        for row in sorted(rows, key=lambda one: one.id):  # the meters lock in this order as well
            held = find_tenant(connection, row.name, lock=True)
            if held.edition != editions[row.name]:
                raise InputError(
                    f"Documents of {row.name} were added while the window was committed to.",
                    "Commit again.",
                )
            claim = Policy.from_json(held.policy).claim
            first, _ = window_of(held.created, claim.window, moment)
            found[row.name] = _free(connection, held, first, number)
            _check_name(connection, held, promised.window)
            values = {"tenant": held.id, "window": found[row.name], "name": promised.window}
            log = record_hash(opened).hex()
            connection.execute(insert(attested).values(**values, log=log))
    return found


def check_unbound(store: Store, tenant: str, now: float | None = None) -> None:
    """Check that no window of a tenant, under way or to come, was committed to.

    Raises:
        InputError: One was: with other documents its queries would be refused.
    """
    with store.reading() as connection:
        row = find_tenant(connection, tenant)
        length = Policy.from_json(row.policy).claim.window
        first, _ = window_of(row.created, length, time.time() if now is None else now)
        query = select(attested.c.window).where(
            attested.c.tenant == row.id, attested.c.window >= first
        )
        bound = sorted(connection.execute(query).scalars())
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
    if {row.name for row in rows} != set(promised.tenants):
        raise InputError(
            f"The window {promised.window} was not committed to out of this database.",
            "ragwitness commit --database DB binds a window to the database it came from.",
        )
    for row in rows:
        _check(promised, row.name, Policy.from_json(row.policy))
    return {row.name: (row.id, row.window) for row in rows}


def _check(promised: Promised, name: str, policy: Policy) -> None:
    """Check that the database answers a tenant's queries as an audit's policy says."""
    differ = "mechanism" if policy.mechanism.digest != promised.tenants[name].digest else ""
    if policy.claim.queries != promised.queries:
        differ = "number of queries"
    if differ:
        raise InputError(
            f"The policy gives {name} another {differ} than the database.",
            f"ragwitness tenants policy {name} prints one that fits.",
        )


def _contents(connection: Connection, tenant: int, policy: Policy) -> Contents:
    mechanism = policy.mechanism
    rows = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    digests, names = [""] * mechanism.capacity, [""] * mechanism.capacity
    for row in connection.execute(select(documents).where(documents.c.tenant == tenant)):
        rows[row.slot] = np.frombuffer(row.vector, "<i2")
        digests[row.slot] = hashlib.sha256(row.text.encode()).hexdigest()
        names[row.slot] = row.name
    return Contents(rows, digests, names)


def _free(connection: Connection, tenant: Any, first: int, number: int | None) -> int:
    """Return the number of a window without answers and without a log."""
    logged = select(attested.c.window).where(attested.c.tenant == tenant.id)
    begun = select(windows.c.number).where(
        and_(windows.c.tenant == tenant.id, windows.c.charged > 0, windows.c.number >= first)
    )
    taken = {*connection.execute(logged).scalars(), *connection.execute(begun).scalars()}
    if number is None:
        return next(one for one in range(first, first + len(taken) + 1) if one not in taken)
    if number < first or number in taken:
        why = "is over" if number < first else "has begun or has a log"
        raise InputError(
            f"Window {number} of {tenant.name} {why}; the one under way is {first}.",
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
