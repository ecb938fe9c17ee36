"""``ragwitness service serve``: the multi-tenant service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.options import Database, Template
from ragwitness.cli.paths import PathRole


def serve(
    database: Database = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one and prints it.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    workers: Annotated[
        int, typer.Option(help="The number of processes that share the port and the database.")
    ] = 1,
    generator: Annotated[
        str,
        PathRole.ADDRESS,
        typer.Option(
            help="The model that answers: reader, gguf:FILE, hf:NAME or URL#MODEL (an endpoint)."
        ),
    ] = "reader",
    template: Template = "plain",
    attest: Annotated[
        list[Path] | None,
        PathRole.KEEPS,
        typer.Option(
            metavar="WINDOW",
            help="A window of ragwitness attest commit --database. The answers of its tenant stand"
            " in its log and carry receipts. May be repeated.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        PathRole.READS,
        typer.Option(help="The log's private key, with --attest.", show_default=False),
    ] = None,
    public_logs: Annotated[
        bool,
        typer.Option(
            "--public-logs",
            help="Hand out the windows' logs to everybody, under /logs/WINDOW/ (C2SP tlog-tiles)."
            " They show the names of accounts.",
        ),
    ] = False,
    shards: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray[:N]",
            help="Scan every index in N parts, each in a process (or Ray actor) of its own, with"
            " the same answers. Each worker has shards of its own. Answers in a log are scanned"
            " whole.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="The most requests per second of one key in each worker.", show_default="any"
        ),
    ] = None,
    metrics: Annotated[
        Path | None,
        PathRole.READS,
        typer.Option(
            metavar="FILE",
            help="A file with the token that /metrics asks for; without it there are no metrics.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve chat and retrieval with noise.

    Each query is metered for its account. Make tenants and keys with ragwitness service
    tenants.
    """
    import os

    from ragwitness.cli.common import one_thread_per_answer
    from ragwitness.service.metrics import KeyRates
    from ragwitness.service.server import ServiceSettings
    from ragwitness.service.server import serve as serve_tenants
    from ragwitness.service.shards import Sharding
    from ragwitness.service.store import DEFAULT_DATABASE, VARIABLE

    if rate is not None:
        KeyRates(rate)  # refused here
    if shards is not None:
        Sharding.parse(shards)
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
        metrics="" if metrics is None else str(metrics),
        shards=shards or "",
        public=public_logs,
    )
    serve_tenants(settings, host, port, workers)
