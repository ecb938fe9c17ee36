"""The provider's side of committed columns: the rows, and the blinds that hide them."""

from __future__ import annotations

import io
import secrets
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.native import from_native_g1, native_msm
from ragwitness.crypto.proofs.opening import MOST_CHUNKS, Columns
from ragwitness.crypto.proofs.points import SCALAR_BYTES, R, encode_g1
from ragwitness.crypto.proofs.setup import MASKS, Shape
from ragwitness.errors import InputError, VerificationError
from ragwitness.kit.files import replace_file

_DAMAGES = (  # what numpy and zipfile raise for a file that is empty, cut or changed
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
    zipfile.BadZipFile,
)
_DRAW_BYTES = 48  # modulo R: a bias below 2⁻¹²⁹


@dataclass(frozen=True, slots=True)
class SecretColumns:
    """An index with what opens its commitments; never published.

    Attributes:
        rows: Integer vectors, int16, shape (capacity, dimension).
        blinds: Per chunk and column the three coefficients behind the slots, each in [0, R).
        public: The commitments.
    """

    rows: NDArray[np.int16] = field(repr=False)
    blinds: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)
    public: Columns

    def chunk_rows(self, chunk: int) -> NDArray[np.int64]:
        """Return a chunk's rows as 64-bit integers, shape (slots, dimension)."""
        slots = len(self.rows) // len(self.blinds)
        return self.rows[chunk * slots : (chunk + 1) * slots].astype(np.int64)

    def save(self, path: Path) -> None:
        """Write everything to ``path`` (.npz), readable for its owner alone.

        Raises:
            InputError: The file cannot be written.
        """
        raw = b"".join(
            value.to_bytes(SCALAR_BYTES, "big")
            for chunk in self.blinds
            for column in chunk
            for value in column
        )
        shape = (len(self.blinds), self.rows.shape[1], MASKS, SCALAR_BYTES)
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
        hint = "Commit the index again: ragwitness commit."
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                rows, raw, public = held["rows"], held["blinds"], held["public"].tobytes()
            columns = Columns.parse(public, shape)
        except (*_DAMAGES, VerificationError) as error:
            raise InputError(f"{path} holds no committed columns: {error}.", hint) from error
        check_integer_rows(rows, shape)
        due = (len(columns.chunks), shape.dimension, MASKS, SCALAR_BYTES)
        if raw.shape != due or raw.dtype != np.uint8 or len(rows) != due[0] * shape.slots:
            raise InputError(f"{path} holds the columns of another shape.", hint)
        blinds = tuple(
            tuple(tuple(int.from_bytes(v.tobytes(), "big") for v in column) for column in chunk)
            for chunk in raw
        )
        return cls(rows, blinds, columns)


def draw_scalar() -> int:
    """Return a fresh secret scalar, uniform in [0, R)."""
    return int.from_bytes(secrets.token_bytes(_DRAW_BYTES), "big") % R


def check_integer_rows(rows: object, shape: Shape) -> None:
    """Check type, sizes and norms of integer vectors.

    Raises:
        InputError: They are not int16 of shape (capacity, dimension), the capacity is not a
            multiple of the chunks' slots, or a norm is above the scale.
    """
    if not isinstance(rows, np.ndarray) or rows.dtype != np.int16 or rows.ndim != 2:
        raise InputError("Rows to commit to are a two-dimensional array of int16.")
    if rows.shape[1] != shape.dimension:
        raise InputError(
            f"The rows have {rows.shape[1]} columns; the setup is for {shape.dimension}.",
            "Make a setup for this dimension: ragwitness setup.",
        )
    chunks, rest = divmod(len(rows), shape.slots)
    if rest or not 1 <= chunks <= MOST_CHUNKS:
        raise InputError(
            f"{len(rows):,} slots are not 1 to {MOST_CHUNKS:,} whole chunks of {shape.slots:,}.",
            "Choose a capacity that is a multiple of the setup's slots; empty slots are rows of 0.",
        )
    wide = rows.astype(np.int64)
    most = int(np.einsum("ij,ij->i", wide, wide).max())
    if most > shape.scale**2:
        raise InputError(
            f"A row has the squared norm {most:,}; the setup allows {shape.scale**2:,}.",
            "Quantise the vectors with the mechanism's scale.",
        )


def commit_rows(rows: NDArray[np.int16], shape: Shape, powers: Sequence[Any]) -> SecretColumns:
    """Draw blinds and commit to every column of every chunk.

    Args:
        rows: Integer vectors, shape (capacity, dimension).
        shape: Shape of the setup.
        powers: The setup's powers as zksnake's points, D of them.

    Raises:
        InputError: The rows do not fit (:func:`check_integer_rows`).
        MissingExtraError: zksnake is not installed.
    """
    check_integer_rows(rows, shape)
    chunks, blinds = [], []
    # Per chunk: three fresh blinds per column, then the commitment to slots and blinds.
    ones = _Offset(powers, shape)
    for start in range(0, len(rows), shape.slots):
        part = rows[start : start + shape.slots]
        drawn = tuple(tuple(draw_scalar() for _ in range(MASKS)) for _ in range(shape.dimension))
        chunks.append(tuple(ones.commit(part[:, c], drawn[c]) for c in range(shape.dimension)))
        blinds.append(drawn)
    return SecretColumns(rows.copy(), tuple(blinds), Columns(tuple(chunks)))


class _Offset:
    """Commits to small signed numbers through small positive ones, six times faster.

    Σ v_j P_j = Σ (v_j + S) P_j - S Σ P_j, and Σ P_j is the same for all columns.
    """

    def __init__(self, powers: Sequence[Any], shape: Shape) -> None:
        self._scale = shape.scale
        self._slots = list(powers[: shape.slots])
        total = native_msm(self._slots, [1] * shape.slots)
        self._rest = [*powers[shape.slots :], total]

    def commit(self, column: NDArray[np.int16], blinds: Sequence[int]) -> bytes:
        # Slots shifted by S are small and positive; the blinds are long, and -S Σ P_j joins them.
        small = (column.astype(np.int64) + self._scale).tolist()
        point = native_msm(self._slots, small)
        point += native_msm(self._rest, [*blinds, -self._scale])
        return encode_g1(from_native_g1(point))
