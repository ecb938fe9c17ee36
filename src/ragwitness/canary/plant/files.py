"""Files of an audit's folder: written whole or not at all, secret ones for their owner alone."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError

__all__ = ["private_folder", "read_json", "read_rows", "write_json", "write_rows"]

_AGAIN = "ragwitness canary plan makes such a folder; restore what is lost from a copy of it."


def private_folder(path: Path) -> None:
    """Make a folder that its owner alone can enter.

    Raises:
        InputError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise _unwritable(path, error) from error


def write_json(path: Path, value: object, *, private: bool = False) -> None:
    """Write one JSON value; a private file has mode 0600.

    Raises:
        InputError: It cannot be written; then it is as it was.
    """
    _replace(path, json.dumps(value, indent=1) + "\n", 0o600 if private else 0o666)


def write_rows(path: Path, rows: Iterable[object]) -> None:
    """Write JSON lines.

    Raises:
        InputError: The file cannot be written; then it is as it was.
    """
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    _replace(path, "".join(lines), 0o666)


def read_json(path: Path, *, private: bool = False, hint: str = _AGAIN) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InputError: It is missing, no object, or ``private`` and open to others.
    """
    try:
        with path.open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read()
        value = json.loads(data)
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is missing or cannot be read.", hint) from None
    if private and os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"{path} is secret, and other users of this machine can open it.",
            f"Run: chmod 600 {path}",
        )
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no JSON object.", hint)
    return value


def read_rows(path: Path, *, hint: str = _AGAIN) -> list[dict[str, Any]]:
    """Read JSON lines.

    Raises:
        InputError: The file is missing, or a line is no object.
    """
    try:
        # Not splitlines: a text may hold separators that JSON does not escape.
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is missing or cannot be read.", hint) from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} holds a line that is no JSON object.", hint)
    return rows


def _replace(path: Path, text: str, mode: int) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"Cannot write {path}: {error.strerror}.", "Choose another folder with -o.")
