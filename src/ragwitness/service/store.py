"""One database behind all workers: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from ragwitness.errors import InputError, MissingExtraError, RagwitnessError

# The tables of the service, and the steps that bring an older database up to date.
#
# A list of steps and one row with a number do what is needed here: the tables are few, a step runs
# in one transaction, and no second description of them has to be kept true.

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
    Column("life", Integer),  # whose budget for life it shares; null: its own, by its id
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
    Column("granted", Float),  # mu that it may spend; null: its policy's budget
    Column("final", Float),  # mu that it has spent, once it is over
)
lives = Table(  # budgets for life, each locked by its row
    "lives",
    _meta,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("used", Float, nullable=False, default=0.0),  # mu squared, by tenants that were erased
    Column("unit", String(128), nullable=False, server_default="mu"),  # or answers of one noise
)
contents = Table(  # texts that were ever in an index of a life, by their hash
    "contents",
    _meta,
    Column("digest", String(64), primary_key=True),
    Column("life", Integer, primary_key=True, autoincrement=False),
    Column("used", Float),  # mu squared of the text itself; null: indexes are metered as wholes
    Column("most", Float),  # mu that it may spend, the least that a tenant promised of it
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


def _lives(connection: Connection) -> None:
    """Lives of tenants and what their indexes hold; windows of before count at their budget."""
    for table in (lives, contents):
        table.create(connection, checkfirst=True)
    for table, names in ((tenants, ("life",)), (windows, ("granted", "final"))):
        for name in names:
            _add_column(connection, table, name)
    for row in connection.execute(select(tenants.c.id)).all():
        connection.execute(update(tenants).where(tenants.c.id == row.id).values(life=row.id))
        connection.execute(insert(lives).values(id=row.id))
        held = select(documents.c.text).where(documents.c.tenant == row.id)
        digests = {content_digest(one) for one in connection.execute(held).scalars()}
        if digests:
            rows = [{"digest": one, "life": row.id} for one in sorted(digests)]
            connection.execute(insert(contents), rows)


def _text_meters(connection: Connection) -> None:
    """What texts have spent that have budgets of their own."""
    for name in ("used", "most"):
        _add_column(connection, contents, name)


def _units(connection: Connection) -> None:
    """Lives of noise that has no mu; those of before are all Gaussian."""
    _add_column(connection, lives, "unit", " NOT NULL DEFAULT 'mu'")


def _add_column(connection: Connection, table: Table, name: str, more: str = "") -> None:
    """Add a column, unless the database was made with the tables as they are now."""
    known = {column["name"] for column in inspect(connection).get_columns(table.name)}
    if name not in known:
        kind = table.c[name].type.compile(connection.dialect)
        connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}{more}"))


def content_digest(words: str) -> str:
    """Return the hash of a text up to case and spacing: what makes two documents the same."""
    return hashlib.sha256(" ".join(words.casefold().split()).encode()).hexdigest()


STEPS: tuple[Step, ...] = (
    _meta.create_all,
    partial(attested.create, checkfirst=True),
    _lives,
    _text_meters,
    _units,
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
    # The version changes in the same transaction as the tables: a crash leaves both or neither.
    _version.create(connection, checkfirst=True)
    connection.execute(_version.delete())
    connection.execute(_version.insert().values(number=len(steps)))
    return found


VARIABLE = "RAGWITNESS_DATABASE"
"""Environment variable with the database's URL, where a password does not show in a list of
processes."""

DEFAULT_DATABASE = "ragwitness-service.db"

_PATIENCE = 20  # seconds that a writer waits for others, and a reader for a connection
_CONNECTIONS = 6  # of one process; PostgreSQL admits a hundred in all
_MIGRATION_LOCK = 0x5261675769744E65  # any number that only we use
_LIVES_LOCK = _MIGRATION_LOCK + 1


class StoreGoneError(RagwitnessError):
    """The database did not answer, or not in time; what was not confirmed may be stored or not."""


class Store:
    """Transactions on one database; safe across threads.

    Args:
        engine: Engine from :func:`open_store`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.sqlite = engine.dialect.name == "sqlite"

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection in a transaction that is durable once the block has ended.

        Raises:
            StoreGoneError: The database failed; the transaction is undone, unless the answer to
                its commit was lost.
        """
        with _translated(), self._engine.connect() as connection:
            if self.sqlite:  # a reader that turns writer could meet another: ask at once
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    @contextmanager
    def reading(self, *, frozen: bool = False) -> Iterator[Connection]:
        """Yield a connection that writes nothing.

        Args:
            frozen: Whether all that is read in the block is of one moment.

        Raises:
            StoreGoneError: The database failed.
        """
        with _translated(), self._engine.connect() as connection:
            # One snapshot for all reads of the block, in the way each database knows.
            if frozen and self.sqlite:
                connection.exec_driver_sql("BEGIN")
            elif frozen:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def serialize(self, connection: Connection) -> None:
        """Let one operator at a time change which texts a life holds, until its transaction ends.

        Args:
            connection: Connection in a transaction that may write; it holds no lock of a row yet.
        """
        if not self.sqlite:  # which has one writer anyway
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LIVES_LOCK})"))

    def vacuum(self) -> None:
        """Write the database anew without what was erased; pages and log of before are emptied.

        Raises:
            StoreGoneError: The database failed; what was erased is out of its tables all the same.
        """
        with _translated(), self._engine.connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            # FULL: a plain one leaves the bytes of dead rows in their pages. It takes as long as it
            # takes, while nobody else reads the table.
            bare = connection.execution_options(isolation_level="AUTOCOMMIT")
            for name in ("statement_timeout", "lock_timeout"):
                bare.execute(text(f"SET {name} = 0"))
            for table in _meta.sorted_tables:
                bare.execute(text(f"VACUUM (FULL) {table.name}"))
            bare.invalidate()  # the next one has its time limits again

    def check(self) -> None:
        """Ask the database for a sign of life.

        Raises:
            StoreGoneError: There is none.
        """
        with self.reading() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def open_store(database: str | None = None, *, create: bool = False) -> Store:
    """Open a database and bring its tables up to date.

    Args:
        database: ``postgresql://USER:PASSWORD@HOST/NAME``, ``sqlite:///FILE`` or a file name; None
            reads :data:`VARIABLE`, and without it takes :data:`DEFAULT_DATABASE`.
        create: Whether an SQLite file may be made.

    Raises:
        InputError: It is no such URL, the file is missing or no database of ours.
        MissingExtraError: The driver is not installed.
        StoreGoneError: PostgreSQL does not answer.
    """
    # An argument before the environment before the default, as everywhere.
    url = _url(database or os.environ.get(VARIABLE) or DEFAULT_DATABASE)
    if url.get_backend_name() == "sqlite":
        _check_file(url, create=create)
    store = Store(_engine(url))
    try:
        with store.reading() as connection:
            ready = version_of(connection) == len(STEPS)
        if not ready:
            with store.writing() as connection:
                if not store.sqlite:  # two servers may start at once
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                migrate(connection)
    except BaseException:
        store.close()
        raise
    return store


def _url(given: str) -> URL:
    if "://" not in given:
        return URL.create("sqlite", database=given)
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise InputError("The database's URL cannot be read.", _FORMS) from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return url
    raise InputError(f"The service keeps no database of the kind {url.drivername!r}.", _FORMS)


def _check_file(url: URL, *, create: bool) -> None:
    path = Path(str(url.database))
    if path.exists():
        return
    if not create:
        raise InputError(
            f"There is no database {path}.",
            "Make one with: ragwitness service tenants create NAME, or name it with --database.",
        )
    try:
        # It will hold documents and the seeds of all noise: for its owner's eyes.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InputError(f"The database {path} cannot be made: {error.strerror}.") from None


def _engine(url: URL) -> Engine:
    options: dict[str, Any] = {
        "pool_size": _CONNECTIONS,
        "max_overflow": 0,
        "pool_timeout": _PATIENCE,
        "hide_parameters": True,  # errors are logged; vectors and texts are not
    }
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": _PATIENCE, "check_same_thread": False}
    else:
        options |= {"pool_pre_ping": True, "connect_args": {"connect_timeout": 5}}
    try:
        engine = create_engine(url, **options)
    except ImportError:
        raise MissingExtraError("A PostgreSQL database", "service") from None
    prepare = _prepare_sqlite if engine.dialect.name == "sqlite" else _prepare_postgres
    event.listen(engine, "connect", prepare)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a commit has reached the disk
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA secure_delete=ON")  # vectors that are erased leave no copy in free pages
    cursor.close()


def _prepare_postgres(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")  # whatever the server's default is
        cursor.execute(f"SET lock_timeout = '{_PATIENCE}s'")
        cursor.execute(f"SET statement_timeout = '{3 * _PATIENCE}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{3 * _PATIENCE}s'")
    connection.commit()


@contextmanager
def _translated() -> Iterator[None]:
    """Say what went wrong without statement or parameters."""
    try:
        yield
    except DBAPIError as error:
        if "not a database" in str(error.orig):
            raise InputError(
                "The file is no SQLite database.", "Name another with --database."
            ) from None
        # The first line alone: PostgreSQL quotes the statement and its values below it.
        reason = str(error.orig).splitlines()[0] if str(error.orig) else type(error).__name__
        raise StoreGoneError(f"The database failed: {reason.rstrip('.')}.", _CHECK) from error
    except SQLAlchemyError as error:
        raise StoreGoneError(f"The database failed: {type(error).__name__}.", _CHECK) from error


_CHECK = "Check that it runs and is reachable; meters count what was confirmed, never less."
_FORMS = "Use a file name, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."


# Queries of accounts and payers in a window, as the database holds them.

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
