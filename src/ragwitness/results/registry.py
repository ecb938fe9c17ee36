"""All kinds of results by name, and the one way a stored result is opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError
from ragwitness.kit.files import read_object
from ragwitness.kit.run_files import RESULT
from ragwitness.results.kind import Kind

KINDS = {
    "audit": "membership",
    "collection": "collection",
    "scope": "scope",
    "leak": "leak",
    "synthesis": "synthesis",
    "comparison": "comparison",
    "evaluation": "evaluation",
    "canary": "canary",
    "collusion": "collusion",
    "coalition": "coalition",
    "verification": "verdict",
    "plan": "forecast",
    "doctor": "examination",
}
"""Name of each kind, and the module that holds it; imported when it is needed."""

_AGAIN = "Issue the command that made the run again: it resumes, and writes the result anew."


def kind_named(name: str) -> Kind[Any, Any]:
    """Return a kind by its name.

    Raises:
        KeyError: There is none of this name.
    """
    kind: Kind[Any, Any] = import_module(f"ragwitness.results.{KINDS[name]}").KIND
    return kind


def kind_for(result: object) -> Kind[Any, Any]:
    """Return the kind of a result at hand; its class stands beside its kind.

    Raises:
        KeyError: It is not a result.
    """
    # A result's class lies in the module of its kind, so no table of classes has to be kept.
    module = type(result).__module__.rpartition(".")[2]
    return kind_named({home: name for name, home in KINDS.items()}[module])


def to_json(result: object) -> dict[str, Any]:
    """Return a result of any kind as strict JSON, as its run folder keeps it."""
    return kind_for(result).stored(result)


def kind_of(data: Mapping[str, Any]) -> Kind[Any, Any]:
    """Return the kind of a stored result.

    Raises:
        InputError: It is of none that this version knows.
    """
    # Since kinds have names, the name decides.
    name = data.get("kind")
    if name is not None:
        if not isinstance(name, str) or name not in KINDS:
            raise InputError(
                f"This is a result of the kind {name!r}, which this version does not know.",
                f"Known: {', '.join(KINDS)}. A newer version of Ragwitness may read it.",
            )
        return kind_named(name)
    # Files of before say by their fields what they are.
    # The order of KINDS decides where two kinds have a field in common.
    found = next((one for one in map(kind_named, KINDS) if one.recognises(data)), None)
    if found is None:
        raise InputError("This JSON is not a result of Ragwitness.", "Give a run's result.json.")
    return found


def parse_result(data: Mapping[str, Any]) -> tuple[Kind[Any, Any], Any]:
    """Return the kind of a stored result, and the result.

    Raises:
        InputError: It is of no kind known, of a version to come, or malformed.
    """
    kind = kind_of(data)
    return kind, kind.opened(data)


def open_result(path: Path) -> tuple[Kind[Any, Any], Any]:
    """Open a stored result of any kind.

    Args:
        path: A run folder, or the file itself.

    Raises:
        InputError: There is none, it is not whole, or it cannot be read; in one line.
    """
    file = path / RESULT if path.is_dir() else path
    if not file.exists():
        raise InputError(
            f"{file} does not exist: the run is unknown or unfinished.",
            "Issue the command that makes it again to finish it, or check the folder.",
        )
    try:
        return parse_result(read_object(file, _AGAIN))
    except InputError as error:
        # Every message names the file once.
        if str(file) in error.message:
            raise
        raise InputError(f"{file}: {error.message}", error.hint) from error
