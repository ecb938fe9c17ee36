"""The prover's side of the argument: T = F / Z, and the quotient of an opening."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib.resources import files
from itertools import zip_longest
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.crypto.proofs.arithmetic import (
    GENERATOR,
    POINT_BYTES,
    Point,
    R,
    combine,
    curve,
    dot,
    encode_point,
    infinity,
    interpolate,
    inverses,
    multiexp,
    powers,
    roots,
    scalar,
    transform,
    vanishing,
)


@dataclass(frozen=True, slots=True, eq=False)
class SecretGroup:
    """Secret columns of the prover.

    Attributes:
        values: On H, shape (n, columns): small integers, or Python's own modulo R.
        blinds: Of each column, β₀ and β₁; or β₀ alone; of the norms' running sum three.
    """

    values: NDArray[Any] = field(repr=False)
    blinds: Sequence[Sequence[int]] = field(repr=False)

    def commit(self, domain: RootsDomain) -> list[Point]:
        """Return all commitments."""
        pairs = zip(self.values.T, self.blinds, strict=True)
        return [domain.commit(list(c) if c.dtype == object else c, b) for c, b in pairs]

    def at(self, basis: Sequence[int], vanish: int, point: int) -> list[int]:
        """Return every column's value at a point, given L_j and Z there."""
        sums = weighted(self.values.T, basis)
        pairs = zip(sums, self.blinds, strict=True)
        return [(x + vanish * dot(b, powers(point, len(b)))) % R for x, b in pairs]

    def summed(self, weights: Sequence[int]) -> SecretColumn:
        """Return the weighted sum of all columns."""
        rows = zip_longest(*self.blinds, fillvalue=0)
        return SecretColumn(weighted(self.values, weights), [dot(weights, row) for row in rows])


@dataclass(frozen=True, slots=True, eq=False)
class SecretColumn:
    """One column of any numbers: values on H and blinds, modulo R."""

    values: list[int] = field(repr=False)
    blinds: list[int] = field(repr=False)

    @property
    def group(self) -> SecretGroup:
        """The group of this column alone."""
        return SecretGroup(np.array([self.values], object).T, [self.blinds])

    @classmethod
    def total(cls, slots: int, parts: Sequence[tuple[int, SecretColumn]]) -> SecretColumn:
        """Return Σ factor · column."""
        values, blinds = [0] * slots, [0, 0]
        for factor, column in parts:
            values = [(v + factor * x) % R for v, x in zip(values, column.values, strict=True)]
            blinds = [
                (v + factor * x) % R for v, x in zip_longest(blinds, column.blinds, fillvalue=0)
            ]
        return cls(values, blinds)


def weighted(matrix: NDArray[Any], weights: Sequence[int]) -> list[int]:
    """Return matrix · weights modulo R."""
    if matrix.dtype == object:
        return [dot(row, weights) for row in matrix.tolist()]
    return combine(matrix, weights)


class Quotient:
    """F = Σ squares + Σ products + rest, collected part by part, and T = F / Z.

    With a column P = p + βZ: P² = p² + 2pβZ + β²Z². The parts without blinds are summed on a coset
    of H, where Z is a constant; the others are multiples of Z already.
    """

    def __init__(self, domain: RootsDomain) -> None:
        self._domain = domain
        self._coset = [0] * domain.slots
        self._beside = ([0] * domain.slots, [0] * domain.slots)  # on H, of X⁰·Z and X¹·Z
        self._ends = [0, 0, 0]  # of Z²
        self._rest: list[tuple[int, SecretColumn]] = []

    def squares(self, group: SecretGroup, weights: Sequence[int]) -> None:
        """Add Σ weight · P²."""
        for weight, values in zip(weights, self._domain.extend(group.values), strict=True):
            pairs = zip(self._coset, values, strict=True)
            self._coset = [total + x * x * weight for total, x in pairs]
        # The parts with blinds are multiples of Z and Z².
        self._blind(group, group.values, [2 * w for w in weights])
        for weight, blinds in zip(weights, group.blinds, strict=True):
            low, high = (*blinds, 0)[:2]
            for i, value in enumerate((low * low, 2 * low * high, high * high)):
                self._ends[i] = (self._ends[i] + weight * value) % R

    def products(self, left: NDArray[Any], group: SecretGroup, weights: Sequence[int]) -> None:
        """Add Σ weight · L · P, L public polynomials by their values on H."""
        extended = zip(self._domain.extend(left), self._domain.extend(group.values), strict=True)
        for weight, (public, secret) in zip(weights, extended, strict=True):
            rows = zip(self._coset, public, secret, strict=True)
            self._coset = [total + x * y * weight for total, x, y in rows]
        self._blind(group, left, weights)

    def add(self, factor: int, column: SecretColumn) -> None:
        """Add factor · P."""
        self._rest.append((factor, column))

    def _blind(self, group: SecretGroup, matrix: NDArray[Any], weights: Sequence[int]) -> None:
        for sums, row in zip(self._beside, zip_longest(*group.blinds, fillvalue=0), strict=False):
            scaled = [w * x % R for w, x in zip(weights, row, strict=True)]
            sums[:] = [(h + x) % R for h, x in zip(sums, weighted(matrix, scaled), strict=True)]

    def coefficients(self) -> list[int]:
        """Return T's n + 3 coefficients; a false F has no T, and gives some polynomial."""
        domain, slots = self._domain, self._domain.slots
        rest = SecretColumn.total(slots, self._rest)
        [extended] = domain.extend(rest.group.values)
        # On the coset Z is a constant.
        share = pow(vanishing(slots, GENERATOR), -1, R)
        pairs = zip(self._coset, extended, strict=True)
        result = [*domain.from_coset([(x + y) * share % R for x, y in pairs]), 0, 0, 0]
        # The factors of Z: of degree n at most, and the blinds of the rest.
        for i, value in enumerate(rest.blinds):
            result[i] += value
        for shift, values in enumerate(self._beside):
            for i, value in enumerate(interpolate(values) if any(values) else (), shift):
                result[i] += value
        for i, value in enumerate(self._ends):  # times Z = Xⁿ - 1
            result[slots + i] += value
            result[i] -= value
        return [x % R for x in result]


def opening_quotient(
    domain: RootsDomain, column: SecretColumn, factor: int, quotient: Sequence[int], point: int
) -> list[int]:
    """Return the coefficients of (P + factor · T - their value) / (X - point)."""
    slots = domain.slots
    # The polynomial with its blinds, plus the factor times T.
    total = [*interpolate(column.values), 0, 0, 0]
    for i, blind in enumerate(column.blinds):
        total[slots + i] += blind
        total[i] -= blind
    for i, value in enumerate(quotient):
        total[i] += factor * value
    result, value = [0] * (len(total) - 1), 0
    for i in range(len(total) - 1, 0, -1):
        value = (value * point + total[i]) % R
        result[i - 1] = value
    return result


# The prover's side of committed columns: polynomials by their values on H, and their commitments.
#
# A column is the polynomial of degree below n with given values on H, the n-th roots of unity, plus
# blinds (β₀ + β₁X)·Z, which are 0 there: Z(X) = Xⁿ - 1. Its commitment is [P(τ)]₁.


# The file has MOST_SLOTS + 3 powers: T has degree n + 2.
_DIGEST = "f504c5e49ea297d870ece8e370dd1e5de75ec4eb13eba5aec4fcc05be8af5250"
_BLOCK = 16  # columns that are extended at a time
_TABLED = 8  # points whose sums a table holds
_SHORT = 1 << 16  # below it pieces of 16 bits are exact in floats, else pieces of 8
_DRAW_BYTES = 48  # modulo R: a bias below 2⁻¹²⁸


def draw_scalars(count: int) -> list[int]:
    """Return secret uniform scalars."""
    return [int.from_bytes(secrets.token_bytes(_DRAW_BYTES), "big") % R for _ in range(count)]


@cache
def ceremony_powers() -> tuple[bytes, ...]:
    """Return [1], [τ], …, [τ^2050], encoded, from the file in this package.

    Raises:
        InputError: The file is not the one that this version was made with.
    """
    data = files("ragwitness.crypto.proofs").joinpath("powers.bin").read_bytes()
    if hashlib.sha256(data).hexdigest() != _DIGEST:
        raise InputError(
            "The ceremony's powers in this installation are damaged.", "Install ragwitness again."
        )
    return tuple(data[i : i + POINT_BYTES] for i in range(0, len(data), POINT_BYTES))


@dataclass(frozen=True, slots=True, eq=False)
class RootsDomain:
    """The ceremony's powers, and the commitments that follow from them for n roots of unity.

    Attributes:
        slots: n.
        powers: [1], [τ], …
        lagrange: [L_j] for every root.
        zero: [Z], [X·Z], [X²·Z]: the factors of blinds.
        tables: The 256 sums of each eight of ``lagrange``.
    """

    slots: int
    powers: tuple[Point, ...]
    lagrange: tuple[Point, ...]
    zero: tuple[Point, ...]
    tables: tuple[tuple[Point, ...], ...]

    @classmethod
    def of(cls, slots: int, held: Sequence[Point]) -> RootsDomain:
        """Return the domain over given powers, more than ``slots`` + 2 of them."""
        # Lagrange's basis is the inverse Fourier transform of the powers, over points.
        share, back = pow(slots, -1, R), (1, *roots(slots)[:0:-1])
        scaled = [p * scalar(share) for p in held[:slots]]
        read = curve().G1Point.from_compressed_bytes_unchecked
        turned = _turned(scaled, [scalar(w) for w in back])
        basis = tuple(read(encode_point(p)) for p in turned)  # as affine points
        zero = tuple(held[slots + i] - held[i] for i in (0, 1, 2))
        # Tables of sums make columns of bits fast.
        tables = []
        for start in range(0, slots, _TABLED):
            sums = [infinity()]
            for point in basis[start : start + _TABLED]:
                sums += [held_sum + point for held_sum in sums]
            tables.append(tuple(sums))
        return cls(slots, tuple(held[: slots + 3]), basis, zero, tuple(tables))

    def commit(self, values: NDArray[np.integer] | Sequence[int], blinds: Sequence[int]) -> Point:
        """Return the commitment to a column.

        Args:
            values: On H; small integers (an array of machine numbers) are several times as fast.
            blinds: None to three, β₀ first.
        """
        pairs = zip(self.zero, blinds, strict=False)
        hidden = reduce(add, (point * scalar(blind) for point, blind in pairs), infinity())
        if isinstance(values, np.ndarray) and values.dtype != object:
            return self._commit_small(values.astype(np.int64)) + hidden
        return multiexp(self.lagrange, values) + hidden

    def commit_coefficients(self, coefficients: Sequence[int]) -> Point:
        """Return the commitment to a polynomial, the constant coefficient first."""
        return multiexp(self.powers[: len(coefficients)], coefficients)

    def _commit_small(self, values: NDArray[np.int64]) -> Point:
        # Σ v_j L_j = Σ (v_j - least) L_j + least [1], as Σ L_j = 1; then bit by bit.
        least = min(int(values.min()), 0)
        shifted, total = values - least, infinity()
        for bit in range(int(shifted.max()).bit_length() - 1, -1, -1):
            picks = np.packbits((shifted >> bit) & 1, bitorder="little").tobytes()
            chosen = (sums[pick] for sums, pick in zip(self.tables, picks, strict=False) if pick)
            total = reduce(add, chosen, total + total)
        return total + self.powers[0] * scalar(least) if least else total

    def extend(self, matrix: NDArray[Any]) -> Iterator[list[int]]:
        """Yield each column's values on the coset 7·H, modulo R or below 2³²⁰, without blinds.

        Args:
            matrix: Shape (n, columns), small integers or Python's own modulo R.
        """
        if matrix.dtype == object:
            for column in matrix.T.tolist():
                turned = map(int.__mul__, interpolate(column), powers(GENERATOR, self.slots))
                yield transform([x % R for x in turned], roots(self.slots))
            return
        # L_j(7w^k) = Z(7) / (n (7w^(k-j) - 1)): a cyclic convolution with one fixed vector. It is
        # taken by floating-point FFT of the vector's pieces, and is exact: at most 2⁴³ each.
        least = min(int(matrix.min()), 0)
        shifted = (matrix - least).astype(np.float64)
        width = 1 if shifted.max() >= _SHORT else 2
        kernel = _kernel_spectrum(self.slots, width)
        size = len(kernel) * width + 8
        for start in range(0, matrix.shape[1], _BLOCK):
            block = np.fft.rfft(shifted[:, start : start + _BLOCK].T)
            sums = np.rint(np.fft.irfft(block[:, None] * kernel, self.slots)).astype(np.int64)
            out = np.zeros((len(block), self.slots, size), np.uint8)
            carry = np.zeros((len(block), self.slots), np.int64)
            for i in range(len(kernel)):
                carry += sums[:, i]
                for byte in range(width):
                    out[:, :, i * width + byte] = (carry & 255).astype(np.uint8)
                    carry >>= 8
            out[:, :, -8:] = carry[:, :, None].astype("<i8").view(np.uint8)
            for data in map(bytes, out.reshape(len(block), -1)):
                starts = range(0, len(data), size)
                yield [int.from_bytes(data[i : i + size], "little") + least for i in starts]

    def from_coset(self, values: Sequence[int]) -> list[int]:
        """Return the coefficients of the polynomial of degree below n with these values on 7·H."""
        scale = powers(pow(GENERATOR, -1, R), self.slots)
        return [x * s % R for x, s in zip(interpolate(values), scale, strict=True)]


@cache
def ceremony_domain(slots: int) -> RootsDomain:
    """Return the domain over the ceremony's powers; it takes one to two seconds, once.

    Raises:
        InputError: The powers' file is damaged.
        MissingExtraError: The curve's package is not installed.
    """
    read = curve().G1Point.from_compressed_bytes_unchecked  # the digest says which they are
    return RootsDomain.of(slots, [read(data) for data in ceremony_powers()[: slots + 3]])


def _turned(points: Sequence[Point], base: Sequence[object]) -> list[Point]:
    """Return the Fourier transform of points."""
    if len(points) == 1:
        return list(points)
    even, odd = (_turned(points[i::2], base[::2]) for i in (0, 1))
    turned = [odd[0], *(y * w for y, w in zip(odd[1:], base[1:], strict=False))]
    low = [x + y for x, y in zip(even, turned, strict=True)]
    return low + [x - y for x, y in zip(even, turned, strict=True)]


@cache
def _kernel_spectrum(slots: int, width: int) -> NDArray[np.complex128]:
    """Return the spectra of the pieces, ``width`` bytes each, of what :meth:`extend` convolves."""
    factor = vanishing(slots, GENERATOR) * pow(slots, -1, R) % R
    kernel = inverses([GENERATOR * w - 1 for w in roots(slots)], factor)
    data = b"".join(value.to_bytes(32, "little") for value in kernel)
    pieces = np.frombuffer(data, f"<u{width}").reshape(slots, -1)
    return np.fft.rfft(pieces.T.astype(np.float64))
