"""Parses files in a separate process, under a deadline and a limit of memory.

A small file may keep a parser busy for hours or make it ask for all memory there is. One process
parses file after file; where one takes too long it is ended, and the next file gets another. It is
a program of its own and no fork, so that threads and the caller's ``__main__`` are left alone.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

from ragwitness.text.formats import Extract, UnreadableError, extract_text, is_plain

DEADLINE = 120.0
"""Seconds of one file."""
MEMORY = 3 * 1024**3
"""Bytes of the process."""

_SMALLER = "Split it, or save its text in another format, such as .txt."


_Message: TypeAlias = dict[str, Any]


class _Parser:
    """The process, started when it is first needed."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def ask(self, request: _Message) -> _Message:
        """Return the reply to a request; an empty one if the process ended without any."""
        with self._lock:
            process = self._started()
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(DEADLINE, end)
            timer.start()
            try:
                process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                line = process.stdout.readline()  # type: ignore[union-attr]
            except OSError:
                line = ""
            finally:
                timer.cancel()
            if line.endswith("\n"):
                reply: _Message = json.loads(line)
                return reply
            self.close()
            return {"late": late.is_set()}

    def _started(self) -> subprocess.Popen[str]:
        # A fork of this process has no parser: two readers of one pipe would mix their replies.
        if self._process is None or self._process.poll() is not None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and module
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="ascii",
                env=os.environ | {"PYTHONPATH": os.pathsep.join(_sources())},
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process and self._owner == os.getpid():
            process.kill()
            with suppress(OSError):
                process.communicate()


def _sources() -> list[str]:
    """Where the process finds this package: never the current folder, which may be a stranger's."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(__file__).resolve().parents[2]), *filter(None, given)]


_PARSER = _Parser([sys.executable, "-P", "-m", "ragwitness.text.worker"])
atexit.register(_PARSER.close)


def extract_apart(stream: BinaryIO, suffix: str, encoding: str | None, most: int) -> Extract | None:
    """Return the text of a file as :func:`~ragwitness.text.formats.extract_text` does.

    Raises:
        UnreadableError: As there; or it took too long, or too much memory.
    """
    if is_plain(stream, suffix):
        return extract_text(stream, suffix, encoding, most)
    with tempfile.TemporaryDirectory() as folder:
        # Standard input and bytes are copied to a file.
        path = Path(str(getattr(stream, "name", "")))
        if not path.is_file():
            path = Path(folder, "document")
            with path.open("wb") as copy:
                shutil.copyfileobj(stream, copy)
        request = {"path": str(path.resolve()), "suffix": suffix, "encoding": encoding}
        reply = _PARSER.ask(request | {"most": most})
    if "text" in reply:
        return Extract(**reply)
    if "why" in reply:
        raise UnreadableError(reply["why"], reply["hint"])
    if reply.get("late"):
        raise UnreadableError(f"takes more than {DEADLINE:g} s to be read", _SMALLER)
    gigabytes = MEMORY // 1024**3
    why = f"ended its parser: a fault, or more than {gigabytes} GiB of memory"
    raise UnreadableError(why, _SMALLER)


def _reply(request: _Message) -> _Message:
    try:
        with open(request["path"], "rb") as stream:
            extract = extract_text(
                stream, request["suffix"], request["encoding"], request["most"]
            ) or Extract("")
        return extract._asdict()
    except UnreadableError as error:
        return {"why": error.why, "hint": error.hint}
    except OSError as error:
        return {"why": f"cannot be read: {error.strerror or error}", "hint": "Check it."}


def _serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until there are no more."""
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in requests:
        # A parser that has run out of memory may be in any state: the process ends.
        replies.write(json.dumps(_reply(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    _serve(sys.stdin, sys.stdout)
