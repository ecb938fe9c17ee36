import asyncio
import stat
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from ragwitness.core.errors import InputError
from ragwitness.service import store as store_module
from ragwitness.service.store import SharedReads, StoreGoneError, open_store
from ragwitness.service.tables import VERSION, version_of


def test_a_new_database_has_the_tables_and_is_its_owner_s(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(str(path), create=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with store.reading() as connection:
        assert version_of(connection) == VERSION
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA secure_delete")).scalar() == 1
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
    store.close()
    open_store(f"sqlite:///{path}").close()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mysql://u:secret@h/d", "kind 'mysql'"),
        ("http://u:secret@h", "kind 'http'"),
        ("sqlite://", "kind 'sqlite'"),
        ("://x", "cannot be read"),
        ("nowhere/s.db", "There is no database nowhere/s.db"),
    ],
)
def test_unusable_urls_are_refused_without_their_secrets(given: str, shown: str) -> None:
    with pytest.raises(InputError, match=shown) as raised:
        open_store(given)
    assert "secret" not in str(raised.value)


def test_a_file_that_is_no_database_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, this is no database at all.\n" * 50)
    with pytest.raises(InputError, match="no SQLite database"):
        open_store(str(path))


def test_postgresql_that_is_not_there_is_an_error_without_the_password() -> None:
    with pytest.raises(StoreGoneError) as raised:
        open_store("postgresql://user:secret@127.0.0.1:1/none")
    assert "secret" not in str(raised.value)


def test_the_variable_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "named.db"
    monkeypatch.setenv(store_module.VARIABLE, str(path))
    open_store(create=True).close()
    assert path.exists()


@pytest.mark.parametrize("version", [6, 99])
def test_a_database_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    store = open_store(str(tmp_path / "s.db"), create=True)
    with store.writing() as connection:
        connection.execute(text("UPDATE schema_version SET number = :n"), {"n": version})
    with pytest.raises(InputError, match=f"schema version {version}; this ragwitness knows 7"):
        open_store(store.name)
    store.close()


class Rows:
    """A table that counts who read it, and lets a read take as long as it is told."""

    def __init__(self) -> None:
        self.held = {"a": 1, "b": 1, "c": 1}
        self.reads: list[set[str]] = []
        self.go = threading.Event()

    def read(self, keys: set[str]) -> dict[str, int]:
        self.reads.append(keys)
        found = {key: self.held[key] for key in keys if key in self.held}
        assert self.go.wait(10)
        return found


def test_a_shared_read_begins_after_all_who_share_it_have_asked() -> None:
    rows = Rows()
    shared = SharedReads(rows.read)

    async def ask() -> list[dict[str, int]]:
        first = asyncio.create_task(shared.of(["a"]))
        while not rows.reads:
            await asyncio.sleep(0)
        # What changes now is not in the read under way, and must be in the next.
        rows.held |= {"a": 2, "b": 2}
        del rows.held["c"]
        later = [asyncio.create_task(shared.of(keys)) for keys in (["a"], ["b"], ["b", "c"])]
        hangs_up = asyncio.create_task(shared.of(["c"]))
        await asyncio.sleep(0)
        hangs_up.cancel()
        rows.go.set()
        return await asyncio.gather(first, *later)

    assert asyncio.run(ask()) == [{"a": 1}, {"a": 2}, {"b": 2}, {"b": 2}]
    assert rows.reads == [{"a"}, {"a", "b", "c"}]


def test_a_read_that_fails_fails_for_all_who_share_it_and_not_for_those_after() -> None:
    failing = [True]

    def read(keys: set[str]) -> dict[str, int]:
        if failing.pop():
            failing.append(False)
            raise StoreGoneError("gone")
        return dict.fromkeys(keys, 1)

    async def ask() -> None:
        shared = SharedReads(read)
        both = await asyncio.gather(shared.of(["a"]), shared.of(["b"]), return_exceptions=True)
        assert [type(one) for one in both] == [StoreGoneError, StoreGoneError]
        assert await shared.of(["a"]) == {"a": 1}

    asyncio.run(ask())
