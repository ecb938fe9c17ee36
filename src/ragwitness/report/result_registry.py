"""All result types by name, and the one way to open a stored result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_object
from ragwitness.core.run_files import RESULT
from ragwitness.report.result_type import ResultType

RESULT_TYPES = {
    "audit": "ragwitness.membership.results.audit:RESULT_TYPE",
    "collection": "ragwitness.membership.results.collection:RESULT_TYPE",
    "marks": "ragwitness.membership.results.marks:RESULT_TYPE",
    "scope": "ragwitness.membership.results.scope:RESULT_TYPE",
    "leak": "ragwitness.leakage.result:RESULT_TYPE",
    "synthesis": "ragwitness.synthesis.result:RESULT_TYPE",
    "comparison": "ragwitness.comparison.result:RESULT_TYPE",
    "evaluation": "ragwitness.membership.results.evaluation:RESULT_TYPE",
    "canary": "ragwitness.canary.result:RESULT_TYPE",
    "collusion": "ragwitness.collusion.result:RESULT_TYPE",
    "coalition": "ragwitness.collusion.coalition_result:RESULT_TYPE",
    "verification": "ragwitness.evidence.result:RESULT_TYPE",
    "plan": "ragwitness.membership.results.forecast:RESULT_TYPE",
    "doctor": "ragwitness.membership.results.examination:RESULT_TYPE",
}
"""Name of each kind, and the module that holds it; imported when it is needed."""

_AGAIN = "Issue the command that made the run again: it resumes, and writes the result anew."


def result_type_named(name: str) -> ResultType[Any, Any]:
    """Return a kind by its name.

    Raises:
        KeyError: There is none of this name.
    """
    module, _, attribute = RESULT_TYPES[name].partition(":")
    kind: ResultType[Any, Any] = getattr(import_module(module), attribute)
    return kind


def result_type_for(result: object) -> ResultType[Any, Any]:
    """Return the result type of a result at hand.

    Raises:
        KeyError: It is not a result.
    """
    # A result's class and its result type are in one module, or the class names its type.
    if (name := getattr(result, "result_kind", None)) is not None:
        return result_type_named(name)
    result_type: ResultType[Any, Any] | None = vars(sys.modules[type(result).__module__]).get(
        "RESULT_TYPE"
    )
    if result_type is None:
        raise KeyError(type(result).__name__)
    return result_type


def to_json(result: object) -> dict[str, Any]:
    """Return a result of any kind as strict JSON, as its run folder keeps it."""
    return result_type_for(result).stored(result)


def kind_of(data: Mapping[str, Any]) -> ResultType[Any, Any]:
    """Return the kind of a stored result.

    Raises:
        InputError: It is of none that this version knows.
    """
    # Since kinds have names, the name decides.
    name = data.get("kind")
    if name is not None:
        if not isinstance(name, str) or name not in RESULT_TYPES:
            raise InputError(
                f"This is a result of the kind {name!r}, which this version does not know.",
                f"Known: {', '.join(RESULT_TYPES)}. A newer version of Ragwitness may read it.",
            )
        return result_type_named(name)
    # Earlier files are recognised by their fields.
    # The order of RESULT_TYPES decides where two kinds have a field in common.
    kind = next(
        (
            candidate
            for candidate in map(result_type_named, RESULT_TYPES)
            if candidate.recognises(data)
        ),
        None,
    )
    if kind is None:
        raise InputError("This JSON is not a result of Ragwitness.", "Give a run's result.json.")
    return kind


def parse_result(data: Mapping[str, Any]) -> tuple[ResultType[Any, Any], Any]:
    """Return the kind of a stored result, and the result.

    Raises:
        InputError: It is of no kind known, of a version to come, or malformed.
    """
    kind = kind_of(data)
    return kind, kind.opened(data)


def open_result(path: Path) -> tuple[ResultType[Any, Any], Any]:
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
