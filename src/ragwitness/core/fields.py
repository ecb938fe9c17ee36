"""Fields of a configuration: read from the text of a command line, and checked when it is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragwitness.core.errors import InputError


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
    """Return a value of the type of a field's default, made of text where that is given."""
    # The default tells the type: a command line knows nothing but text.
    kind = next((one for one in (bool, int, float, str) if isinstance(default, one)), None)
    if not isinstance(value, str):
        # A whole number will do for any, and True is none.
        takes = int | float if kind is float else kind or object
        if isinstance(value, takes) and isinstance(value, bool) <= (kind in (bool, None)):
            return value
    elif default is None:
        return _number_or_none(value, what)
    elif kind is str:
        return value
    elif kind is bool:
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if value.lower() in words:
            return words[value.lower()]
    else:
        try:
            return (kind or float)(value)
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


# What the configurations of audits refuse, in the same words everywhere.


def at_least(config: object, least: int, *names: str) -> None:
    """Refuse a field that is below ``least``.

    Raises:
        InputError: One is.
    """
    for name in names:
        # Not "<": NaN is below nothing and would pass.
        if not getattr(config, name) >= least:
            raise InputError(f"{name} must be at least {least}, not {getattr(config, name)}.")


def one_of(config: object, name: str, *choices: str) -> None:
    """Refuse a field that is none of the choices.

    Raises:
        InputError: It is not.
    """
    value = getattr(config, name)
    if value not in choices:
        *first, last = map(repr, choices)
        raise InputError(f"{name} must be {', '.join(first)} or {last}, not {value!r}.")


def ordered(config: object, low: str, high: str) -> None:
    """Refuse an upper limit below the lower one.

    Raises:
        InputError: It is.
    """
    least, most = getattr(config, low), getattr(config, high)
    if most < least:
        raise InputError(f"{high} must be at least {low} ({least}), not {most}.")
