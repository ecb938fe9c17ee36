"""``ragwitness serve``: the multi-tenant service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATABASE", "serve"]

DATABASE = (
    "File (SQLite) or postgresql://USER@HOST/NAME; without it $RAGWITNESS_DATABASE, then"
    " ragwitness-service.db."
)
"""Help of every ``--database``."""


def serve(
    database: Annotated[str | None, typer.Option(help=DATABASE, show_default=False)] = None,
    port: Annotated[int, typer.Option(help="0 takes a free one and prints it.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(help="Processes that share port and database.")] = 1,
    generator: Annotated[
        str, typer.Option(help="reader, hf:NAME or URL#MODEL (OpenAI-compatible).")
    ] = "reader",
    template: Annotated[str, typer.Option(help="plain, defended, … or FILE.toml.")] = "plain",
    attest: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="WINDOW",
            help="Window of ragwitness commit --database: its tenant's answers stand in its log"
            " and carry receipts. May be repeated.",
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The log's private key.", show_default=False)
    ] = None,
) -> None:
    """Serve chat and retrieval with noise; each query is metered.

    Make tenants and keys with ragwitness tenants.
    """
    import os

    from ragwitness.cli.common import one_thread_per_answer
    from ragwitness.service import ServiceSettings
    from ragwitness.service import serve as serve_tenants
    from ragwitness.service.store import DEFAULT_DATABASE, VARIABLE

    one_thread_per_answer()
    where = database or os.environ.get(VARIABLE) or DEFAULT_DATABASE
    settings = ServiceSettings(
        where,
        generator,
        template,
        attest=tuple(str(folder) for folder in attest or ()),
        key="" if key is None else str(key),
    )
    serve_tenants(settings, host, port, workers)
