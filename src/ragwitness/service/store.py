"""One database behind all workers: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    make_url,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from ragwitness.core.errors import InputError, MissingExtraError, RagwitnessError
from ragwitness.service.tables import META, VERSION, make_tables, spent, version_of

VARIABLE = "RAGWITNESS_DATABASE"
"""Environment variable with the database's URL, where a password does not show in a list of
processes."""

DEFAULT_DATABASE = "ragwitness-service.db"

_PATIENCE = 20  # seconds that a writer waits for others, and a reader for a connection
_CONNECTIONS = 6  # of one process; PostgreSQL admits a hundred in all
_MIGRATION_LOCK = 0x5261675769744E65  # any number that only we use


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

    def vacuum(self) -> None:
        """Write the database anew without the erased rows; old pages and logs are emptied.

        Raises:
            StoreGoneError: The database failed; what was erased is out of its tables all the same.
        """
        with _translated(), self._engine.connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            # FULL: a plain one leaves the bytes of dead rows in their pages. It locks each table,
            # without a time limit.
            bare = connection.execution_options(isolation_level="AUTOCOMMIT")
            for name in ("statement_timeout", "lock_timeout"):
                bare.execute(text(f"SET {name} = 0"))
            for table in META.sorted_tables:
                bare.execute(text(f"VACUUM (FULL) {table.name}"))
            bare.invalidate()  # the next one has its time limits again

    def check(self) -> None:
        """Ask the database for a sign of life: whether it still takes what is written.

        Raises:
            StoreGoneError: There is none, or its disk is full.
        """
        with self.writing() as connection:
            connection.execute(text("UPDATE schema_version SET number = number"))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


class SharedReads:
    """Reads rows for many requests at once; for one event loop.

    A read begins after all who share it have asked, so that each sees what was stored till then.

    Args:
        read: Returns the rows of some keys, by key; none of a key that has no row.
    """

    def __init__(self, read: Callable[[set[Any]], Mapping[Any, Any]]) -> None:
        self._read, self._one = read, asyncio.Lock()
        self._wanted: set[Any] = set()
        self._next: asyncio.Task[Mapping[Any, Any]] | None = None

    async def of(self, keys: Sequence[Any]) -> dict[Any, Any]:
        """Return the rows of some keys, and of no other.

        Raises:
            StoreGoneError: The database failed.
        """
        self._wanted.update(keys)
        if self._next is None:
            self._next = asyncio.create_task(self._run())
        # Shielded: a cancelled request does not cancel the others.
        rows = await asyncio.shield(self._next)
        return {key: rows[key] for key in keys if key in rows}

    async def _run(self) -> Mapping[Any, Any]:
        """Wait for the read under way, then read what has been asked for meanwhile."""
        async with self._one:
            keys, self._wanted, self._next = self._wanted, set(), None
            return await asyncio.to_thread(self._read, keys)


def open_store(database: str | None = None, *, create: bool = False) -> Store:
    """Open a database; one without tables gets them.

    Args:
        database: ``postgresql://USER:PASSWORD@HOST/NAME``, ``sqlite:///FILE`` or a file name; None
            reads :data:`VARIABLE`, and without it takes :data:`DEFAULT_DATABASE`.
        create: Whether an SQLite file may be made.

    Raises:
        InputError: It is no such URL, or the file is missing or of another program or version.
        MissingExtraError: The driver is not installed.
        StoreGoneError: PostgreSQL does not answer.
    """
    # An argument before the environment before the default, as everywhere.
    url = _url(database or os.environ.get(VARIABLE) or DEFAULT_DATABASE)
    if url.get_backend_name() == "sqlite":
        _check_file(url, create=create)
    # Tables are made under a lock.
    store = Store(_engine(url))
    try:
        with store.reading() as connection:
            ready = version_of(connection) == VERSION
        if not ready:
            with store.writing() as connection:
                if not store.sqlite:  # two servers may start at once
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                make_tables(connection)
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
    # Only the two databases whose transactions are known to hold are taken.
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
    # One pool a process, without overflow: more requests wait.
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
    """Translate errors, without statement and parameters."""
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

_COUNT = text(
    'INSERT INTO spent (kind, owner, "window", queries) VALUES (:k, :o, :w, :q)'
    ' ON CONFLICT (kind, owner, "window") DO UPDATE SET queries = excluded.queries'
)

Owner: TypeAlias = tuple[str, int, int]
"""Kind (``account`` or ``payer``), row and window."""


def read_counts(connection: Connection, owners: Iterable[Owner]) -> dict[Owner, int]:
    """Return the counts of some owners; one without a query is left out."""
    columns = tuple_(spent.c.kind, spent.c.owner, spent.c.window)
    rows = connection.execute(select(spent).where(columns.in_(sorted(set(owners)))))
    return {(row.kind, row.owner, row.window): row.queries for row in rows}


def write_counts(connection: Connection, counts: Mapping[Owner, int]) -> None:
    """Store the counts of some owners."""
    rows = [{"k": k, "o": o, "w": w, "q": count} for (k, o, w), count in counts.items()]
    if rows:
        connection.execute(_COUNT, rows)
