"""Setup and prover of Groth16 on zksnake's curve arithmetic (Groth 2016, §3.2).

zksnake's own Groth16 is not used: it proves with dense polynomials and lacks rows for public
inputs. Here a key holds, as snarkjs' does, one point per wire, so that a wire which is a bit costs
one addition; and gamma = 1, as there, so that a verifier shares a pairing with the commitments.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey
from ragwitness.crypto.proofs.groth16.proving_key import PointList, ProvingKey
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_curve,
    native_msm,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.r1cs import Circuit, Wires, evaluate
from ragwitness.errors import InputError

__all__ = ["blind", "make_key", "prove"]

_DIGIT = 10  # bits of the scalars that one table of multiples covers
_GENERATOR = 5  # of the field's multiplicative group


def make_key(circuit: Circuit) -> ProvingKey:
    """Run the setup of a circuit. Whoever learns its random numbers can forge proofs.

    They are drawn from the operating system and forgotten; nothing can show that.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    tau, alpha, beta, delta = (1 + secrets.randbelow(R - 1) for _ in range(4))
    basis = _Basis.of(circuit, tau)
    left, right, output = basis.wires(circuit)
    mixed = [(beta * a + alpha * b + c) % R for a, b, c in zip(left, right, output, strict=True)]
    first = 1 + circuit.publics
    inverse = pow(delta, -1, R)
    g1, g2 = _Multiples(native_curve().G1()), _Multiples(native_curve().G2())
    beta_2, gamma_2, delta_2 = (from_native_g2(g2.of(value)) for value in (beta, 1, delta))
    inputs = tuple(from_native_g1(g1.of(value)) for value in mixed[:first])
    verifying = VerifyingKey(from_native_g1(g1.of(alpha)), beta_2, gamma_2, delta_2, inputs)
    return ProvingKey(
        verifying,
        g1.of(beta),
        g1.of(delta),
        g1.all(left),
        g1.all(right),
        g2.all(right),
        g1.all([value * inverse for value in mixed[first:]]),
        g1.all([value * inverse for value in basis.quotient]),
    )


def prove(key: ProvingKey, circuit: Circuit, wires: Wires) -> Proof:
    """Return a proof that the wires satisfy the circuit; two of one statement share nothing.

    It is verified, then blinded by :func:`blind`, so that nothing of the witness is in it whoever
    made the key.

    Args:
        key: Of this circuit.
        circuit: The relation.
        wires: Of :meth:`~.r1cs.Circuit.witness`.

    Raises:
        InputError: The key is another circuit's or broken, or the wires do not satisfy the
            circuit.
    """
    sizes = key.left.size, len(key.verifying.inputs), key.quotient.size
    if sizes != (circuit.wires, 1 + circuit.publics, _domain(circuit)):
        raise InputError("The proving key is another circuit's.", "Make the setup again.")
    alpha, beta, _ = _fixed(key.verifying)
    a, b = alpha + _sum(key.left, wires), beta + _sum(key.right_2, wires)
    c = _sum(key.private, wires[1 + circuit.publics :])
    c = c + _sum(key.quotient, _quotient(circuit, wires, key.quotient.size))
    _check(key.verifying, wires[: 1 + circuit.publics], (a, b, c))
    return blind(key.verifying, Proof(from_native_g1(a), from_native_g2(b), from_native_g1(c)))


def blind(key: VerifyingKey, proof: Proof) -> Proof:
    """Return a proof of the same that is distributed alike for every witness.

    (A/x, x(B + y[delta]), C + yA) with random x and y: uniform in its first two parts, and only
    one C verifies with them (Baghery et al. 2020, ePrint 2020/811). Who made the proving key,
    and how, does not matter.

    Args:
        key: That the proof holds under; its delta is not infinity (:meth:`VerifyingKey.parse`).
        proof: Verified. What does not hold stays so.

    Raises:
        InputError: A is infinity, and would stay so.
    """
    if proof.a == (0, 0):
        raise InputError("A proof's first point is infinity.", "Make the setup again.")
    x, y = 1 + secrets.randbelow(R - 1), secrets.randbelow(R)
    a, b, c = to_native_g1(proof.a), to_native_g2(proof.b), to_native_g1(proof.c)
    _, _, delta = _fixed(key)
    moved = (a * pow(x, -1, R), (b + delta * y) * x, c + a * y)
    return Proof(from_native_g1(moved[0]), from_native_g2(moved[1]), from_native_g1(moved[2]))


@dataclass(frozen=True, slots=True)
class _Basis:
    """Lagrange polynomials of the domain, and of its coset, at τ.

    Attributes:
        rows: L_i(τ).
        quotient: L_i(τ/g)·Z(τ)/Z(g), the coset's, times what divides the values there by Z.
    """

    rows: Sequence[int]
    quotient: Sequence[int]

    @classmethod
    def of(cls, circuit: Circuit, tau: int) -> _Basis:
        ring, domain = _ring(), _domain(circuit)
        # Z is shift^domain - 1 = -2 all over the coset.
        vanishing = (1 - pow(tau, domain, R)) * pow(2, -1, R) % R
        moved = tau * pow(_shift(domain), -1, R) % R
        return cls(
            ring.evaluate_lagrange_coefficients(domain, tau),
            [v * vanishing % R for v in ring.evaluate_lagrange_coefficients(domain, moved)],
        )

    def wires(self, circuit: Circuit) -> tuple[list[int], list[int], list[int]]:
        """Return A_i(τ), B_i(τ), C_i(τ) for every wire."""
        found = [0] * circuit.wires, [0] * circuit.wires, [0] * circuit.wires
        for value, row in zip(self.rows, circuit.rows(), strict=False):
            for sums, part in zip(found, (row.a, row.b, row.c), strict=True):
                for wire, factor in part.terms.items():
                    sums[wire] = (sums[wire] + value * factor) % R
        return found


class _Multiples:
    """Many multiples of one point, from tables of the multiples that each digit can need."""

    def __init__(self, point: Any) -> None:
        self._tables = []
        for _ in range(0, R.bit_length(), _DIGIT):
            table = [point * 0]
            for _ in range((1 << _DIGIT) - 1):
                table.append(table[-1] + point)
            self._tables.append(table)
            point = table[-1] + point

    def of(self, scalar: int) -> Any:
        """Return scalar · point."""
        scalar %= R
        found = self._tables[0][0]
        for table in self._tables:
            found = found + table[scalar & (1 << _DIGIT) - 1]
            scalar >>= _DIGIT
        return found

    def all(self, scalars: Sequence[int]) -> PointList:
        """Return the finite ones of scalars[i] · point."""
        numbers = [number for number, scalar in enumerate(scalars) if scalar % R]
        return PointList(len(scalars), numbers, [self.of(scalars[i]) for i in numbers])


def _ring() -> Any:
    native_curve()  # says so where zksnake is missing
    from zksnake._algebra import polynomial_bn254

    return polynomial_bn254


def _domain(circuit: Circuit) -> int:
    return 1 << (len(circuit.constraints) + circuit.publics).bit_length()


def _shift(domain: int) -> int:
    """Return the root of order 2 · domain that snarkjs and arkworks shift their coset by.

    zksnake's own coset is shifted by a root of the domain, so it is the domain again.
    """
    return pow(_GENERATOR, (R - 1) // (2 * domain), R)


def _quotient(circuit: Circuit, wires: Wires, domain: int) -> list[int]:
    """Return A·B - C on the coset."""
    left = [evaluate(row.a, wires) for row in circuit.rows()]
    right = [evaluate(row.b, wires) for row in circuit.rows()]
    output = [a * b % R for a, b in zip(left, right, strict=True)]
    moved = (_on_coset(values, domain) for values in (left, right, output))
    return [(a * b - c) % R for a, b, c in zip(*moved, strict=True)]


def _on_coset(values: Sequence[int], domain: int) -> list[int]:
    """Return the values on the coset of the polynomial with these values on the domain."""
    coefficients = _ring().ifft([*values, *([0] * (domain - len(values)))], domain)
    shift, power, shifted = _shift(domain), 1, []
    for coefficient in coefficients:
        shifted.append(coefficient * power % R)
        power = power * shift % R
    found: list[int] = _ring().fft(shifted, domain)
    return found


def _sum(points: PointList, scalars: Sequence[int]) -> Any:
    return native_msm(points.points, [scalars[number] for number in points.numbers])


def _fixed(key: VerifyingKey) -> tuple[Any, Any, Any]:
    return to_native_g1(key.alpha), to_native_g2(key.beta), to_native_g2(key.delta)


def _check(key: VerifyingKey, publics: Sequence[int], proof: tuple[Any, Any, Any]) -> None:
    curve = native_curve()
    alpha, beta, delta = _fixed(key)
    inputs = native_msm([to_native_g1(point) for point in key.inputs], publics)
    a, b, c = proof
    right = curve.multi_pairing([alpha, inputs, c], [beta, to_native_g2(key.gamma), delta])
    if curve.pairing(a, b) != right:
        raise InputError(
            "The witness does not satisfy the circuit, or the proving key is broken.",
            "Only a true statement can be proved; if it is true, make the setup again.",
        )
