"""Where a window's files lie, and who may write them."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError

__all__ = ["Folder", "locked", "read_bytes", "read_rows", "write_whole"]


@dataclass(frozen=True, slots=True)
class Folder:
    """A window's folder.

    Attributes:
        root: ``public/`` and ``secret/`` lie in it.
    """

    root: Path

    @property
    def public(self) -> Path:
        """What everybody may read; a static server can hand it out."""
        return self.root / "public"

    @property
    def secret(self) -> Path:
        """What nobody but the provider may read."""
        return self.root / "secret"

    def tenant(self, place: int) -> Path:
        """Return the public folder of one tenant's index, by its place in the open record."""
        return self.public / "tenants" / str(place)

    def columns(self, place: int) -> Path:
        """Return the file of the rows and blinds behind a tenant's commitments."""
        return self.secret / "tenants" / str(place) / "columns.npz"

    def documents(self, place: int) -> Path:
        """Return the file that says which document lies in which slot."""
        return self.secret / "tenants" / str(place) / "documents.jsonl"

    @property
    def journal(self) -> Path:
        """What opens the query records."""
        return self.secret / "records.jsonl"

    @property
    def seed(self) -> Path:
        """The window's seed, 32 bytes."""
        return self.secret / "seed"


_THREADS = threading.Lock()


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Keep other processes, and other threads of this one, out while the log changes.

    Raises:
        InputError: The folder is no window's, or cannot be written.
    """
    with _THREADS:
        try:
            handle = os.open(folder.secret / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(
                f"{folder.root} is no window that can be written: {error.strerror}.",
                "Give a folder that ragwitness commit made.",
            ) from error
        try:
            _flock(handle)
            yield
        finally:
            os.close(handle)  # and with it the lock, as when the process is killed


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        InputError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error


def read_bytes(path: Path, most: int, hint: str = "") -> bytes:
    """Return a file's bytes, at most ``most``; ``hint`` says what to do where there are none.

    Raises:
        InputError: The file is missing, unreadable or longer.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint) from error
    if len(data) > most:
        raise InputError(f"{path} has more than {most:,} bytes, which no such file has.")
    return data


def read_rows(path: Path) -> NDArray[np.int16]:
    """Return the integer vectors of a file of secret columns, without its blinds.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as held:
            return np.asarray(held["rows"], np.int16)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} holds no committed vectors: {error}.", "Restore it from a backup."
        ) from error


def _flock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time is then up to its operator
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
