"""The kinds of runs that a pack may hold."""

from __future__ import annotations

from ragwitness.errors import VerificationError
from ragwitness.evidence.case import PackErrand
from ragwitness.kit.registry import Listing, Registry

_ERRANDS = Registry(
    "kind of run",
    {
        "audit": Listing("ragwitness.evidence.audit:ERRAND"),
        "leak": Listing("ragwitness.evidence.leak:ERRAND"),
        "canary": Listing("ragwitness.evidence.canary:ERRAND"),
    },
)


def errand_named(name: str) -> PackErrand:
    """Return what a kind of run brings to its packs.

    Raises:
        VerificationError: ``pack.errand``; it is not known here.
    """
    if name not in _ERRANDS:
        raise VerificationError("pack.errand", f"{name!r} is no kind of run that is known here.")
    errand: PackErrand = _ERRANDS.load(name)
    return errand
