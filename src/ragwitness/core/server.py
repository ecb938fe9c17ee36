"""Runs an ASGI app until it is stopped."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragwitness.core.errors import InputError

LARGEST_HEAD = 32 * 1024
"""Bytes of a request line with its headers; a longer one ends the connection."""

HEAD_PATIENCE = 10.0
"""Seconds that a request line with its headers may take, and a new connection until it has sent
one."""

REQUEST_PATIENCE = 60.0
"""Seconds that a body may take, whether anybody reads it or not."""


_BLANK = re.compile(rb"\n\r?\n")  # as h11 finds the end of a head


class _Connection(h11.Connection):
    """Counts every head; by itself h11 counts those that are incomplete, and one may come whole."""

    def next_event(self) -> Any:
        if self.their_state is h11.IDLE:
            start = self.trailing_data[0][: LARGEST_HEAD + 1]
            if len(start) > LARGEST_HEAD and not _BLANK.search(start):
                raise h11.RemoteProtocolError("The head of a request is too long.")
        return super().next_event()


class _Protocol(H11Protocol):
    """HTTP by h11, whatever other parser is installed: its limits are those above.

    A client that sends a request byte by byte is cut off, however steadily the bytes come.
    """

    _deadline: asyncio.TimerHandle | None = None
    _in_body = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _Connection(h11.SERVER, LARGEST_HEAD)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._within(HEAD_PATIENCE)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._within(HEAD_PATIENCE)
        super().data_received(data)
        # The clock of a head runs from its first byte, that of a body from the end of its head.
        body = self.conn.their_state is h11.SEND_BODY
        if body and not self._in_body:
            self._within(REQUEST_PATIENCE)
        elif not body and self.conn.their_state is not h11.IDLE:
            self._stop()
        self._in_body = body

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _within(self, seconds: float) -> None:
        self._stop()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """Says its address once it answers there."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def serve_app(app: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve an ASGI app until Ctrl-C, close the listener, then return.

    Args:
        app: The app to serve.
        listener: From :func:`listen`.
        ready: Called once it answers.
    """
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
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


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: Address to listen on; anything but the loopback is reachable by others.
        port: Port; 0 takes a free one.

    Raises:
        InputError: The address cannot be listened on.
    """
    if not 0 <= port <= 65535:  # some resolvers would wrap it around
        raise _cannot_listen(host, port, ValueError("a port is a number from 0 to 65535"))
    try:
        # The first address that a name has, whatever its family.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from None
    try:
        # A port in TIME_WAIT may be taken again, so that a server can be restarted at once.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def origin(host: str, listener: socket.socket) -> str:
    """Return ``http://host:port`` of a listener, an IPv6 address in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cannot_listen(host: str, port: int, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        f"Cannot listen on {host}:{port}: {reason}.", "Take another port, or 0 for a free one."
    )
