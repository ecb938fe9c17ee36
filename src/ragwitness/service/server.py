"""Runs the service: one process, or several that share a listener and the database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.server import is_loopback, listen, origin, serve_app
from ragwitness.models.model_registry import load_embedder
from ragwitness.service.lines import say, write_to_stderr
from ragwitness.service.principals import KeyRates
from ragwitness.service.store import open_store
from ragwitness.service.tenants import list_tenants
from ragwitness.service.window import Logs

# Settings of a server, handed to its worker processes through the environment.


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What every worker of a server needs to know.

    Attributes:
        database: URL or file; see :func:`~ragwitness.service.store.open_store`.
        generator: ``reader``, ``hf:NAME_OR_FOLDER`` or ``URL#MODEL``.
        template: Prompt template by name, or its file.
        attest: Folders of the audit windows in whose logs answers stand.
        key: File with the log's private key.
        rate: Requests per second of one key in one worker; 0: any.
    """

    database: str
    generator: str = "reader"
    template: str = "plain"
    attest: Sequence[str] = ()
    key: str = ""
    rate: float = 0.0


# Several processes behind one listener; the first watches over the others.
#
# Each worker holds the end of a pipe that closes when the first process is gone, however it went:
# no worker outlives it.

_SETTINGS = "RAGWITNESS_SERVICE_SETTINGS"
_READY = b"ready\n"
_SHORT_LIFE = 10.0  # seconds; who ends sooner would end again
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    began: float


def run_workers(
    settings: ServiceSettings,
    listener: socket.socket,
    count: int,
    ready: Callable[[], None],
) -> None:
    """Serve with ``count`` processes until SIGINT or SIGTERM; one that dies is replaced.

    Args:
        settings: Settings of each.
        listener: Shared by all.
        count: Processes.
        ready: Called once all of them answer.

    Raises:
        RagwitnessError: A worker ended soon after its start.
    """
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    workers: list[_Worker] = []
    try:
        # All start before one is waited for; the address is told once every one of them answers.
        workers += [_start(settings, listener) for _ in range(count)]
        for process in (worker.process for worker in workers):
            if process.stdout is None or process.stdout.readline() != _READY:
                raise RagwitnessError(
                    f"A worker ended while it started (exit code {process.wait()}).",
                    "Its reason stands above; try --workers 1.",
                )
        ready()
        while not stop.wait(0.3):
            for i, worker in enumerate(workers):
                if worker.process.poll() is not None:
                    workers[i] = _replace(worker, settings, listener)
    finally:
        _end(workers)
        for number, handler in before.items():
            signal.signal(number, handler)
        listener.close()


def work() -> None:
    """Serve as one of several processes; the entry of ``python -m ragwitness.service.server``."""
    threading.Thread(target=_until_alone, daemon=True).start()
    try:
        app = make_app(ServiceSettings(**json.loads(os.environ[_SETTINGS])))
    except RagwitnessError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)

    def ready() -> None:
        sys.stdout.buffer.write(_READY)
        sys.stdout.flush()

    write_to_stderr()
    serve_app(app, socket.socket(fileno=int(sys.argv[1])), ready)


def _until_alone() -> None:
    os.read(0, 1)  # nothing is ever written: it returns when the first process is gone
    os.kill(os.getpid(), signal.SIGTERM)


def _start(settings: ServiceSettings, listener: socket.socket) -> _Worker:
    process = subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-m", "ragwitness.service.server", str(listener.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env={**os.environ, _SETTINGS: json.dumps(asdict(settings))},
    )
    return _Worker(process, time.monotonic())


def _replace(worker: _Worker, settings: ServiceSettings, listener: socket.socket) -> _Worker:
    code = worker.process.returncode
    if time.monotonic() - worker.began < _SHORT_LIFE:
        raise RagwitnessError(f"A worker ended right after its start (exit code {code}).")
    _close(worker)
    return _start(settings, listener)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _PATIENCE
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        _close(worker)


def _close(worker: _Worker) -> None:
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            pipe.close()


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
    # What is unusable is refused here, once, before a worker starts.
    with closing(open_store(settings.database)) as store:  # brings its tables up to date, once
        name = store.name
        Logs(store, settings.attest, settings.key).close()  # refused here and not by each worker
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
    from ragwitness.service.answers import make_generator
    from ragwitness.service.app import create_app
    from ragwitness.service.retrieval import Retriever

    store = open_store(settings.database)
    generator = make_generator(settings.generator, settings.template)
    # What the tenants there are embed with is loaded now, so that no query has to wait for it.
    for spec in sorted({row.embedder for row in list_tenants(store) if row.mechanism == "noise"}):
        try:
            load_embedder(spec)
        except RagwitnessError as error:  # its tenants' queries fail; the others' do not
            say("embedder", {"name": spec, "failed": type(error).__name__})
    logs = Logs(store, settings.attest, settings.key)
    retriever = Retriever(store, logs=logs)
    rates = KeyRates(settings.rate) if settings.rate else None
    return create_app(store, generator, retriever=retriever, rates=rates)


if __name__ == "__main__":
    work()
