"""Many products of pairings checked as one; where that fails, which of them is false."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragwitness.crypto.proofs.curve import Term, product_holds

__all__ = ["Equation", "first_false", "weighted"]

_WEIGHT_BITS = 128


@dataclass(frozen=True, slots=True)
class Equation:
    """Π e(scalar · g1, g2) = 1.

    Attributes:
        check: Name of the check that fails without it.
        place: Of the proof in a sequence, from 0.
        chunk: Of the index, from 0.
        terms: The factors.
    """

    check: str
    place: int
    chunk: int
    terms: Sequence[Term]


def first_false(equations: Sequence[Equation]) -> Equation | None:
    """Return None if all equations hold, else the first that does not.

    They are multiplied, each but the first with a random weight of 128 bits of the verifier's own:
    false ones pass with probability 2⁻¹²⁸. Only where the product is not 1 is each checked alone.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    if not equations or product_holds(weighted(found.terms for found in equations)):
        return None
    return next(found for found in equations if not product_holds(found.terms))


def weighted(groups: Iterable[Sequence[Term]]) -> list[Term]:
    """Return the factors of one product for many, each but the first with a random weight."""
    found = []
    for number, group in enumerate(groups):
        weight = secrets.randbits(_WEIGHT_BITS) if number else 1
        found += [replace(term, scalar=term.scalar * weight) for term in group]
    return found
