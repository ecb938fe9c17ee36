"""A stored result as the value it was written from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ragwitness.errors import InputError

__all__ = ["restored"]

T = TypeVar("T")


def restored(kind: type[T], data: Mapping[str, Any], verb: str) -> T:
    """Return a dataclass from its fields; ``kind`` among them tells results apart and is none.

    Args:
        kind: The dataclass.
        data: Its fields as JSON has them.
        verb: Of the command that wrote them.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    from pydantic import TypeAdapter, ValidationError

    fields = {key: value for key, value in data.items() if key != "kind"}
    try:
        return TypeAdapter(kind).validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"The stored result is malformed at {where}: {first['msg']}.",
            f"Give a result.json as written by `ragwitness {verb}`.",
        ) from error
