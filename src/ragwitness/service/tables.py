"""The tables of the service, and the steps that bring an older database up to date."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

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
    func,
    insert,
    inspect,
    select,
    text,
    update,
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
    Column("next_place", Integer, nullable=False, default=0),
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
    Column("place", Integer, nullable=False),  # numbers its records; never given twice
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
contents = Table(  # documents that are or were in an index: what is protected, with its account
    "contents",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),  # how often its text was given
    Column("sketch", LargeBinary, nullable=False),  # of its text, under a key kept elsewhere
    Column("account", Integer, nullable=False),  # versions and near copies have one in common
    Column("code", Integer),  # the group of words it was placed under, for life
)
placements = Table(  # of a tenant whose documents are placed under groups of words
    "placements",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True, autoincrement=False),
    Column("codes", LargeBinary, nullable=False),  # int32: the group of each slot, empty or not
)
windows = Table(
    "windows",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("seed", LargeBinary, nullable=False),  # secret: every noise of the window hangs on it
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
attested = Table(  # windows whose answers are all logged
    "attested",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("log", String(64), nullable=False),  # hash of the record that the log opens with
    Column("name", String(64), nullable=False),  # that the log is signed under; for one log only
    UniqueConstraint("tenant", "name"),
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


# The steps that bring an older database up to date. A list of steps and one row with a number are
# enough: the tables are few, and a step runs in one transaction.

_version = Table("schema_version", META, Column("number", Integer, primary_key=True))

Step: TypeAlias = Callable[[Connection], None]


def _passed(connection: Connection) -> None:
    """Do nothing: the last step makes or removes what this one made."""


def _identities(connection: Connection) -> None:
    """Give documents accounts of their own, and tenants budgets of their own."""
    _add_column(connection, tenants, "used", " DEFAULT '0' NOT NULL")
    for name in ("granted", "final"):
        _add_column(connection, windows, name)
    if inspect(connection).has_table("lives"):
        _part_lives(connection)
    if "part" not in _columns(connection, documents):
        # A part of a document becomes a document, under its name with #: its tenant has noise,
        # which covers one slot.
        connection.execute(text("DROP TABLE IF EXISTS contents"))
        connection.execute(text("ALTER TABLE documents RENAME TO documents_before"))
        META.create_all(connection)
        connection.execute(
            text(
                "INSERT INTO documents (tenant, slot, name, part, text, vector)"
                " SELECT tenant, slot, name, 0, text, vector FROM documents_before"
            )
        )
        connection.execute(text("DROP TABLE documents_before"))
        # Only noise existed then: documents had no accounts.
        pairs = connection.execute(select(documents.c.tenant, documents.c.name)).all()
        for number, (tenant, name) in enumerate(sorted(map(tuple, pairs))):
            account = {"version": 1, "sketch": b"", "account": number}
            connection.execute(insert(contents).values(tenant=tenant, name=name, **account))
    META.create_all(connection)


def _part_lives(connection: Connection) -> None:
    """Count against each tenant the possible spending of the others of a common budget."""
    rows = connection.execute(text("SELECT id, life, policy FROM tenants ORDER BY id")).all()
    erased = {row.id: row.used for row in connection.execute(text("SELECT * FROM lives"))}
    count = select(windows.c.tenant, func.count()).group_by(windows.c.tenant)
    begun: dict[int, int] = {row[0]: row[1] for row in connection.execute(count)}
    # Each window counts as spent in full.
    full = {row.id: begun.get(row.id, 0) * json.loads(row.policy)["budget"] ** 2 for row in rows}
    for row in rows:
        others = (full[other.id] for other in rows if other.life == row.life and other.id != row.id)
        policy, used = json.loads(row.policy), erased.get(row.life, 0.0) + sum(others)
        if policy["claim"].pop("meter", "index") == "documents":
            # Budgets of single texts no longer exist: the window under way answers no more.
            used = full[row.id]
            of_tenant = windows.c.tenant == row.id
            connection.execute(update(windows).where(of_tenant).values(CLOSED))
            connection.execute(charges.delete().where(charges.c.tenant == row.id))
        values = {"used": used, "policy": json.dumps(policy, sort_keys=True)}
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(**values))
    connection.execute(text("ALTER TABLE tenants DROP COLUMN life"))
    connection.execute(text("DROP TABLE lives"))


def _columns(connection: Connection, table: Table) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(table.name)}


def _add_column(connection: Connection, table: Table, name: str, more: str = "") -> None:
    """Add a column, unless the database was made with the tables as they are now."""
    if name not in _columns(connection, table):
        kind = table.c[name].type.compile(connection.dialect)
        connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}{more}"))


STEPS: tuple[Step, ...] = (
    META.create_all,
    partial(attested.create, checkfirst=True),
    *3 * (_passed,),
    _identities,
)
"""Step n brings a database from version n to n + 1; a step that was released is never edited."""


def version_of(connection: Connection) -> int:
    """Return how many steps a database has seen; 0 where it is empty."""
    if not inspect(connection).has_table(_version.name):
        return 0
    return connection.execute(select(_version.c.number)).scalar() or 0


def migrate(connection: Connection, steps: Sequence[Step] = STEPS) -> int:
    """Run the steps that a database has not seen; all or none.

    Args:
        connection: Connection in a transaction that excludes other writers.
        steps: All there are, in order.

    Returns:
        The version it came from.

    Raises:
        InputError: A newer ragwitness wrote the database.
    """
    # A version that we do not know may hold meters that we would not count.
    version = version_of(connection)
    if version > len(steps):
        raise InputError(
            f"The database has schema version {version}; this ragwitness knows {len(steps)}.",
            "Update ragwitness.",
        )
    if version == len(steps):
        return version
    for step in steps[version:]:
        step(connection)
    # The version changes in the same transaction as the tables: a crash leaves both or neither.
    _version.create(connection, checkfirst=True)
    connection.execute(_version.delete())
    connection.execute(_version.insert().values(number=len(steps)))
    return version
