"""The log of a PostgreSQL that runs, as `collusion estimate` reads it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from ragwitness.collusion.log_files import read_log
from tests.support.postgres import find_postgres, postgres

pytestmark = pytest.mark.slow


def test_vectors_in_statements_and_parameters_are_read_with_their_users(tmp_path: Path) -> None:
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL is not installed; see make services")
    settings = {"logging_collector": "on", "log_destination": "jsonlog", "log_statement": "all"}
    with postgres(programs) as cluster:
        with psycopg.connect(cluster.url, autocommit=True) as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("CREATE ROLE ann LOGIN")
        cluster.stop()
        cluster.start()
        with psycopg.connect(cluster.url.replace("postgres@", "ann@")) as connection:
            connection.execute("SELECT '[3, 4]'::text")
            connection.execute("SELECT %s::text", ("[6,8]",))
            connection.execute("SELECT 1")
        cluster.stop()
        log = tmp_path / "postgresql.json"
        files = sorted((cluster.folder / "data" / "log").glob("*.json"))
        log.write_bytes(b"".join(path.read_bytes() for path in files))
        cluster.start()
    rows = read_log(log)
    assert rows.names == ("ann",)
    assert rows.vectors is not None
    assert [row.tolist() for row in rows.vectors] == [pytest.approx([0.6, 0.8])] * 2
    assert rows.left_out > 0
