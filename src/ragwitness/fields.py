"""Fields of a configuration from the text of a command line, checked against their defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragwitness.errors import InputError

__all__ = ["typed_fields"]


def typed_fields(
    name: str, default: object, known: Collection[str], options: Mapping[str, object]
) -> dict[str, Any]:
    """Return options with text turned into the type of each field's default.

    Args:
        name: Of what is configured, for people.
        default: A configuration as it is without options.
        known: Fields that may be given.
        options: Values by field.

    Raises:
        InputError: Unknown field, or a value of another type.
    """
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(
            f"{name} has no option {unknown[0]!r}.", f"It has: {', '.join(sorted(known))}."
        )
    return {
        key: _like(getattr(default, key), value, f"{name}: {key}") for key, value in options.items()
    }


def _like(default: object, value: object, what: str) -> object:
    """Turn the text of a command line into the type of a field's default."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if default is None:
        return _number_or_none(value, what)
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if value.lower() in words:
            return words[value.lower()]
    else:
        kind = int if isinstance(default, int) else float
        try:
            return kind(value)
        except ValueError:
            pass
    raise InputError(f"{what} cannot be {value!r}.", f"Its default is {default!r}.")


def _number_or_none(text: str, what: str) -> float | None:
    """Read a field that is unset by default; ours are numbers when set."""
    if text.strip().lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} cannot be {text!r}.", "Give a number, or 'none'.") from None
