"""Files of one JSON object per line that one process appends to and nothing ever rewrites."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError, RagwitnessError

__all__ = ["Appender", "at_work", "replace_file"]


class Appender:
    """Appends lines, each with one call to the system: a killed process leaves whole lines.

    Args:
        path: File to append to; created with its folder.
        what: Its name for people.

    Raises:
        InputError: The file cannot be opened for writing, or another process writes it.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._fd = os.open(path, flags, 0o666)
        except OSError as error:
            raise InputError(
                f"Cannot write the {what} {path}: {error.strerror}.",
                "Choose another folder with --run.",
            ) from error
        self._lock()
        self._size = os.fstat(self._fd).st_size
        # A line cut short must not swallow the next.
        self._cut = False
        if self._size:
            os.lseek(self._fd, -1, os.SEEK_END)
            self._cut = os.read(self._fd, 1) != b"\n"

    def append(self, row: dict[str, Any]) -> int:
        """Append a row; return the place of its line in bytes.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        if self._cut:
            line = b"\n" + line
        place = self._size + self._cut
        try:
            written = os.write(self._fd, line)
            self._size += written
            self._cut = written < len(line)
            if self._cut:  # the rest fails with the cause, or the disk has room again
                self._size += os.write(self._fd, line[written:])
                self._cut = False
        except OSError as error:
            raise RagwitnessError(
                f"Cannot write the {self._what} {self._path}: {error.strerror}.",
                "Free some disk space; the same command resumes.",
            ) from error
        return place

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _lock(self) -> None:
        """Keep a second process out: places of lines are known to one writer only."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise InputError(
                f"Another process is at work in {self._path.parent}.",
                "Wait for it, or choose another folder with --run.",
            ) from error


def at_work(path: Path) -> bool:
    """Whether a process appends to a file now; False where that cannot be told."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        with path.open("rb") as file:
            # Shared: others who look at the same time are not taken for one who writes.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        RagwitnessError: The disk is full or fails.
    """
    # Several shards may write at once: each has a file of its own until it is whole.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise RagwitnessError(
            f"Cannot write {path}: {error.strerror}.",
            "Free some disk space, or choose another folder with --run.",
        ) from error
