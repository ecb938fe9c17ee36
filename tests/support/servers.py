"""Servers of other projects, each started as a process of its own on a free loopback port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx2

_PATIENCE = 600.0  # seconds until a server must answer; the cores may be busy


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def served(
    command: Sequence[str], health: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the block ends.

    Args:
        command: Program and arguments.
        health: URL that answers with status 200 once it is up.
        log: Where everything it prints goes.
        environment: Added to this process's.

    Raises:
        AssertionError: It ended, or did not answer in time; with the end of its log.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(command),
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "HF_HUB_OFFLINE": "1",
                **(environment or {}),
            },
        )
        try:
            _wait(process, health, log)
            yield
        finally:
            _stop(process)


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(health, timeout=5).status_code == 200:
                return
        time.sleep(0.3)
    raise AssertionError(f"{health} does not answer:\n{log.read_text(errors='replace')[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
