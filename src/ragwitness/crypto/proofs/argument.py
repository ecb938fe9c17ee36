"""One argument for all proofs of a window: committed columns obey equations in every row of H.

The equations are one polynomial F of the columns, their weights powers of a challenge κ. F is 0 on
H if and only if F = T·Z for a polynomial T (docs/design/link.md):

- The statement's own rounds: its columns → κ, and its other challenges
- Quotient: [T] → ζ
- Values: every opened column at ζ → μ
- ColumnOpening: one KZG quotient of Σ μ^i (P_i - P_i(ζ)) + what else must be 0 at ζ

Both sides know each column's factor at ζ, so one function of a statement gives prover and verifier
the same factors.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import replace_file
from ragwitness.crypto.proofs.arithmetic import (
    MOST_CHUNKS,
    POINT_BYTES,
    SCALAR_BYTES,
    TAU,
    Point,
    R,
    Shape,
    encode_point,
    encode_scalar,
    generator,
    multiexp,
    pairs_to,
    parse_point,
    parse_scalar,
    powers,
)

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.prover import SecretGroup

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
        head: Hashes of the claim; they give a failure its name.
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
    """A sum that must be 0 at a point, and the quotient that shows it.

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


def opened(
    points: Iterable[Point], values: Sequence[int], mu: int
) -> tuple[list[tuple[Point, int]], int, int]:
    """Return Σ μ^i (P_i - v_i) as terms and constant, and the next power of μ."""
    *weights, last = powers(mu, len(values) + 1)
    constant = -sum(w * v for w, v in zip(weights, values, strict=True)) % R
    return list(zip(points, weights, strict=True)), constant, last


def first_false(proofs: Sequence[Sequence[ColumnOpening]]) -> int | None:
    """Return the index of the first proof with an opening that does not hold; None for none.

    Many are one product of two pairings, with random weights of 128 bits of the verifier's own:
    false ones pass with probability 2⁻¹²⁸. Only where the product is not 1 is each checked alone.
    """
    # Σ terms + constant [1] = (τ - ζ) π, so e(Σ terms + constant [1] + ζπ, [1]₂) = e(π, [τ]₂).
    for start in range(0, len(proofs), _TOGETHER):
        group = proofs[start : start + _TOGETHER]
        if not _hold([opening for openings in group for opening in openings]):
            return next(start + i for i, openings in enumerate(group) if not _hold(openings))
    return None


def _hold(openings: Sequence[ColumnOpening]) -> bool:
    # Collect all openings under random weights.
    quotients, factors, terms, constant = [], [], [], 0
    for opening in openings:
        weight = secrets.randbits(_WEIGHT_BITS)
        terms += [(point, factor * weight) for point, factor in opening.terms]
        terms.append((opening.quotient, opening.at * weight))
        constant += weight * opening.constant
        quotients.append(opening.quotient)
        factors.append(weight)
    terms.append((generator(), constant))
    return pairs_to(multiexp(quotients, factors), multiexp(*zip(*terms, strict=True)), TAU)


# Commitments to an index, one per chunk and column (the paper's R6), and their openings.


BLINDS = 2
"""Of a column: NORM shows one value beside the commitment, once per window."""

_DAMAGES = (  # errors of numpy and zipfile for a file that is empty, cut or changed
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    zipfile.BadZipFile,
)


@dataclass(frozen=True)
class Columns:
    """The public side of an index.

    Attributes:
        chunks: Per chunk and column the commitment, 48 bytes.
    """

    chunks: tuple[tuple[bytes, ...], ...]

    def encode(self) -> bytes:
        """Return the file: chunk after chunk, column after column."""
        return b"".join(b"".join(chunk) for chunk in self.chunks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode` in hex."""
        return hashlib.sha256(self.encode()).hexdigest()

    @cached_property
    def points(self) -> tuple[tuple[Point, ...], ...]:
        """The commitments as points.

        Raises:
            VerificationError: ``columns.curve``, ``columns.encoding`` or ``columns.subgroup``.
        """
        return tuple(tuple(parse_point(p, "columns") for p in chunk) for chunk in self.chunks)

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> Columns:
        """Return what :meth:`encode` wrote, every point checked.

        Raises:
            VerificationError: ``columns.size`` (not a whole number of chunks from 1 to 1,024), or
                as :attr:`points`.
        """
        # Whole chunks only, then every point.
        size = shape.dimension * POINT_BYTES
        chunks, rest = divmod(len(data), size)
        if rest or not 1 <= chunks <= MOST_CHUNKS:
            raise VerificationError(
                "columns.size",
                f"{shape.dimension} columns take {size:,} bytes per chunk, for 1 to"
                f" {MOST_CHUNKS:,} chunks; there are {len(data):,}.",
            )
        columns = cls(tuple(tuple(cut(chunk, POINT_BYTES)) for chunk in cut(data, size)))
        columns.points  # noqa: B018  # checks each
        return columns


@dataclass(frozen=True, slots=True)
class SecretColumns:
    """An index with the openings of its commitments; never published.

    Attributes:
        rows: Integer vectors, int16, shape (capacity, dimension).
        blinds: Per chunk and column two scalars.
        public: The commitments.
    """

    rows: NDArray[np.int16] = field(repr=False)
    blinds: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)
    public: Columns

    def group(self, chunk: int, shape: Shape) -> SecretGroup:
        """Return a chunk's columns; rows behind the capacity are zeros."""
        from ragwitness.crypto.proofs.prover import SecretGroup

        return SecretGroup(_padded(self.rows, chunk, shape), self.blinds[chunk])

    def save(self, path: Path) -> None:
        """Write everything to ``path`` (.npz), readable for its owner alone.

        Raises:
            InputError: The file cannot be written.
        """
        scalars = (value for chunk in self.blinds for column in chunk for value in column)
        raw = b"".join(value.to_bytes(SCALAR_BYTES, "big") for value in scalars)
        # Scalars as bytes, since numpy has no such integers.
        shape = (len(self.blinds), self.rows.shape[1], BLINDS, SCALAR_BYTES)
        blinds = np.frombuffer(raw, np.uint8).reshape(shape)
        public = np.frombuffer(self.public.encode(), np.uint8)
        file = io.BytesIO()
        np.savez(file, rows=self.rows, blinds=blinds, public=public)
        replace_file(path, file.getvalue(), secret=True)

    @classmethod
    def load(cls, path: Path, shape: Shape) -> SecretColumns:
        """Return what :meth:`save` wrote.

        Raises:
            InputError: The file cannot be read, or is not of this shape.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in ("rows", "blinds", "public")}
            # All arrays must have this window's shape.
            public = Columns.parse(arrays["public"].tobytes(), shape)
            rows = arrays["rows"]
            chunks = len(public.chunks)
            if (
                rows.dtype != np.int16
                or rows.shape[1:] != (shape.dimension,)
                or shape.chunks(len(rows)) != chunks
                or arrays["blinds"].shape != (chunks, shape.dimension, BLINDS, SCALAR_BYTES)
            ):
                raise ValueError("another shape")
        except (*_DAMAGES, VerificationError) as error:
            raise InputError(
                f"{path} does not hold an index of this window: {error}.",
                "Restore the window's secret folder from its backup.",
            ) from error
        raw = (
            int.from_bytes(chunk, "big") for chunk in cut(arrays["blinds"].tobytes(), SCALAR_BYTES)
        )
        blinds = tuple(
            tuple(tuple(next(raw) for _ in range(BLINDS)) for _ in range(shape.dimension))
            for _ in range(chunks)
        )
        return cls(rows, blinds, public)


def check_integer_rows(rows: NDArray[np.int16], shape: Shape) -> None:
    """Refuse rows that no proof of their norms covers.

    Raises:
        InputError: They are not int16 of the shape's dimension, too many, or one is too long.
    """
    # Type and shape, number of rows, and the longest row.
    limit = MOST_CHUNKS * shape.slots
    if rows.dtype != np.int16 or rows.ndim != 2 or rows.shape[1] != shape.dimension:
        raise InputError(
            f"The rows are {rows.dtype} of shape {rows.shape}, not int16 of {shape.dimension}."
        )
    if not 1 <= len(rows) <= limit:
        raise InputError(f"An index has 1 to {limit:,} slots, not {len(rows):,}.")
    longest = int((rows.astype(np.int64) ** 2).sum(axis=1).max())
    if longest > shape.scale**2:
        raise InputError(
            f"A row has the squared norm {longest:,}; the proofs allow {shape.scale**2:,}.",
            "Quantise the vectors with the mechanism's scale.",
        )


def commit_columns(rows: NDArray[np.int16], shape: Shape) -> SecretColumns:
    """Draw blinds and commit to every column of every chunk, for one window.

    Args:
        rows: Integer vectors, shape (capacity, dimension).
        shape: Shape of the window's proofs.

    Raises:
        InputError: The rows do not fit (:func:`check_integer_rows`).
        MissingExtraError: The curve's package is not installed.
    """
    from ragwitness.crypto.proofs.prover import ceremony_domain

    check_integer_rows(rows, shape)
    # Fresh blinds for every column of every chunk.
    domain, chunks, blinds = ceremony_domain(shape.slots), [], []
    for chunk in range(shape.chunks(len(rows))):
        drawn = tuple(
            tuple(secrets.randbelow(R) for _ in range(BLINDS)) for _ in range(shape.dimension)
        )
        pairs = zip(_padded(rows, chunk, shape).T, drawn, strict=True)
        chunks.append(tuple(encode_point(domain.commit(*pair)) for pair in pairs))
        blinds.append(drawn)
    return SecretColumns(rows.copy(), tuple(blinds), Columns(tuple(chunks)))


def _padded(rows: NDArray[np.int16], chunk: int, shape: Shape) -> NDArray[np.int64]:
    block = rows[chunk * shape.slots : (chunk + 1) * shape.slots].astype(np.int64)
    return np.pad(block, ((0, shape.slots - len(block)), (0, 0)))
