"""The kinds of runs that a pack may hold."""

from __future__ import annotations

from ragwitness.core.errors import VerificationError
from ragwitness.core.registry import Listing, Registry
from ragwitness.evidence.case import PackTask

_TASKS = Registry(
    "kind of run",
    {
        "audit": Listing("ragwitness.membership.evidence:TASK"),
        "leak": Listing("ragwitness.leakage.evidence:TASK"),
        "canary": Listing("ragwitness.canary.evidence:TASK"),
    },
)


def module_of(name: str) -> str:
    """Return the module that recomputes a kind of run."""
    return str(_TASKS[name].home).partition(":")[0]


def task_named(name: str) -> PackTask:
    """Return what a kind of run brings to its packs.

    Raises:
        VerificationError: ``pack.errand``; it is not known here.
    """
    if name not in _TASKS:
        raise VerificationError("pack.errand", f"{name!r} is no kind of run that is known here.")
    task: PackTask = _TASKS.load(name)
    return task
