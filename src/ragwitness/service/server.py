"""Runs the service: one process, or several that share a listener and the database."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.service.attested import Logs
from ragwitness.service.embedding import tenant_embedder
from ragwitness.service.logs import say, write_to_stderr
from ragwitness.service.overview import list_tenants
from ragwitness.service.settings import ServiceSettings
from ragwitness.service.store import Store, open_store
from ragwitness.service.workers import run_workers
from ragwitness.serving import is_loopback, listen, origin, serve_app

__all__ = ["MOST_WORKERS", "make_app", "serve"]

MOST_WORKERS = 12
"""Each holds up to six connections; PostgreSQL admits a hundred unless told otherwise."""

_say = partial(print, flush=True)  # whoever reads a pipe waits for the address


def serve(
    settings: ServiceSettings,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    *,
    announce: Callable[[str], None] = _say,
) -> None:
    """Serve until Ctrl-C or SIGTERM, then return.

    Args:
        settings: Database and generator.
        host: Address to listen on.
        port: Port; 0 takes a free one.
        workers: Processes.
        announce: Called with each line for the user.

    Raises:
        InputError: A setting is unusable.
        ModelError: The generator cannot be loaded.
        StoreGoneError: The database does not answer.
    """
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"The service runs in 1 to {MOST_WORKERS} processes, not {workers}.")
    store = open_store(settings.database)  # brings its tables up to date, once
    name = store.name
    try:
        Logs(store, settings.attest, settings.key).close()  # refused here and not by each worker
    finally:
        store.close()
    app = make_app(settings) if workers == 1 else None
    listener = listen(host, port)
    listener.listen(1024)  # a burst waits in line instead of being turned away

    def ready() -> None:
        announce(f"Listening on {origin(host, listener)}/v1 ({name}; workers: {workers})")
        if not is_loopback(host):
            announce("Keys and answers travel in the clear: put a proxy with TLS before it.")

    if app is None:
        run_workers(settings, listener, workers, ready)
    else:
        write_to_stderr()
        serve_app(app, listener, ready)
    announce("Stopped.")


def make_app(settings: ServiceSettings) -> Any:
    """Return the application of one process.

    Raises:
        InputError: A setting is unusable.
        ModelError: The generator cannot be loaded.
        StoreGoneError: The database does not answer.
    """
    from ragwitness.service.answering import make_generator
    from ragwitness.service.app import create_app
    from ragwitness.service.retrieving import Retriever

    store = open_store(settings.database)
    generator = make_generator(settings.generator, settings.template)
    _load_embedders(store)
    logs = Logs(store, settings.attest, settings.key)
    return create_app(store, generator, retriever=Retriever(store, plain=settings.plain, logs=logs))


def _load_embedders(store: Store) -> None:
    """Load what the tenants there are embed with, so that no query has to wait for it."""
    for spec in sorted({row.embedder for row in list_tenants(store)}):
        try:
            tenant_embedder(spec)
        except RagwitnessError as error:  # its tenants' queries fail; the others' do not
            say("embedder", {"name": spec, "failed": type(error).__name__})
