"""A ceremony's points: powers of tau, alpha and beta, of the commitments' tau, and the keys.

What is handed on are the points alone. That they are powers is checked at the end of every step, by
pairings of random combinations (Bowe, Gabizon and Miers 2017, §5); whose factors are in them, the
transcript's chain says.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragwitness.crypto.proofs.curve import Term, product_holds
from ragwitness.crypto.proofs.groth16 import VerifyingKey
from ragwitness.crypto.proofs.groth16.zksnake import (
    GENERATOR,
    PointList,
    ProvingKey,
    coset_shift,
    domain_of,
)
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
from ragwitness.crypto.proofs.norms.polynomials import powers as powers_of
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G1_GENERATOR,
    G2,
    G2_BYTES,
    G2_GENERATOR,
    R,
    encode_g1,
    encode_g2,
    negate,
    parse_g1,
)
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.crypto.proofs.setup import Srs
from ragwitness.errors import VerificationError

_WEIGHT_BITS = 128
_ORDER_BITS, _ORDER_TRIES = 16, 10


@dataclass(frozen=True, slots=True, eq=False)
class Powers:
    """Points of zksnake; D coefficients of a commitment, N rows of the larger circuit's domain.

    Attributes:
        kzg: [κ^i]₁ for i < D.
        tau: [τ^i]₁ for i < 2N - 1.
        alpha: [alpha·τ^i]₁ for i < N.
        beta: [beta·τ^i]₁ for i < N.
        tau_2: [τ^i]₂ for i < N.
        kzg_2: [κ]₂.
        beta_2: [beta]₂.
    """

    kzg: Sequence[Any]
    tau: Sequence[Any]
    alpha: Sequence[Any]
    beta: Sequence[Any]
    tau_2: Sequence[Any]
    kzg_2: Any
    beta_2: Any

    @property
    def srs(self) -> Srs:
        """The commitments' part, in the form of a setup's file."""
        return Srs(tuple(map(from_native_g1, self.kzg)), from_native_g2(self.kzg_2))

    @classmethod
    def start(cls, coefficients: int, domain: int) -> Powers:
        """Return the powers of 1: where every ceremony starts."""
        one, two = native_curve().G1(), native_curve().G2()
        sizes = coefficients, 2 * domain - 1, domain, domain
        kzg, tau, alpha, beta = ([one] * size for size in sizes)
        return cls(kzg, tau, alpha, beta, [two] * domain, two, two)

    def raised(self, factors: Mapping[str, int]) -> Powers:
        """Return the powers with every number multiplied by its factor."""
        many = native_curve().batch_mul
        kzg = powers_of(factors["kzg"], len(self.kzg))
        tau = powers_of(factors["tau"], len(self.tau))
        count = len(self.alpha)
        alpha, beta = ([factors[name] * t % R for t in tau[:count]] for name in ("alpha", "beta"))
        return Powers(
            many([*self.kzg], kzg),
            many([*self.tau], tau),
            many([*self.alpha], alpha),
            many([*self.beta], beta),
            many([*self.tau_2], tau[:count]),
            self.kzg_2 * factors["kzg"],
            self.beta_2 * factors["beta"],
        )

    def encode(self) -> bytes:
        """Return all points in order of the attributes."""
        ones = map(from_native_g1, (*self.kzg, *self.tau, *self.alpha, *self.beta))
        twos = map(from_native_g2, (*self.tau_2, self.kzg_2, self.beta_2))
        return b"".join((*map(encode_g1, ones), *map(encode_g2, twos)))

    @classmethod
    def parse(cls, data: bytes, coefficients: int, domain: int) -> Powers:
        """Return what :meth:`encode` wrote: points on their curves, nothing else is checked.

        Raises:
            VerificationError: ``ceremony.size``, ``.field``, ``.curve``.
        """
        sizes = coefficients, 2 * domain - 1, domain, domain
        ones, twos = sum(sizes), domain + 2
        if len(data) != ones * G1_BYTES + twos * G2_BYTES:
            raise VerificationError("ceremony.size", "The powers are not of the ceremony's shape.")
        at, parts = 0, []
        for size in sizes:
            raw = (data[i : i + G1_BYTES] for i in range(at, at + size * G1_BYTES, G1_BYTES))
            parts.append([to_native_g1(parse_g1(one, "ceremony")) for one in raw])
            at += size * G1_BYTES
        *tau_2, kzg_2, beta_2 = (
            _g2(data[i : i + G2_BYTES]) for i in range(at, len(data), G2_BYTES)
        )
        kzg, tau, alpha, beta = parts
        return cls(kzg, tau, alpha, beta, tau_2, kzg_2, beta_2)


def check_powers(powers: Powers, due: Mapping[str, G1]) -> None:
    """Check that points are powers of the numbers that the transcript's chain ends with, ``due``.

    Raises:
        VerificationError: ``ceremony.subgroup`` or ``ceremony.powers``.
    """
    # 1. Points of G2 are in the group of order R; those of G1 are, if on the curve.
    check_orders([*powers.tau_2, powers.kzg_2, powers.beta_2])
    # 2. They start at 1, and at the numbers of the chain.
    starts = (
        (powers.kzg[0], G1_GENERATOR),
        (powers.kzg[1], due["kzg"]),
        (powers.tau[0], G1_GENERATOR),
        (powers.tau[1], due["tau"]),
        (powers.alpha[0], due["alpha"]),
        (powers.beta[0], due["beta"]),
    )
    if any(from_native_g1(point) != wanted for point, wanted in starts):
        raise _no_powers("do not start with the numbers of its transcript")
    if from_native_g2(powers.tau_2[0]) != G2_GENERATOR:
        raise _no_powers("do not start at 1")
    # 3. Every power is the number times the one before, and both groups hold the same.
    tau_2, kzg_2 = (from_native_g2(point) for point in (powers.tau_2[1], powers.kzg_2))
    equations = _neighbours(powers.kzg, kzg_2)
    for points in (powers.tau, powers.alpha, powers.beta):
        equations += _neighbours(points, tau_2)
    equations += _alike(powers.tau[: len(powers.tau_2)], powers.tau_2)
    equations += _alike(powers.beta[:1], [powers.beta_2])
    if not product_holds(equations):
        raise _no_powers("are not the powers of one number each")


def check_orders(points: Sequence[Any]) -> None:
    """Check that points of the twist have order R, all together.

    A part outside the group has at least order 10,069, the cofactor's least factor. So a random sum
    with weights of 16 bits hides it with probability below 2⁻¹³, and ten sums below 2⁻¹³⁰.

    Raises:
        VerificationError: ``ceremony.subgroup``.
    """
    for _ in range(_ORDER_TRIES):
        weights = [secrets.randbits(_ORDER_BITS) for _ in points]
        if not has_order_r(native_msm(points, weights)):
            raise VerificationError(
                "ceremony.subgroup", "A point of the second group is outside the group of order R."
            )


def random_weights(count: int) -> list[int]:
    """Return as many random numbers of 128 bits; no combination by them is zero by chance."""
    return [secrets.randbits(_WEIGHT_BITS) for _ in range(count)]


def _neighbours(points: Sequence[Any], ratio: G2) -> list[Term]:
    """e(Σ w_i P_(i+1), [1]₂) = e(Σ w_i P_i, ratio), weighted against its fellows."""
    weights = random_weights(len(points) - 1)
    upper, lower = native_msm(points[1:], weights), native_msm(points[:-1], weights)
    above, below = from_native_g1(upper), from_native_g1(lower)
    return [Term(1, above, G2_GENERATOR), Term(1, negate(below), ratio)]


def _alike(ones: Sequence[Any], twos: Sequence[Any]) -> list[Term]:
    """e(Σ w_i P_i, [1]₂) = e([1]₁, Σ w_i Q_i)."""
    weights = random_weights(len(ones))
    one, two = native_msm(ones, weights), native_msm(twos, weights)
    left, right = from_native_g1(one), from_native_g2(two)
    return [Term(1, left, G2_GENERATOR), Term(-1, G1_GENERATOR, right)]


def _g2(raw: bytes) -> Any:
    point = read_native_g2(raw)
    if point is None:
        raise VerificationError("ceremony.curve", "A point lies off the twisted curve.")
    return point


def _no_powers(why: str) -> VerificationError:
    return VerificationError("ceremony.powers", f"The ceremony's powers {why}.")


# Round 2: a circuit's keys out of the powers, and what makes anybody believe that they are that.
#
# The one who moves from round 1 to round 2 draws nothing: every point is a sum of powers. Computing
# them takes Fourier transforms over points; checking them one random combination each.

_MANY = 8  # terms from which a sum of multiples is cheaper together
_HALF = pow(2, -1, R)

_Columns = dict[int, list[tuple[int, int]]]  # wire to (row, coefficient)


@dataclass(frozen=True, slots=True)
class LagrangePoints:
    """What a domain's values are weighed with: L_i(τ), also times alpha and beta, as points."""

    tau: Sequence[Any]
    alpha: Sequence[Any]
    beta: Sequence[Any]
    tau_2: Sequence[Any]
    quotient: Sequence[Any]  # for the quotient's values on the coset

    @classmethod
    def of(cls, powers: Powers, domain: int) -> LagrangePoints:
        """Return them for a domain of at most the powers'."""
        scale = pow(domain, -1, R)
        # (A·B - C)/Z = h has degree below N - 1: its last coefficient is 0, and needs no power.
        differences = [powers.tau[k] - powers.tau[k + domain] for k in range(domain - 1)]
        differences.append(native_curve().G1() * 0)
        factors = powers_of(pow(coset_shift(domain), -1, R), domain, scale * _HALF)
        of_all = (powers.tau, powers.alpha, powers.beta, powers.tau_2)
        tau, alpha, beta, tau_2 = (_transform(p[:domain], [scale] * domain) for p in of_all)
        return cls(tau, alpha, beta, tau_2, _transform(differences, factors))


def circuit_key(powers: Powers, basis: LagrangePoints, circuit: Circuit) -> ProvingKey:
    """Return a circuit's key with delta = 1, from which round 2 starts."""
    left, right, output = _columns(circuit)
    sums = (_sums(left, basis.beta), _sums(right, basis.alpha), _sums(output, basis.tau))
    zero = native_curve().G1() * 0
    mixed = [sum((part[i] for part in sums if i in part), zero) for i in range(circuit.wires)]
    first = 1 + circuit.publics
    one, two = native_curve().G1(), G2_GENERATOR
    alpha, beta = from_native_g1(powers.alpha[0]), from_native_g2(powers.beta_2)
    inputs = tuple(from_native_g1(point) for point in mixed[:first])
    return ProvingKey(
        VerifyingKey(alpha, beta, two, two, inputs),
        powers.beta[0],
        one,
        _listed(_sums(left, basis.tau), circuit.wires),
        _listed(_sums(right, basis.tau), circuit.wires),
        _listed(_sums(right, basis.tau_2), circuit.wires),
        _listed(dict(enumerate(mixed[first:])), circuit.wires - first),
        _listed(dict(enumerate(basis.quotient)), len(basis.quotient)),
    )


def with_delta(key: ProvingKey, factor: int) -> ProvingKey:
    """Return a key whose delta is multiplied by a number: one step of round 2."""
    inverse = pow(factor, -1, R)
    delta_2 = from_native_g2(to_native_g2(key.verifying.delta) * factor)
    return replace(
        key,
        verifying=replace(key.verifying, delta=delta_2),
        delta=key.delta * factor,
        private=_times(key.private, inverse),
        quotient=_times(key.quotient, inverse),
    )


def check_key(powers: Powers, key: ProvingKey, circuit: Circuit, delta: G1) -> None:
    """Check that a key is the circuit's under checked powers and the chain's [delta]₁.

    Raises:
        VerificationError: ``ceremony.keys`` or ``ceremony.subgroup``.
    """
    domain, first, known = domain_of(circuit), 1 + circuit.publics, key.verifying
    sizes = (key.left.size, key.right.size, key.right_2.size, key.private.size, key.quotient.size)
    wires = circuit.wires
    if sizes != (wires, wires, wires, wires - first, domain) or len(known.inputs) != first:
        raise _wrong(circuit, "is another circuit's")
    # 1. What it is made from: alpha and beta of round 1, gamma = 1, delta of the chain.
    fixed = (
        (known.alpha, from_native_g1(powers.alpha[0])),
        (known.beta, from_native_g2(powers.beta_2)),
        (known.gamma, G2_GENERATOR),
        (from_native_g1(key.beta), from_native_g1(powers.beta[0])),
        (from_native_g1(key.delta), delta),
    )
    if any(found != due for found, due in fixed):
        raise _wrong(circuit, "has another alpha, beta, gamma or delta than its transcript")
    if not (key.left.points and key.right.points and key.right_2.points):
        raise _wrong(circuit, "holds no points")
    check_orders(key.right_2.points)
    # 2. A and B of every wire, in both groups: Σ w_i A_i(τ), by points and by polynomials.
    weights = random_weights(wires)
    a, b, c = _weighted_rows(circuit, weights, domain)
    for points, polynomial, base in (
        (key.left, a, powers.tau),
        (key.right, b, powers.tau),
        (key.right_2, b, powers.tau_2),
    ):
        if _sum(points, weights) != native_msm(base[:domain], polynomial):
            raise _wrong(circuit, "holds A or B of a wire that are not its rows'")
    # 3. beta·A + alpha·B + C of every wire: public ones over 1, private ones over delta.
    whole = native_msm(powers.beta[:domain], a)
    whole += native_msm(powers.alpha[:domain], b) + native_msm(powers.tau[:domain], c)
    public = native_msm([to_native_g1(point) for point in known.inputs], weights[:first])
    over = _sum(key.private, weights[first:])
    # 4. The quotient's points: Σ w_i (those of value i), over delta.
    weights = random_weights(domain)
    values = native_ring().ifft(weights, domain)
    scales = powers_of(pow(coset_shift(domain), -1, R), domain - 1, _HALF)
    low = [value * scale % R for value, scale in zip(values, scales, strict=False)]
    quotient = [*low, 0, *(-value % R for value in low)]
    over += _sum(key.quotient, weights)
    whole += native_msm(powers.tau[: len(quotient)], quotient)
    # Both over delta in one equation, and delta itself the same in both groups.
    [mark] = random_weights(1)
    terms = [
        Term(1, from_native_g1(over), known.delta),
        Term(1, from_native_g1(public), G2_GENERATOR),
        Term(1, negate(from_native_g1(whole)), G2_GENERATOR),
        Term(mark, delta, G2_GENERATOR),
        Term(-mark, G1_GENERATOR, known.delta),
    ]
    if not product_holds(terms):
        raise _wrong(circuit, "does not follow from the powers and its delta")


def _transform(points: Sequence[Any], factors: Sequence[int]) -> list[Any]:
    """Return Σ_k factors[k] ω^(-ik) points[k] for every i: a Fourier transform back."""
    count = len(points)
    scaled = native_curve().batch_mul([*points], [*factors])
    bits = count.bit_length() - 1
    held = [scaled[int(f"{i:0{bits}b}"[::-1], 2)] for i in range(count)] if bits else scaled
    width = 1
    while width < count:
        root = pow(pow(GENERATOR, (R - 1) // (2 * width), R), -1, R)
        twiddles = powers_of(root, width)
        for start in range(0, count, 2 * width):
            for i, twiddle in enumerate(twiddles, start):
                lower = held[i + width] if twiddle == 1 else held[i + width] * twiddle
                held[i], held[i + width] = held[i] + lower, held[i] - lower
        width *= 2
    return held


def _columns(circuit: Circuit) -> tuple[_Columns, _Columns, _Columns]:
    found: tuple[_Columns, _Columns, _Columns] = ({}, {}, {})
    for number, row in enumerate(circuit.rows()):
        for columns, part in zip(found, (row.a, row.b, row.c), strict=True):
            for wire, factor in part.terms.items():
                columns.setdefault(wire, []).append((number, factor))
    return found


def _sums(columns: _Columns, points: Sequence[Any]) -> dict[int, Any]:
    """Return Σ coefficient · points[row] for every wire that stands in a row."""
    found = {}
    for wire, terms in columns.items():
        if len(terms) >= _MANY:
            held = [points[row] for row, _ in terms]
            found[wire] = native_msm(held, [factor for _, factor in terms])
            continue
        total = None
        for row, factor in terms:
            # The smaller of the factor and its negative: most are plus or minus a power of two.
            minus = factor > R // 2
            size = R - factor if minus else factor
            part = points[row] if size == 1 else points[row] * size
            part = -part if minus else part
            total = part if total is None else total + part
        found[wire] = total
    return found


def _listed(points: Mapping[int, Any], size: int) -> PointList:
    numbers = sorted(number for number, point in points.items() if not point.is_zero())
    return PointList(size, numbers, [points[number] for number in numbers])


def _times(points: PointList, factor: int) -> PointList:
    return replace(
        points, points=native_curve().batch_mul([*points.points], [factor] * len(points.points))
    )


def _sum(points: PointList, weights: Sequence[int]) -> Any:
    held = [weights[number] for number in points.numbers]
    return native_msm(points.points, held) if held else native_curve().G1() * 0


def _weighted_rows(
    circuit: Circuit, weights: Sequence[int], domain: int
) -> tuple[list[int], list[int], list[int]]:
    """Return the coefficients of Σ w_i A_i(X), of B and of C."""
    values: tuple[list[int], list[int], list[int]] = ([], [], [])
    for row in circuit.rows():
        for column, part in zip(values, (row.a, row.b, row.c), strict=True):
            column.append(sum(f * weights[wire] for wire, f in part.terms.items()) % R)
    a, b, c = (
        native_ring().ifft([*column, *([0] * (domain - len(column)))], domain) for column in values
    )
    return a, b, c


def _wrong(circuit: Circuit, why: str) -> VerificationError:
    return VerificationError("ceremony.keys", f"The key of {circuit.name} {why}.")
