"""The file by which a verifier hands in what an attack has shown; its own, and not in a bundle."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ragwitness.attest.verdict import Empirical
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import at_least_zero, probability, whole

__all__ = ["EMPIRICAL_VERSION", "parse_empirical"]

EMPIRICAL_VERSION = "ragwitness/empirical/v1"


def parse_empirical(data: bytes) -> Empirical:
    """Return the lower bound of a file.

    Raises:
        InputError: It is no such file, or a value is outside its range.
    """
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _wrong("it is no JSON") from error
    if not isinstance(value, dict) or value.pop("version", None) != EMPIRICAL_VERSION:
        raise _wrong(f"its version is not {EMPIRICAL_VERSION!r}")
    names = {field.name for field in fields(Empirical)}
    if value.keys() != names:
        raise _wrong(f"it lacks a field or has another: {sorted(value.keys() ^ names)[0][:40]!r}")
    texts, reals = ("attack", "mechanism"), ("epsilon", "delta", "confidence")
    if not all(isinstance(value[name], str) for name in texts):
        raise _wrong("the attack or the mechanism is no text")
    if not all(type(value[name]) in (int, float) for name in reals):
        raise _wrong("a bound is no number")
    found = Empirical(**value)
    at_least_zero("epsilon", found.epsilon)
    probability("delta", found.delta)
    probability("confidence", found.confidence)
    for name in ("trials", "accounts", "queries"):
        whole(name, getattr(found, name))
    return found


def _wrong(why: str) -> InputError:
    return InputError(
        f"This is no file of an attack's lower bound: {why}.", "See docs/attest.md for its fields."
    )
