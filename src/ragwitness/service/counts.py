"""Queries of accounts and payers in a window, as the database holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, insert, select, tuple_, update

from ragwitness.service.schema import spent

__all__ = ["Owner", "read_counts", "write_counts"]

_FIRST = insert(spent).values(
    kind=bindparam("k"), owner=bindparam("o"), window=bindparam("w"), queries=bindparam("q")
)
_MORE = (
    update(spent)
    .where(
        spent.c.kind == bindparam("k"),
        spent.c.owner == bindparam("o"),
        spent.c.window == bindparam("w"),
    )
    .values(queries=bindparam("q"))
)

Owner: TypeAlias = tuple[str, int, int]
"""Kind (``account`` or ``payer``), row and window."""


def read_counts(connection: Connection, owners: Iterable[Owner]) -> dict[Owner, int]:
    """Return the counts of some owners; one without a query is left out."""
    wanted = sorted(set(owners))
    columns = tuple_(spent.c.kind, spent.c.owner, spent.c.window)
    found = connection.execute(select(spent).where(columns.in_(wanted)))
    return {(row.kind, row.owner, row.window): row.queries for row in found}


def write_counts(connection: Connection, before: dict[Owner, int], after: dict[Owner, int]) -> None:
    """Store the counts that changed; ``before`` is what the table holds."""
    new: list[dict[str, object]] = []
    old: list[dict[str, object]] = []
    for key, count in after.items():
        if before.get(key) != count:
            kind, owner, window = key
            row = {"k": kind, "o": owner, "w": window, "q": count}
            (old if key in before else new).append(row)
    if new:
        connection.execute(_FIRST, new)
    if old:
        connection.execute(_MORE, old)
