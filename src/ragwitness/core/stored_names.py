"""Names by which stored files know a class: they stay when the class moves or is renamed.

Keys of paid work (kept scores, synthetic records, noisy votes) and the default names of run
folders contain the class of their settings. A class that enters such a key has a
``stored_name``, which never changes. A class without one, as in other packages, enters by its
own name.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum


def stored_name(kind: type) -> str:
    """Return the name of a class in stored files.

    Its own ``stored_name``, never an inherited one: a subclass is another class.
    """
    name = vars(kind).get("stored_name")
    return name if isinstance(name, str) else kind.__qualname__


def unset(config: object) -> frozenset[str]:
    """Return the fields of a configuration that came after files were stored, and are not set.

    A class names them in ``later``: a new option must not make what was kept a stranger's.
    """
    later = getattr(config, "later", ())
    plain = type(config)() if later else None
    return frozenset(name for name in later if getattr(config, name) == getattr(plain, name))


def stored_text(value: object) -> str:
    """Return a value as keys hold it: its ``repr``, with the stored names of its classes."""
    kind = type(value)
    # As ``repr`` writes them, but with stored names, without options that came later, and with
    # those that were removed: ``removed`` maps the field behind each to its name and value.
    if is_dataclass(value) and kind.__dataclass_params__.repr:  # type: ignore[attr-defined]
        idle, removed = unset(value), getattr(kind, "removed", {})
        items = []
        for field in fields(value):
            if field.name in removed:
                items.append("{}={!r}".format(*removed[field.name]))
            if field.repr and field.name not in idle:
                items.append(f"{field.name}={stored_text(getattr(value, field.name))}")
        return f"{stored_name(kind)}({', '.join(items)})"
    if isinstance(value, Enum) and kind.__repr__ is Enum.__repr__:
        return f"<{stored_name(kind)}.{value.name}: {value.value!r}>"
    if kind is tuple:
        inside: tuple[object, ...] = value  # type: ignore[assignment]
        return f"({', '.join(map(stored_text, inside))}{',' if len(inside) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(stored_text, value))}]"  # type: ignore[call-overload]
    if kind is dict:
        pairs = value.items()  # type: ignore[attr-defined]
        return f"{{{', '.join(f'{stored_text(k)}: {stored_text(v)}' for k, v in pairs)}}}"
    if kind is frozenset:  # in one order in all processes, whatever their hashes are salted with
        members = ", ".join(sorted(map(stored_text, value)))  # type: ignore[call-overload]
        return f"frozenset({{{members}}})" if members else "frozenset()"
    return repr(value)
