"""An option that was given and that nothing would read is refused.

Ignoring it would do something else than what was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import UnionType
from typing import Any, get_args

from ragwitness.core.errors import InputError
from ragwitness.core.options import Only, declared

TRAITS: Mapping[str, tuple[str, str]] = {
    "single": ("does not apply to a collection", "Leave it out, or --collection."),
    "shadow": (
        "is for a shadow system, and {method} asks none",
        "Leave it out, or name a method that learns from one: --method s-rag:paper",
    ),
    "sealed": ("is for a sealed run", "Give a key: --seal auditor.key"),
    "ray": ("is for a Ray cluster", "Leave it out, or add --engine ray."),
    "private": (
        "is for a private method, and {method} is not differentially private",
        "Take --method private-evolution, or leave it out.",
    ),
    "looks": (
        "holds texts against the records, which {method} must not: what is withheld for that tells"
        " of the records, and epsilon would not cover it",
        "Leave it out.",
    ),
    "writes": (
        "is for texts that are written anew, and {method} copies what its records hold",
        "Leave it out.",
    ),
    "utility": ("is for measuring use, which --no-utility leaves out", "Leave one of them out."),
    "asks": ("is for what is asked, and stored transcripts were asked before", "Leave it out."),
}
"""What an option may be for: what is said where that is not so, and what to do."""


def reject_inapplicable_options(task: Any, traits: Set[str], method: str = "") -> None:
    """Refuse an option that does not apply to a task with these traits.

    Args:
        task: A dataclass of this package.
        traits: What is true of it: names of :data:`TRAITS`, ``"collection"``, ``"no known-out"``.
        method: Name of its method, for the message.

    Raises:
        InputError: Such an option was given.
    """
    for one in declared(type(task)):
        only = one.mark(Only)
        if only and not traits & {*only.traits} and getattr(task, one.name) != one.default:
            why, hint = TRAITS[only.traits[0]]
            raise InputError(f"{one.option} {why.format(method=method)}.", hint)


def refuse_types(task: Any) -> None:
    """Refuse a value of another type than a plain one that is declared: a program gave it.

    Raises:
        InputError: A text, a number or a flag is something else.
    """
    for one in declared(type(task)):
        value = getattr(task, one.name)
        kinds = get_args(one.kind) if isinstance(one.kind, UnionType) else (one.kind,)
        if not {*kinds} <= {str, int, float, bool, type(None)}:
            continue
        whole = isinstance(value, int) and float in kinds
        if not (isinstance(value, kinds) or whole) or (
            isinstance(value, bool) and bool not in kinds
        ):
            raise InputError(f"{one.name} cannot be {value!r}.", f"{one.name} is {one.kind}.")
