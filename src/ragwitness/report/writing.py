"""The one way a report becomes a file."""

from __future__ import annotations

from pathlib import Path

from ragwitness.errors import InputError

__all__ = ["unwritable", "write_text"]


def write_text(path: str | Path, text: str) -> None:
    """Write a report as UTF-8.

    Half a surrogate pair, which UTF-8 cannot hold, becomes an escape that JSON reads back.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: str | Path, error: OSError) -> InputError:
    """Return what is said where a report cannot be written."""
    return InputError(
        f"The report cannot be written to {path}: {error.strerror or error}.",
        "Give a path in a folder that exists and is writable; ragwitness report RUN writes it"
        " from a finished run.",
    )
