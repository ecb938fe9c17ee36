"""llama.cpp's server in a separate process.

A bent GGUF file may end the process that reads it, or ask for all memory there is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragwitness.core.errors import ModelError, import_extra
from ragwitness.core.quotes import quote
from ragwitness.text.worker import sources

_LIBRARY = ("xllamacpp", "A GGUF file", "chat")
_MEMORY = 16 * 1024**3
"""Bytes of the process, besides three times those of the file."""


def start_server(path: Path, context: int, threads: int, key: str, owner: object) -> str:
    """Start a server for a model; it ends with its owner, and with this process.

    Args:
        path: The GGUF file.
        context: Most tokens that it reads, prompt and answer together.
        threads: Number of threads.
        key: Secret that each request must name.
        owner: The server is stopped when this object is no longer in use.

    Returns:
        The URL at which it listens.

    Raises:
        MissingExtraError: The extra ``chat`` is not installed.
        ModelError: llama.cpp cannot load the file.
    """
    import_extra(*_LIBRARY)
    request = {"path": str(path.resolve()), "context": context, "threads": threads, "key": key}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ragwitness.models.llama_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sources())},
        )
        weakref.finalize(owner, _stop, process)
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        with suppress(OSError):
            print(json.dumps(request), file=process.stdin, flush=True)
        if address := process.stdout.readline().strip():
            return address
        _stop(process)
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").split("\n")
    errors = (line.partition(" E ")[2] for line in lines)
    reason = next(filter(None, errors), "it ended llama.cpp, or asked for too much memory")
    raise ModelError(
        f"llama.cpp cannot load {path}: {quote(reason)}.",
        "The file is cut short or damaged (compare its sha256 with the publisher's), or too new:"
        " pip install --upgrade xllamacpp.",
    )


def _stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _serve() -> None:
    """Load the model that a line of standard input names, and serve until the input ends."""
    request = json.loads(sys.stdin.readline())
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        most = _MEMORY + 3 * os.path.getsize(request["path"])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # The library may print: its words are no address.
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    library = import_extra(*_LIBRARY)
    with suppress(RuntimeError):
        server = library.Server(_parameters(library, **request))
        print(server.listening_address, file=reply, flush=True)
        sys.stdin.read()
    os._exit(0)


def _parameters(library: Any, path: str, context: int, threads: int, key: str) -> Any:
    parameters = library.CommonParams()
    parameters.model.path, parameters.model_alias = path, {Path(path).stem}
    parameters.n_ctx, parameters.n_parallel, parameters.fit_params = context, 1, False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # No answer may depend on what was asked before.
    parameters.cache_prompt, parameters.cache_ram_mib, parameters.warmup = False, 0, False
    # The whole distribution, as everywhere here: a temperature is the only change to it.
    parameters.sampling.top_k, parameters.sampling.top_p, parameters.sampling.min_p = 0, 1.0, 0.0
    parameters.api_keys, parameters.ui, parameters.endpoint_slots = [key], False, False
    parameters.verbosity = 1  # errors alone
    return parameters


if __name__ == "__main__":
    _serve()
