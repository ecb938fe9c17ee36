"""The structured reference string: powers of a number that nobody keeps, as points.

It holds exactly as many powers as a committed polynomial has coefficients, D = n + 3, so a
commitment binds to a polynomial of degree below D and to no higher one (algebraic group model).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.crypto.proofs.curve import Term, negate, product_holds
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G1_GENERATOR,
    G2,
    G2_BYTES,
    G2_GENERATOR,
    encode_g1,
    encode_g2,
    parse_g1,
    parse_g2,
)
from ragwitness.crypto.proofs.shape import Shape
from ragwitness.errors import VerificationError

__all__ = ["Srs", "check_powers", "make_srs"]

_MAGIC = b"ragwitness/srs/v1\n"
_WEIGHT_BITS = 128


@dataclass(frozen=True, slots=True)
class Srs:
    """Powers of τ.

    Attributes:
        powers: [1], [τ], …, [τ^(D-1)] in G1.
        tau: [τ] in G2.
    """

    powers: tuple[G1, ...]
    tau: G2

    def encode(self) -> bytes:
        """Return the file: a line of text, [τ]₂, the powers."""
        return _MAGIC + encode_g2(self.tau) + b"".join(map(encode_g1, self.powers))

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> Srs:
        """Return what :meth:`encode` wrote, points checked and the powers not yet.

        Raises:
            VerificationError: ``srs.size``, ``srs.format`` or one of ``srs.field``, ``.curve``,
                ``.subgroup``.
        """
        head = len(_MAGIC) + G2_BYTES
        due = head + shape.coefficients * G1_BYTES
        if len(data) != due:
            raise VerificationError("srs.size", f"The powers take {due:,} bytes, not {len(data):,}")
        if not data.startswith(_MAGIC):
            raise VerificationError("srs.format", "The file does not start as powers of v1 do.")
        tau = parse_g2(data[len(_MAGIC) : head], "srs")
        starts = range(head, due, G1_BYTES)
        return cls(tuple(parse_g1(data[i : i + G1_BYTES], "srs") for i in starts), tau)


def make_srs(shape: Shape) -> Srs:
    """Draw τ, return its powers and forget it.

    Whoever runs this could keep τ, and with it open every commitment to anything: it has to be
    someone whom the verifier trusts not to (the auditor).

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    from ragwitness.crypto.proofs import native

    tau = secrets.randbelow(R - 1) + 1
    scalars = [1]
    while len(scalars) < shape.coefficients:
        scalars.append(scalars[-1] * tau % R)
    points = native.native_multiples(native.to_native_g1(G1_GENERATOR), scalars)
    [second] = native.native_multiples(native.to_native_g2(G2_GENERATOR), [tau])
    return Srs(tuple(map(native.from_native_g1, points)), native.from_native_g2(second))


def check_powers(srs: Srs) -> None:
    """Check that the points are powers of one number other than 0, 1 and -1, whoever made them.

    A prover's blinds hide only under such powers. Checked is one random combination of all
    neighbours, e(Σ w_i P_(i+1), [1]) = e(Σ w_i P_i, [τ]); wrong powers pass with probability
    2⁻¹²⁸.

    Raises:
        VerificationError: ``srs.powers``.
        MissingExtraError: zksnake or py_ecc is not installed.
    """
    first, second = srs.powers[:2]
    if first != G1_GENERATOR or second in ((0, 0), first, negate(first)):
        raise VerificationError("srs.powers", "The powers do not start at 1, or τ is 0, 1 or -1.")
    weights = [secrets.randbits(_WEIGHT_BITS) for _ in srs.powers[1:]]
    upper = _sum(srs.powers[1:], weights)
    lower = _sum(srs.powers[:-1], weights)
    if not product_holds([Term(1, upper, G2_GENERATOR), Term(1, negate(lower), srs.tau)]):
        raise VerificationError(
            "srs.powers",
            "The setup's points are not the powers of one number, so blinds would not hide.",
            "Ask for a new setup, from someone else.",
        )


def _sum(points: Sequence[G1], weights: Sequence[int]) -> G1:
    """Σ weights · points."""
    from ragwitness.crypto.proofs import native

    held = [native.to_native_g1(point) for point in points]
    return native.from_native_g1(native.native_msm(held, weights))
