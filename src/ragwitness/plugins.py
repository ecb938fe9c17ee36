"""What other packages add by entry points: found by name, loaded alone, named when broken.

The metadata of the installed packages is read only when a name is unknown or names are
listed, and listing loads nothing: a broken plug-in stands in nobody's way but its own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.quoting import quote_error

__all__ = ["load_plugin", "made_by_plugin", "plugin_names"]


def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names that installed packages registered under ``group``, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def load_plugin(group: str, name: str) -> Any | None:
    """Return what an installed package registered as ``name``, or None.

    Args:
        group: Entry-point group, e.g. ``"ragwitness.targets"``.
        name: Name of the entry point.

    Raises:
        InputError: Loading it fails, or two packages registered different things.
    """
    found = {entry.value: entry for entry in entry_points(group=group, name=name)}
    if not found:
        return None
    if len(found) > 1:
        owners = " and ".join(sorted(_owner(entry) for entry in found.values()))
        raise InputError(
            f"{name!r} is registered more than once under {group}: {owners}.",
            "Uninstall all but one of these packages.",
        )
    (entry,) = found.values()
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"The plug-in {name!r} ({group}, {_owner(entry)}) cannot be loaded: "
            f"{quote_error(error)}.",
            "Repair or uninstall the package that brings it; nothing else depends on it.",
        ) from None


def made_by_plugin(what: str, make: Callable[[], Any]) -> Any:
    """Make something of another package, which may fail in any way.

    Args:
        what: Its kind and name, for people.
        make: Makes it.

    Raises:
        InputError: It fails.
    """
    try:
        return make()
    except RagwitnessError:
        raise
    except Exception as error:
        raise InputError(f"The plug-in {what} failed: {quote_error(error)}.") from None


def _owner(entry: EntryPoint) -> str:
    """Package and object of an entry point, for people."""
    package = entry.dist.name if entry.dist is not None else "unknown package"
    return f"{entry.value} of {package}"
