"""Runs the lab server until it is told to stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from ragwitness.rag.lab import KEY_VARIABLE, create_app
from ragwitness.rag.pipeline import RagSystem
from ragwitness.serving import is_loopback, listen, origin, serve_app

__all__ = ["serve"]

_say = partial(print, flush=True)  # whoever reads a pipe waits for the address


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
    listener = listen(host, port)
    url = f"{origin(host, listener)}/v1"

    def ready() -> None:
        announce(f"Listening on {url}")
        if not is_loopback(host) and not os.environ.get(KEY_VARIABLE):
            announce(f"Anyone who reaches this address can ask; set {KEY_VARIABLE} to a key.")

    serve_app(create_app(system), listener, ready)
    counts = system.fit_counts
    if counts.shortened:
        announce(
            f"{counts.shortened} of {counts.prompts} prompts lost passages: the generator reads "
            f"at most {system.generator.context_length} tokens."
        )
    announce("Stopped.")
