"""The tables of the service, and the steps that bring an older database up to date.

A list of steps and one row with a number do what is needed here: the tables are few, a step runs
in one transaction, and no second description of them has to be kept true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
)

from ragwitness.errors import InputError

__all__ = [
    "STEPS",
    "accounts",
    "attested",
    "charges",
    "documents",
    "migrate",
    "payers",
    "spent",
    "tenants",
    "version_of",
    "windows",
]

_meta = MetaData()

_version = Table("schema_version", _meta, Column("number", Integer, primary_key=True))

tenants = Table(
    "tenants",
    _meta,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("policy", Text, nullable=False),
    Column("created", BigInteger, nullable=False),  # seconds; windows are counted from here
    Column("next_place", Integer, nullable=False, default=0),
    Column("edition", Integer, nullable=False, default=0),  # of the index; 0: not opened yet
)
payers = Table(
    "payers",
    _meta,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("name", String(64), nullable=False),
    UniqueConstraint("tenant", "name"),
)
accounts = Table(
    "accounts",
    _meta,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("payer", ForeignKey("payers.id"), nullable=False),
    Column("name", String(64), nullable=False),
    Column("place", Integer, nullable=False),  # numbers its records; never given twice
    Column("key_id", String(32), nullable=False, unique=True),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("revoked", BigInteger),
    UniqueConstraint("tenant", "name"),
)
documents = Table(
    "documents",
    _meta,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # int16, little-endian
    UniqueConstraint("tenant", "name"),
)
windows = Table(
    "windows",
    _meta,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("seed", LargeBinary, nullable=False),  # secret: every noise of the window hangs on it
    Column("charged", Integer, nullable=False, default=0),
    Column("folded", Integer, nullable=False, default=0),
    Column("state", LargeBinary),  # the odometer after the first `folded` charges
)
charges = Table(
    "charges",
    _meta,
    Column("tenant", Integer, primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
)
attested = Table(  # windows whose every answer stands in a log
    "attested",
    _meta,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("log", String(64), nullable=False),  # hash of the record that the log opens with
    Column("name", String(64), nullable=False),  # that the log is signed under; for one log only
    UniqueConstraint("tenant", "name"),
)
spent = Table(
    "spent",
    _meta,
    Column("kind", String(8), primary_key=True),  # account or payer
    Column("owner", Integer, primary_key=True, autoincrement=False),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("queries", Integer, nullable=False),
)

Step: TypeAlias = Callable[[Connection], None]


def _first_tables(connection: Connection) -> None:
    _meta.create_all(connection)


def _attested_windows(connection: Connection) -> None:
    attested.create(connection, checkfirst=True)


STEPS: tuple[Step, ...] = (_first_tables, _attested_windows)
"""Step n brings a database from version n to n + 1; a step that was released is never edited."""


def version_of(connection: Connection) -> int:
    """Return how many steps a database has seen; 0 where it is empty."""
    if not inspect(connection).has_table(_version.name):
        return 0
    return connection.execute(select(_version.c.number)).scalar() or 0


def migrate(connection: Connection, steps: Sequence[Step] = STEPS) -> int:
    """Run the steps that a database has not seen; all or none.

    Args:
        connection: In a transaction that excludes other writers.
        steps: All there are, in order.

    Returns:
        The version it came from.

    Raises:
        InputError: A newer ragwitness wrote the database.
    """
    found = version_of(connection)
    if found > len(steps):
        raise InputError(
            f"The database has schema version {found}; this ragwitness knows {len(steps)}.",
            "Update ragwitness.",
        )
    if found == len(steps):
        return found
    for step in steps[found:]:
        step(connection)
    _version.create(connection, checkfirst=True)
    connection.execute(_version.delete())
    connection.execute(_version.insert().values(number=len(steps)))
    return found
