"""Threads for what waits: a model, a generator elsewhere, a function of a user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio.to_thread import run_sync

_Given = TypeVarTuple("_Given")
_Made = TypeVar("_Made")


async def in_thread(function: Callable[[*_Given], _Made], *given: *_Given) -> _Made:
    """Call a function in one of 40 threads of an event loop, and give it up when cancelled.

    asyncio's own pool has four threads more than there are cores: what waits there would be asked
    less at a time than a run allows, and would hold up the store's reads, which use it too.
    """
    return await run_sync(function, *given, abandon_on_cancel=True)
