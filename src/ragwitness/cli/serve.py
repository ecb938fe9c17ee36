"""``ragwitness service serve``: the multi-tenant service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.cli.options import Database
from ragwitness.errands.options import Template
from ragwitness.kit.options import Opt, PathRole


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
    """Serve chat and retrieval with noise.

    Each query is metered for its account. Make tenants and keys with ragwitness service
    tenants.

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
    from ragwitness.service.rates import KeyRates
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
