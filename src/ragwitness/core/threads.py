"""One BLAS thread while a block of code runs, whichever thread of the process enters it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, TypeVarTuple

from anyio.to_thread import run_sync

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@cache
def _controller() -> Any:
    """The BLAS libraries of the process; looking for them takes a hundred times a limit's time."""
    import numpy as np  # noqa: F401 - the library must be loaded to be limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy's matrix products take one thread each; the former number returns at the end.

    Answers are made side by side: threads that wait for each other inside one small product cost
    more than they bring. The number is one for the whole process, so the first to enter sets it
    and the last to leave restores it.
    """
    global _inside, _limit
    with _lock:
        if not _inside:
            _free()
            _limit = _controller().limit(limits=1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _free()
                _limit.restore_original_limits()


def _free() -> None:
    """Let this thread set the number.

    Since 3.8 threadpoolctl lets only one thread do so, and silently ignores all others: the last
    that set or restored it, another caller's, which is done.
    """
    for library in _controller().lib_controllers:
        if free := getattr(library, "clear_controlling_thread", None):
            free(force=True)


# Threads for what waits: a model, a generator elsewhere, a function of a user's.


_Given = TypeVarTuple("_Given")
_Made = TypeVar("_Made")


async def in_thread(function: Callable[[*_Given], _Made], *given: *_Given) -> _Made:
    """Call a function in one of 40 threads of an event loop, and give it up when cancelled.

    asyncio's own pool has only four threads more than there are cores. Waiting calls would fill
    it, and would block the reads of the response store, which use it too.
    """
    return await run_sync(function, *given, abandon_on_cancel=True)
