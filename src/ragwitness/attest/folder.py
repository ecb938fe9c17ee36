"""Where a window's files lie, and who may write them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.files import only_writer


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
    def coins(self) -> Path:
        """Commitments to the noise of every answer that the window may give."""
        return self.secret / "coins.bin"

    @property
    def seed(self) -> Path:
        """The window's seed, 32 bytes."""
        return self.secret / "seed"


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Keep other processes, and other threads of this one, out while the log changes.

    Raises:
        InputError: The folder is no window's, or cannot be written.
    """
    with ExitStack() as held:
        try:
            held.enter_context(only_writer(folder.secret / "lock"))
        except OSError as error:
            raise InputError(
                f"{folder.root} is no window that can be written: {error.strerror}.",
                "Give a folder that ragwitness attest commit made.",
            ) from error
        yield


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
