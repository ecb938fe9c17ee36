"""Serves the pages until Ctrl-C."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ragwitness.serving import is_loopback, listen, origin, serve_app
from ragwitness.web.app import create_app
from ragwitness.web.security import Access

__all__ = ["serve"]

_say = partial(print, flush=True)  # whoever reads a pipe waits for the address


def serve(
    runs: Sequence[Path],
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    announce: Callable[[str], None] = _say,
) -> None:
    """Serve pages over run folders until Ctrl-C, then return.

    Args:
        runs: Run folders, or folders of runs.
        host: Address to listen on; anything but the loopback needs the token that is announced.
        port: Port; 0 takes a free one.
        announce: Called with each line for the user.

    Raises:
        InputError: The address cannot be listened on.
    """
    listener = listen(host, port)
    url = f"{origin(host, listener)}/"
    access = Access()
    if not is_loopback(host):
        number = listener.getsockname()[1]
        access = Access(secrets.token_urlsafe(32), f"ragwitness-{number}")
        url += f"?token={access.token}"

    def ready() -> None:
        announce(f"Listening on {url}")
        if access.token is not None:
            announce("Whoever has this address can read the runs, and so can who listens in: the")
            announce("connection is not encrypted. A tunnel to the loopback is safer.")

    serve_app(create_app(runs, access), listener, ready)
    announce("Stopped.")
