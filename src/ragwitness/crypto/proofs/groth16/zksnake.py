"""Setup and prover of Groth16 on zksnake's curve arithmetic (Groth 2016, §3.2).

zksnake's own Groth16 is not used: it proves with dense polynomials and lacks rows for public
inputs. Here a key holds, as snarkjs' does, one point per wire, so that a wire which is a bit costs
one addition; and gamma = 1, as there, so that a verifier shares a pairing with the commitments.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    has_order_r,
    native_curve,
    native_msm,
    native_ring,
    read_native_g2,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.norms.polynomials import powers
from ragwitness.crypto.proofs.points import G1_BYTES, G2_BYTES, P, R, encode_g1, encode_g2, parse_g1
from ragwitness.crypto.proofs.r1cs import Circuit, Wires, evaluate
from ragwitness.errors import InputError, VerificationError

# The prover's key of one circuit: points of zksnake in memory, plain coordinates on disk.

_MAGIC = b"ragwitness/groth16-key/v1\n"
_DIGEST_BYTES = 32
_HINT = "Make the setup again: ragwitness setup."


@dataclass(frozen=True, slots=True, eq=False)
class PointList:
    """Points of one group by number, without those at infinity.

    Attributes:
        size: Numbers run from 0 to ``size - 1``.
        numbers: Numbers of the finite points, ascending.
        points: zksnake's, as many.
    """

    size: int
    numbers: Sequence[int]
    points: Sequence[Any]

    def encode(self, encode: Callable[[Any], bytes], width: int) -> bytes:
        """Return every number's point as ``encode`` writes it, ``width`` zeros for infinity."""
        known = dict(zip(self.numbers, self.points, strict=True))
        return b"".join(
            encode(known[number]) if number in known else bytes(width)
            for number in range(self.size)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProvingKey:
    """What a prover needs of one circuit's setup; no secret.

    ``beta``, ``delta`` and ``right`` are for other programs, which blind with them.

    Attributes:
        verifying: The verifier's part.
        beta: [beta]₁, zksnake's point, as all below.
        delta: [delta]₁.
        left: [A_i(τ)]₁ per wire.
        right: [B_i(τ)]₁ per wire.
        right_2: [B_i(τ)]₂ per wire.
        private: [(beta·A_i + alpha·B_i + C_i)(τ)/delta]₁ per private wire.
        quotient: [L_i(τ)/delta]₁, L_i the odd ones of the Lagrange basis of the doubled domain.
    """

    verifying: VerifyingKey
    beta: Any
    delta: Any
    left: PointList
    right: PointList
    right_2: PointList
    private: PointList
    quotient: PointList

    def encode(self) -> bytes:
        """Return sizes, points, and the SHA-256 of all that."""
        sizes = (self.left.size, len(self.verifying.inputs) - 1, self.quotient.size)
        parts = [_MAGIC, *(size.to_bytes(4, "big") for size in sizes), self.verifying.encode()]
        parts += map(_bytes_1, (self.beta, self.delta))
        for points in (self.left, self.right, self.private, self.quotient):
            parts.append(points.encode(_bytes_1, G1_BYTES))
        parts.append(self.right_2.encode(lambda point: encode_g2(from_native_g2(point)), G2_BYTES))
        data = b"".join(parts)
        return data + hashlib.sha256(data).digest()

    @classmethod
    def parse(cls, data: bytes) -> ProvingKey:
        """Read what :meth:`encode` wrote.

        Points of G1 are in the group of order R where they are on the curve. Those of G2 need not
        be: what they sum up to is checked in :func:`prove`, once a proof.

        Raises:
            InputError: It is not such a key, or it is damaged.
            MissingExtraError: zksnake is not installed.
        """
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            raise InputError("The file is not a proving key, or it is damaged.", _HINT)
        reader = _Reader(body, len(_MAGIC))
        try:
            return reader.key()
        except VerificationError as error:
            raise InputError(f"A proving key is unusable: {error.message}", _HINT) from error


class _Reader:
    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._known: dict[bytes, tuple[bytes, Any]] = {}

    def key(self) -> ProvingKey:
        # In the order of ``ProvingKey.encode``.
        wires, publics, domain = (int.from_bytes(self._take(4), "big") for _ in range(3))
        if not publics < wires:
            raise InputError("A proving key has more public inputs than wires.", _HINT)
        fixed = self._take(G1_BYTES * (2 + publics) + 3 * G2_BYTES)
        verifying = VerifyingKey.parse(fixed, publics)
        beta, delta = self._g1(self._take(G1_BYTES)), self._g1(self._take(G1_BYTES))
        left, right = self._list(wires), self._list(wires)
        private, quotient = self._list(wires - 1 - publics), self._list(domain)
        right_2 = self._list(wires, G2_BYTES)
        if self._place != len(self._data):
            raise InputError("A proving key has bytes behind its end.", _HINT)
        return ProvingKey(verifying, beta, delta, left, right, right_2, private, quotient)

    def _list(self, size: int, width: int = G1_BYTES) -> PointList:
        data = self._take(size * width)
        read = self._g1 if width == G1_BYTES else _g2
        numbers, points = [], []
        for number in range(size):
            raw = data[number * width : (number + 1) * width]
            if any(raw):
                numbers.append(number)
                points.append(read(raw))
        return PointList(size, numbers, points)

    def _g1(self, raw: bytes) -> Any:
        """Read a point; a wire that is a bit has B = -A, and -A is free."""
        x, y = raw[:32], raw[32:]
        if x in self._known:
            ordinate, point = self._known[x]
            if y == ordinate:
                return point
            if int.from_bytes(y, "big") + int.from_bytes(ordinate, "big") == P:
                return -point
        point = to_native_g1(parse_g1(raw))
        self._known[x] = y, point
        return point

    def _take(self, size: int) -> bytes:
        found = self._data[self._place : self._place + size]
        if len(found) != size:
            raise InputError("A proving key ends too early.", _HINT)
        self._place += size
        return found


def _bytes_1(point: Any) -> bytes:
    return encode_g1(from_native_g1(point))


def _g2(raw: bytes) -> Any:
    point = read_native_g2(raw)
    if point is None:
        raise InputError("A proving key holds a point off the twisted curve.", _HINT)
    return point


_DIGIT = 10  # bits of the scalars that one table of multiples covers
GENERATOR = 5  # of the field's multiplicative group


def make_key(circuit: Circuit) -> ProvingKey:
    """Run the setup of a circuit. Whoever learns its random numbers can forge proofs.

    They are drawn from the operating system and forgotten; nothing can show that.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    # The trapdoors: gone when this function returns.
    tau, alpha, beta, delta = (1 + secrets.randbelow(R - 1) for _ in range(4))
    basis = _Basis.of(circuit, tau)
    # A_i(τ), B_i(τ), C_i(τ) of every wire (Groth 2016, §3.2, as a quadratic arithmetic program).
    left, right, output = basis.wires(circuit)
    mixed = [(beta * a + alpha * b + c) % R for a, b, c in zip(left, right, output, strict=True)]
    first = 1 + circuit.publics
    inverse = pow(delta, -1, R)
    g1, g2 = _Multiples(native_curve().G1()), _Multiples(native_curve().G2())
    beta_2, gamma_2, delta_2 = (from_native_g2(g2.of(value)) for value in (beta, 1, delta))
    # The verifier's part: public wires over gamma = 1. The prover's: private wires over delta.
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
        key: Key of this circuit.
        circuit: The relation.
        wires: Wires from :meth:`~.r1cs.Circuit.witness`.

    Raises:
        InputError: The key is another circuit's or broken, or the wires do not satisfy the
            circuit.
    """
    sizes = key.left.size, len(key.verifying.inputs), key.quotient.size
    if sizes != (circuit.wires, 1 + circuit.publics, domain_of(circuit)):
        raise InputError("The proving key is another circuit's.", "Make the setup again.")
    # A = alpha + Σ w_i A_i(τ) and B = beta + Σ w_i B_i(τ), without the usual r and s: ``blind``
    # makes them uniform from the verifying key alone.
    alpha, beta, _ = _fixed(key.verifying)
    a, b = alpha + _sum(key.left, wires), beta + _sum(key.right_2, wires)
    # Outside the group of order R, B would show part of the witness through all blinding.
    if not has_order_r(b):
        raise InputError("A proving key holds a point of the wrong order.", _HINT)
    # C = Σ of the private wires, and (A·B - C)/Z at τ, both over delta.
    c = _sum(key.private, wires[1 + circuit.publics :])
    c = c + _sum(key.quotient, _quotient(circuit, wires, key.quotient.size))
    # The prover is its own first verifier: what a broken key makes could reveal the witness.
    _check(key.verifying, wires[: 1 + circuit.publics], (a, b, c))
    return blind(key.verifying, Proof(from_native_g1(a), from_native_g2(b), from_native_g1(c)))


def blind(key: VerifyingKey, proof: Proof) -> Proof:
    """Return a proof of the same that is distributed alike for every witness.

    (A/x, x(B + y[delta]), C + yA) with random x and y: uniform in its first two parts, and only
    one C verifies with them (Baghery et al. 2020, ePrint 2020/811). Who made the proving key,
    and how, does not matter.

    Args:
        key: Key that the proof holds under; its delta is not infinity (:meth:`VerifyingKey.parse`).
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
        algebra, domain = native_ring(), domain_of(circuit)
        # Z is shift^domain - 1 = -2 all over the coset.
        vanishing = (1 - pow(tau, domain, R)) * pow(2, -1, R) % R
        moved = tau * pow(coset_shift(domain), -1, R) % R
        return cls(
            algebra.evaluate_lagrange_coefficients(domain, tau),
            [v * vanishing % R for v in algebra.evaluate_lagrange_coefficients(domain, moved)],
        )

    def wires(self, circuit: Circuit) -> tuple[list[int], list[int], list[int]]:
        """Return A_i(τ), B_i(τ), C_i(τ) for every wire."""
        found = [0] * circuit.wires, [0] * circuit.wires, [0] * circuit.wires
        # Row i of the matrices is the value at the domain's point i: weigh it with L_i(τ).
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


def domain_of(circuit: Circuit) -> int:
    """Return the number of rows of a circuit's keys: the power of two above its own."""
    return 1 << (len(circuit.constraints) + circuit.publics).bit_length()


def coset_shift(domain: int) -> int:
    """Return the root of order 2 · domain that snarkjs and arkworks shift their coset by.

    zksnake's own coset is shifted by a root of the domain, so it is the domain again.
    """
    return pow(GENERATOR, (R - 1) // (2 * domain), R)


def _quotient(circuit: Circuit, wires: Wires, domain: int) -> list[int]:
    """Return A·B - C on the coset."""
    # On the domain A·B = C holds row by row; the coset is where the quotient by Z can be read off.
    left = [evaluate(row.a, wires) for row in circuit.rows()]
    right = [evaluate(row.b, wires) for row in circuit.rows()]
    output = [a * b % R for a, b in zip(left, right, strict=True)]
    moved = (_on_coset(values, domain) for values in (left, right, output))
    return [(a * b - c) % R for a, b, c in zip(*moved, strict=True)]


def _on_coset(values: Sequence[int], domain: int) -> list[int]:
    """Return the values on the coset of the polynomial with these values on the domain."""
    coefficients = native_ring().ifft([*values, *([0] * (domain - len(values)))], domain)
    # f(shift · X) has the values of f on the coset as its values on the domain.
    scales = powers(coset_shift(domain), domain)
    shifted = [value * scale % R for value, scale in zip(coefficients, scales, strict=True)]
    found: list[int] = native_ring().fft(shifted, domain)
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
