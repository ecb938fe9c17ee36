"""Indexes of an audit window out of the service's database, and the window that it takes there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import RagwitnessError

if TYPE_CHECKING:
    from ragwitness.attest.policy import Policy
    from ragwitness.service.committing import Held

__all__ = ["held_indexes", "take"]


def held_indexes(promised: Policy, database: str) -> Held:
    """Return the indexes of a policy's tenants as the database holds them now.

    Raises:
        InputError: As :func:`~ragwitness.service.committing.read_contents`.
    """
    from ragwitness.service.committing import read_contents
    from ragwitness.service.store import open_store

    store = open_store(database)
    try:
        return read_contents(store, promised)
    finally:
        store.close()


def take(
    folder: Path, promised: Policy, database: str, held: Held, number: int | None
) -> dict[str, int]:
    """Bind a window of each tenant to a log and return their numbers; refused, the folder goes.

    Raises:
        InputError: As :func:`~ragwitness.service.committing.take_windows`.
    """
    from ragwitness.attest.window import Window
    from ragwitness.service.committing import take_windows
    from ragwitness.service.store import open_store

    store = open_store(database)
    try:
        opened = Window.load(folder).ledger.opened
        return take_windows(store, promised, opened, held.editions, number)
    except RagwitnessError:
        shutil.rmtree(folder)  # just made, and nobody can be served out of it
        raise
    finally:
        store.close()
