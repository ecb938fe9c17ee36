"""``ragwitness service``: the multi-tenant service, and copies of its database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.options import AsJson, Database
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.runner.task_options import Template


def serve(
    database: Database = None,
    port: int = 8000,
    host: str = "127.0.0.1",
    workers: int = 1,
    generator: Annotated[str, PathRole.ADDRESS] = "reader",
    template: Template = "plain",
    attest: Annotated[list[Path] | None, PathRole.KEEPS, Opt(metavar="WINDOW")] = None,
    key: Annotated[Path | None, PathRole.READS, Opt(shown=False)] = None,
    rate: Annotated[float | None, Opt(shown="any")] = None,
) -> None:
    """Serve chat and private retrieval.

    Make tenants and keys with ragwitness service tenants.

    Args:
        port: The port; 0 takes a free one and prints it.
        host: The address to listen on.
        workers: The number of processes that share the port and the database.
        generator: The model that answers: reader, gguf:FILE, hf:NAME or URL#MODEL (an endpoint).
        attest: A window of ragwitness attest commit --database. The answers of its tenant stand in
            its log and carry receipts. May be repeated.
        key: The log's private key, with --attest.
        rate: The most requests per second of one key in each worker.
    """
    import os

    from ragwitness.cli.common import one_thread_per_answer
    from ragwitness.service.principals import KeyRates
    from ragwitness.service.server import ServiceSettings
    from ragwitness.service.server import serve as serve_tenants
    from ragwitness.service.store import DEFAULT_DATABASE, VARIABLE

    if rate is not None:
        KeyRates(rate)  # refused here
    # Answers are made side by side; each gets one thread of the linear algebra.
    one_thread_per_answer()
    where = database or os.environ.get(VARIABLE) or DEFAULT_DATABASE
    # Plain strings: workers are other processes and read the settings anew.
    settings = ServiceSettings(
        where,
        generator,
        template,
        attest=tuple(str(folder) for folder in attest or ()),
        key="" if key is None else str(key),
        rate=0.0 if rate is None else rate,
    )
    serve_tenants(settings, host, port, workers)


def backup(
    copy: Annotated[Path, PathRole.WRITES, Arg()],
    database: Database = None,
) -> None:
    """Write a copy of the database while servers go on.

    After restoring one, say ragwitness service restored before serving: a copy does not know what
    was spent after it was made. Keep the file DATABASE.key beside it.

    Args:
        copy: The new file; it is not written over.
    """
    from contextlib import closing

    from ragwitness.service.store import open_store

    with closing(open_store(database)) as store:
        store.backup(copy)
    typer.echo(f"Written: {copy}, without the key of sketches that lies beside the database.")


def restored(database: Database = None, as_json: AsJson = False) -> None:
    """Say that the database is a restored copy, before it is served.

    Every window that was open, or may have been since the copy was made, counts as spent in full,
    and the one under way answers nothing. Documents that were placed after the copy was made are
    placed a second time when they are added again: that doubles their epsilon.
    """
    import json
    from contextlib import closing

    from ragwitness.service.store import open_store
    from ragwitness.service.tenants import count_as_spent

    with closing(open_store(database)) as store:
        counted = count_as_spent(store)
    if as_json:
        typer.echo(json.dumps(counted, indent=2))
        return
    placed = "placed without windows; what was placed since counts as new"
    for name, windows in counted.items():
        typer.echo(f"{name}: {f'{windows} windows count as spent in full' if windows else placed}")
