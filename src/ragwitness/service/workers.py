"""Several processes behind one listener; the first watches over the others.

Each worker holds the end of a pipe that closes when the first process is gone, however it went:
no worker outlives it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ragwitness.errors import RagwitnessError
from ragwitness.service.logs import write_to_stderr
from ragwitness.service.settings import ServiceSettings

__all__ = ["run_workers", "work"]

_SETTINGS = "RAGWITNESS_SERVICE_SETTINGS"
_READY = b"ready\n"
_SHORT_LIFE = 10.0  # seconds; who ends sooner would end again
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    began: float


def run_workers(
    settings: ServiceSettings, listener: socket.socket, count: int, ready: Callable[[], None]
) -> None:
    """Serve with ``count`` processes until SIGINT or SIGTERM; one that dies is replaced.

    Args:
        settings: Of each.
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
        workers += [_start(settings, listener) for _ in range(count)]
        for worker in workers:
            _await(worker.process)
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
    """Serve as one of several processes; the entry of ``python -m ragwitness.service.worker``."""
    from ragwitness.service.server import make_app
    from ragwitness.serving import serve_app

    threading.Thread(target=_until_alone, daemon=True).start()
    try:
        app = make_app(ServiceSettings.from_json(os.environ[_SETTINGS]))
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
        [sys.executable, "-m", "ragwitness.service.worker", str(listener.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env={**os.environ, _SETTINGS: settings.to_json()},
    )
    return _Worker(process, time.monotonic())


def _await(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is None or process.stdout.readline() != _READY:
        raise RagwitnessError(
            f"A worker ended while it started (exit code {process.wait()}).",
            "Its reason stands above; try --workers 1.",
        )


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
