"""llama.cpp's own server: ``python -m tests.support.llama_server GGUF PORT CONTEXT``."""

from __future__ import annotations

import sys
import threading

import xllamacpp


def main() -> None:
    """Serve on loopback, with one thread, until the process is ended."""
    model, port, context = sys.argv[1:]
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.hostnames, settings.port = ["127.0.0.1"], int(port)
    settings.n_ctx, settings.n_parallel = int(context), 1
    settings.cpuparams.n_threads = 1
    settings.warmup = False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
