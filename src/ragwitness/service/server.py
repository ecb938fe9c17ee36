"""Runs the service in this process until it is stopped."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any

from prometheus_client import start_http_server

from ragwitness.core.errors import RagwitnessError
from ragwitness.core.server import is_loopback, listen, origin, serve_app
from ragwitness.models.model_registry import load_embedder
from ragwitness.service.app import create_app
from ragwitness.service.middleware import place_of
from ragwitness.service.store import Store, open_store
from ragwitness.service.tenants import list_tenants

_log = logging.getLogger(__name__)
_print = partial(print, flush=True)  # a reader of a pipe waits for the address


def serve(
    database: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    metrics: int | None = None,
    *,
    announce: Callable[[str], None] = _print,
) -> None:
    """Serve until Ctrl-C or SIGTERM, then return.

    Args:
        database: URL or file; see :func:`~ragwitness.service.store.open_store`.
        host: Address to listen on.
        port: Port; 0 takes a free one.
        metrics: Port of 127.0.0.1 for ``/metrics``: it shows the traffic of all tenants.
        announce: Called with each line for the user.

    Raises:
        InputError: A setting is unusable.
        StoreGoneError: The database does not answer.
    """
    with closing(open_store(database)) as store:
        # Everything that can be refused is refused before the address is announced.
        _load_embedders(store)
        app = create_app(store)
        if metrics is not None:
            listen("127.0.0.1", metrics).close()  # a port that is taken is refused in our words
            start_http_server(metrics, "127.0.0.1")
        listener = listen(host, port)
        listener.listen(1024)  # a burst waits in line instead of being turned away

        def ready() -> None:
            announce(f"Listening on {origin(host, listener)}/v1 ({store.name})")
            if not is_loopback(host):
                announce("Keys and answers travel in the clear: put a proxy with TLS before it.")

        write_to_stderr()
        serve_app(app, listener, ready)
    announce("Stopped.")


def _load_embedders(store: Store) -> None:
    """Load the embedders of tenants now, so that no query has to wait for them."""
    claims = [row.claim for row in list_tenants(store)]
    specs = {claim.embedder for claim in claims if claim.mechanism == "noise"}
    for spec in sorted(specs - {"none"}):
        try:
            load_embedder(spec)
        except RagwitnessError as error:  # queries of its tenants fail; all others are answered
            _log.warning("embedder", extra={"fields": {"name": spec, "cause": place_of(error)}})


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, with the event and its fields.

    Arguments of other libraries' messages are left out. Of an exception only type and place are
    written, because its message may quote a query.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        # Time, level and event first; the fields of the service follow.
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = place_of(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True, default=str)


def write_to_stderr() -> None:
    """Send the log of this process, uvicorn's included, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ragwitness.service").setLevel(logging.INFO)
