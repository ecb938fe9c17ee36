"""One argument for all proofs of a window: committed columns obey equations in every row of H.

The equations are one polynomial F of the columns, their weights powers of a challenge κ. F is 0 on
H if and only if F = T·Z for a polynomial T (docs/design/link.md):

- The statement's own rounds: its columns → κ, and what else it draws
- Quotient: [T] → ζ
- Values: every opened column at ζ → μ
- ColumnOpening: one KZG quotient of Σ μ^i (P_i - P_i(ζ)) + what else must be 0 at ζ

What a column is multiplied with at ζ is known to both sides, so one function of a statement gives
prover and verifier the same factors.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs.field import powers
from ragwitness.crypto.proofs.group import (
    POINT_BYTES,
    SCALAR_BYTES,
    Point,
    R,
    encode_scalar,
    generator,
    multiexp,
    pairs_to,
    parse_point,
    parse_scalar,
)
from ragwitness.crypto.proofs.shape import TAU

_WEIGHT_BITS = 128
_TOGETHER = 64  # openings in one product, so that memory does not grow with the records


@dataclass(frozen=True, slots=True)
class ProofForm:
    """How many of each a proof holds, in this order.

    Attributes:
        check: First part of a failure's name.
        head: Bytes of hashes.
        points: Number of points.
        scalars: Number of scalars.
    """

    check: str
    head: int
    points: int
    scalars: int

    @property
    def size(self) -> int:
        """Bytes of a proof."""
        return self.head + self.points * POINT_BYTES + self.scalars * SCALAR_BYTES


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof's messages.

    Attributes:
        head: Hashes of what is claimed; they give a failure its name.
        points: Encoded.
        scalars: In [0, R).
    """

    head: bytes
    points: tuple[bytes, ...]
    scalars: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the one encoding: hashes, points, scalars."""
        return b"".join((self.head, *self.points, *map(encode_scalar, self.scalars)))

    @classmethod
    def parse(cls, data: bytes, form: ProofForm) -> Proof:
        """Return what :meth:`encode` wrote; points are cut out and not yet read.

        Raises:
            VerificationError: ``<check>.size`` or ``point.field``.
        """
        if len(data) != form.size:
            raise VerificationError(
                f"{form.check}.size", f"The proof has {len(data):,} bytes, not {form.size:,}."
            )
        end = form.head + form.points * POINT_BYTES
        points = tuple(cut(data[form.head : end], POINT_BYTES))
        return cls(
            data[: form.head], points, tuple(map(parse_scalar, cut(data[end:], SCALAR_BYTES)))
        )

    def read(self) -> list[Point]:
        """Return the points, each checked.

        Raises:
            VerificationError: ``point.curve``, ``point.encoding`` or ``point.subgroup``.
        """
        return [parse_point(data) for data in self.points]


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """Return data in pieces of one size."""
    return (data[i : i + size] for i in range(0, len(data), size))


@dataclass(frozen=True, slots=True)
class ColumnOpening:
    """What must be 0 at a point, and the quotient that shows it.

    Attributes:
        terms: Committed polynomials with their factors.
        constant: Added to their sum.
        at: Where the sum is 0, ζ.
        quotient: π, the sum divided by X - ζ.
    """

    terms: Sequence[tuple[Point, int]]
    constant: int
    at: int
    quotient: Point


@dataclass(frozen=True, slots=True)
class Equation:
    """The openings of one proof.

    Attributes:
        place: Place of the proof in a sequence, from 0.
        openings: All must hold.
    """

    place: int
    openings: Sequence[ColumnOpening]


def opened(
    points: Iterable[Point], values: Sequence[int], mu: int
) -> tuple[list[tuple[Point, int]], int, int]:
    """Return Σ μ^i (P_i - v_i) as terms and constant, and the next power of μ."""
    *weights, last = powers(mu, len(values) + 1)
    constant = -sum(w * v for w, v in zip(weights, values, strict=True)) % R
    return list(zip(points, weights, strict=True)), constant, last


def first_false(equations: Iterable[Equation]) -> int | None:
    """Return the place of the first equation that does not hold; None where all hold.

    Many are one product of two pairings, with random weights of 128 bits of the verifier's own:
    false ones pass with probability 2⁻¹²⁸. Only where the product is not 1 is each checked alone.
    """
    # Σ terms + constant [1] = (τ - ζ) π, so e(Σ terms + constant [1] + ζπ, [1]₂) = e(π, [τ]₂).
    waiting = list(equations)
    for start in range(0, len(waiting), _TOGETHER):
        group = waiting[start : start + _TOGETHER]
        if not _hold(group):
            return next(found.place for found in group if not _hold([found]))
    return None


def _hold(equations: Sequence[Equation]) -> bool:
    quotients, factors, terms, constant = [], [], [], 0
    for opening in (opening for found in equations for opening in found.openings):
        weight = secrets.randbits(_WEIGHT_BITS)
        terms += [(point, factor * weight) for point, factor in opening.terms]
        terms.append((opening.quotient, opening.at * weight))
        constant += weight * opening.constant
        quotients.append(opening.quotient)
        factors.append(weight)
    terms.append((generator(), constant))
    return pairs_to(multiexp(quotients, factors), multiexp(*zip(*terms, strict=True)), TAU)
