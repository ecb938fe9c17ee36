"""Runs the lab server until it is told to stop."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from functools import partial

import uvicorn

from ragwitness.errors import InputError
from ragwitness.rag.lab import KEY_VARIABLE, create_app
from ragwitness.rag.pipeline import RagSystem

__all__ = ["serve"]

_say = partial(print, flush=True)  # whoever reads a pipe waits for the address


class _Server(uvicorn.Server):
    """Says its address once it answers there."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def serve(
    system: RagSystem,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    announce: Callable[[str], None] = _say,
) -> None:
    """Serve a system until Ctrl-C, then return.

    Args:
        system: What is served.
        host: Address to listen on; anything but the loopback is reachable by others.
        port: Port; 0 takes a free one.
        announce: Called with each line for the user: the base URL once it listens, and at the
            end how many prompts lost passages. By default they are printed at once, to a pipe
            too.

    Raises:
        InputError: The address cannot be listened on.
    """
    listener = _listen(host, port)
    url = f"http://{_shown(host)}:{listener.getsockname()[1]}/v1"

    def ready() -> None:
        announce(f"Listening on {url}")
        if not _is_loopback(host) and not os.environ.get(KEY_VARIABLE):
            announce(f"Anyone who reaches this address can ask; set {KEY_VARIABLE} to a key.")

    config = uvicorn.Config(
        create_app(system),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=3,
    )
    try:
        _Server(config, ready).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # raised again once the server has shut down in order
    finally:
        listener.close()
    counts = system.fit_counts
    if counts.shortened:
        announce(
            f"{counts.shortened} of {counts.prompts} prompts lost passages: the generator reads "
            f"at most {system.generator.context_length} tokens."
        )
    announce("Stopped.")


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:  # some resolvers would wrap it around
        raise _cannot_listen(host, port, ValueError("a port is a number from 0 to 65535"))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        f"Cannot listen on {host}:{port}: {reason}.",
        "Take another port, or 0 for a free one.",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
