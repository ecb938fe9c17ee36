"""The tables of the service."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
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

from ragwitness.core.errors import InputError

META = MetaData()

tenants = Table(
    "tenants",
    META,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("policy", Text, nullable=False),
    Column("created", BigInteger, nullable=False),  # seconds; windows are counted from here
    Column("edition", Integer, nullable=False, default=0),  # of the index; 0: not opened yet
    Column("used", Float, nullable=False, server_default="0"),  # mu squared that no window shows
)
payers = Table(
    "payers",
    META,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("name", String(64), nullable=False),
    UniqueConstraint("tenant", "name"),
)
accounts = Table(
    "accounts",
    META,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("payer", ForeignKey("payers.id"), nullable=False),
    Column("name", String(64), nullable=False),
    Column("key_id", String(32), nullable=False, unique=True),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("revoked", BigInteger),
    UniqueConstraint("tenant", "name"),
)
documents = Table(  # the content of slots: documents, or their parts
    "documents",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),  # id of the document, as its owner gave it
    Column("part", Integer, nullable=False),  # from 0
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # int16, little-endian; empty if placed
    UniqueConstraint("tenant", "name", "part"),
)
contents = Table(  # documents that are or were placed: one draw for each id, for life
    "contents",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),  # how often its text was given
    Column("code", Integer, nullable=False),  # the group of words it was placed under
)
ballots = Table(  # votes that documents have had
    "ballots",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("used", Integer, nullable=False),
)
windows = Table(
    "windows",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("charged", Integer, nullable=False, default=0),
    Column("folded", Integer, nullable=False, default=0),
    Column("state", LargeBinary),  # the odometer after the first `folded` charges
    Column("granted", Float),  # mu that it may spend; null: its policy's budget
    Column("final", Float),  # mu that it has spent, once it is over
)
charges = Table(
    "charges",
    META,
    Column("tenant", Integer, primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
)
spent = Table(
    "spent",
    META,
    Column("kind", String(8), primary_key=True),  # account or payer
    Column("owner", Integer, primary_key=True, autoincrement=False),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("queries", Integer, nullable=False),
)


CLOSED: dict[str, object] = {
    "granted": 0.0,
    "final": None,
    "state": None,
    "charged": 0,
    "folded": 0,
}
"""A window that grants nothing, for good: its spending is counted elsewhere."""


VERSION = 7
"""Of the tables. There are no steps from one version to the next: a promise that was made under
other rules cannot be kept by these."""

_version = Table("schema_version", META, Column("number", Integer, primary_key=True))


def version_of(connection: Connection) -> int:
    """Return the version of a database's tables; 0 where it is empty."""
    if not inspect(connection).has_table(_version.name):
        return 0
    return connection.execute(select(_version.c.number)).scalar() or 0


def make_tables(connection: Connection) -> None:
    """Make the tables of an empty database.

    Args:
        connection: Connection in a transaction that excludes other writers.

    Raises:
        InputError: Another version of ragwitness made the database.
    """
    if version := version_of(connection):
        if version == VERSION:
            return
        raise InputError(
            f"The database has schema version {version}; this ragwitness knows {VERSION} alone.",
            "Use the version of ragwitness that made it, or create its tenants in a new database.",
        )
    META.create_all(connection)
    connection.execute(_version.insert().values(number=VERSION))
