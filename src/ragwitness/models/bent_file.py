"""A GGUF file is loaded in a separate process first: a bent one may end its reader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ragwitness.core.errors import ModelError
from ragwitness.core.quotes import quote

_MEMORY = 16 * 1024**3
"""Bytes of the process, besides three times those of the file."""

_PROGRAM = """
import os, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, ValueError, OSError):
    pass
import xllamacpp
parameters, sys.excepthook = xllamacpp.CommonParams(), lambda *_: None
parameters.model.path, parameters.n_ctx, parameters.verbosity = sys.argv[1], 64, 1
parameters.warmup, parameters.fit_params = False, False
server = xllamacpp.Server(parameters)
os._exit(0)
"""


def refuse_bent(path: Path) -> None:
    """Load a model where nothing else is lost by it.

    Raises:
        ModelError: llama.cpp cannot load the file, or ended, or asked for too much memory.
    """
    limit = _MEMORY + 3 * os.path.getsize(path)
    command = [sys.executable, "-P", "-c", _PROGRAM, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our program
    # A thread of llama.cpp writes its reason: Python's own words would stand between.
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        errors = filter(None, (line.partition(" E ")[2] for line in lines))
        reason = next(errors, "it ended llama.cpp, or asked for too much memory")
        raise ModelError(
            f"llama.cpp cannot load {path}: {quote(reason)}.",
            "The file is cut short or damaged (compare its sha256 with the publisher's), or too"
            " new: pip install --upgrade xllamacpp.",
        )
