"""A budget on a whole index that needs no account, no cap and no estimate of a coalition.

Changing one slot from d to d' moves the answers to queries v_1 ... v_T by <v_t, d - d'>, so

    mu^2 = sum <v_t, d - d'>^2 / sigma^2 <= 4 lambda_max(sum v_t v_t^T) / sigma^2

over the queries of *all* accounts (docs/design/odometer.md). As a
filter that refuses before a fixed mu would be passed, the bound holds for adaptive queries.

A query fits when B I - A - v v^T is positive definite, with B the largest eigenvalue allowed. The
inverse of B I - A is kept, so that the answer is one number, v^T (B I - A)^-1 v < 1, at d^2
operations a query. It only ever accepts: where it is close to 1 or has lost digits, a Cholesky
factorisation of the exact sum decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.ranges import Relation, positive, score_sensitivity, whole

if TYPE_CHECKING:
    from ragwitness.privacy.mechanism import Mechanism

# The limits of a meter: the mechanism's constants and the budget.

_LARGEST_SCALE = 1 << 20


@dataclass(frozen=True, slots=True)
class Terms:
    """Constants of a noisy retrieval, and how much its index may spend.

    Attributes:
        dimension: Dimension of the query vectors.
        scale: Query vectors are whole numbers; divided by this they have length 1 at most.
        sigma: Noise, in units of the score of such vectors.
        budget: mu that no sequence of answers may pass.
        relation: Which indices are neighbours.
        clip: Scores are held within these before the noise; None for no clipping.
        grid: Width of the grid that scores are rounded to before the noise; 0 for none.
    """

    dimension: int
    scale: int
    sigma: float
    budget: float
    relation: Relation = "replace"
    clip: tuple[float, float] | None = None
    grid: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no mechanism has.

        Raises:
            InputError: A value is outside its range.
        """
        whole("dimension", self.dimension)
        if whole("scale", self.scale) > _LARGEST_SCALE:
            raise InputError(f"scale must be at most {_LARGEST_SCALE}, not {self.scale}.")
        positive("sigma", self.sigma)
        positive("budget", self.budget)
        score_sensitivity(self.relation, self.clip, self.grid)

    @classmethod
    def of(cls, mechanism: Mechanism, budget: float, relation: Relation = "replace") -> Terms:
        """Return the terms of the integer mechanism: its noise, grid and clipping.

        Args:
            mechanism: Mechanism that answers the queries which are metered.
            budget: mu that no sequence of answers may pass.
            relation: Which indices are neighbours.
        """
        grid = (1 << mechanism.shift) / mechanism.scale**2
        low, high = mechanism.bounds
        return cls(
            mechanism.dimension,
            mechanism.scale,
            mechanism.gaussian_sigma * grid,
            budget,
            relation,
            (low * grid, high * grid),
            grid,
        )

    @property
    def reach(self) -> float:
        """Largest distance of two documents that may be in the same slot."""
        return 2.0 if self.relation == "replace" else 1.0

    def worst_mu(self, queries: int) -> float:
        """Return mu of ``queries`` answers, whatever was asked."""
        # Every answer moves one score by at most its sensitivity.
        step = score_sensitivity(self.relation, self.clip, self.grid)
        return step * math.sqrt(queries) / self.sigma

    def mu_of(self, eigenvalue: float, queries: int) -> float:
        """Return mu of answers by the largest eigenvalue of the sum of v v^T.

        sqrt(sum (|a_t| + g)^2) <= sqrt(sum a_t^2) + g sqrt(T), since rounding to a grid of width g
        adds at most g to a difference; clipping adds nothing.
        """
        # |<v, x - y>| over all answers: reach · sqrt(lambda), and one grid step of rounding each.
        spectral = self.reach * math.sqrt(max(0.0, eigenvalue)) + self.grid * math.sqrt(queries)
        return min(spectral / self.sigma, self.worst_mu(queries))

    def largest_eigenvalue(self, queries: int) -> float:
        """Return the largest eigenvalue that the budget leaves room for; negative for none."""
        room = self.budget * self.sigma - self.grid * math.sqrt(queries)
        return math.copysign((room / self.reach) ** 2, room)

    def as_json(self) -> dict[str, object]:
        """Return the fields as JSON has them."""
        fields = asdict(self)
        return {**fields, "clip": list(self.clip) if self.clip else None}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Terms:
        """Return terms from what :meth:`as_json` gave."""
        clip = fields.pop("clip")
        return cls(**fields, clip=None if clip is None else (float(clip[0]), float(clip[1])))


def worst_epsilon(
    mechanism: Mechanism, delta: float, answers: int, relation: Relation
) -> float | None:
    """Return the exact epsilon at ``delta`` of ``answers`` answers, whatever was asked.

    None where none is shown to hold.

    Raises:
        InputError: A value is outside its range.
    """
    mu = Terms.of(mechanism, 1.0, relation).worst_mu(answers)
    return mechanism.epsilon_at(delta, mu, answers)


_MAGIC = b"ragwitness odometer 1\n"
_AHEAD = 1024
"""Queries after which the inverse is made anew."""
_SURE = 1 - 1e-5
"""Below this the inverse may accept on its own."""
_DIGITS = 1e7
"""Largest condition of the inverse at which it is trusted."""
_MARGIN = 1 - 1e-9
"""Share of the room that a factorisation may use: its rounding errors are far smaller."""
_FULL = 1 << 62
"""Sums stay below, so that whole numbers of 64 bits hold them exactly."""


class Odometer:
    """Running bound on what an index has given away, and the filter that holds its budget.

    The sum of v v^T is kept in whole numbers: the order of queries and merges does not change it,
    and a verifier arrives at the same bytes. Not safe for several threads at once.

    Args:
        terms: Terms of the mechanism, with the budget.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.queries = 0
        self._gram = np.zeros((terms.dimension, terms.dimension), dtype=np.int64)
        self._pending: list[NDArray[np.float64]] = []
        self._inverse: _Inverse | None = None

    def fits(self, vector: ArrayLike) -> bool:
        """Return whether one more query stays within the budget; nothing is charged.

        Args:
            vector: Whole numbers, shape (dimension,).

        Raises:
            InputError: Another shape or type, or longer than ``scale``.
        """
        return self._fits(self._one(vector))

    def charge(self, vector: ArrayLike) -> bool:
        """Charge one query if it fits; return whether it did. A refused query costs nothing.

        Raises:
            InputError: As for :meth:`fits`.
        """
        row = self._one(vector)
        if not self._fits(row):
            return False
        self._add(row[None])
        return True

    def add(self, vectors: ArrayLike) -> None:
        """Count queries that were answered already, within the budget or not.

        Args:
            vectors: Whole numbers, shape (queries, dimension) or (dimension,).

        Raises:
            InputError: As for :meth:`fits`.
        """
        self._add(self._checked(vectors))

    def mu(self) -> float:
        """Return the bound on mu of everything answered so far."""
        # lambda, rounded up by far more than the solver's error.
        values = np.linalg.eigvalsh(self._scaled(self._sum()))
        return self.terms.mu_of(float(values[-1]) * (1 + 1e-12), self.queries)

    def epsilon(self, delta: float) -> float:
        """Return epsilon at ``delta`` of everything answered so far.

        Raises:
            InputError: delta is outside its range.
        """
        return epsilon_at(delta, self.mu())

    def to_bytes(self) -> bytes:
        """Return the whole state; equal meters give equal bytes on every machine."""
        head = {**self.terms.as_json(), "queries": self.queries}
        text = json.dumps(head, sort_keys=True, allow_nan=False).encode()
        # The sum is symmetric: its upper half is all of it.
        upper = self._sum()[np.triu_indices(self.terms.dimension)]
        state = _MAGIC + text + b"\n" + upper.astype("<i8").tobytes()
        return state + sha256(state).digest()

    @classmethod
    def from_bytes(cls, state: bytes) -> Odometer:
        """Return a meter from what :meth:`to_bytes` gave.

        Raises:
            InputError: It is something else, or damaged.
        """
        state, digest = state[:-32], state[-32:]
        if not state.startswith(_MAGIC) or sha256(state).digest() != digest:
            raise InputError("This is not the state of a meter, or it is damaged.")
        head, _, body = state.removeprefix(_MAGIC).partition(b"\n")
        fields, upper = json.loads(head), np.frombuffer(body, "<i8").astype(np.int64)
        queries = fields.pop("queries")
        terms = Terms.from_json(fields)
        size = terms.dimension
        meter = cls(terms)
        meter._gram[np.triu_indices(size)] = upper
        meter._gram = np.triu(meter._gram) + np.triu(meter._gram, 1).T
        meter.queries = queries
        return meter

    def _one(self, vector: ArrayLike) -> NDArray[np.float64]:
        rows = self._checked(vector)
        if len(rows) != 1:
            raise InputError(f"One query at a time is charged, not {len(rows)}.")
        return np.asarray(rows[0])

    def _checked(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Return vectors as rows of whole numbers in doubles, which hold them exactly."""
        rows = np.atleast_2d(np.asarray(vectors))
        if rows.ndim != 2 or rows.shape[1] != self.terms.dimension:
            raise InputError(
                f"A query vector has {self.terms.dimension} numbers, not shape {np.shape(vectors)}."
            )
        if rows.dtype.kind not in "iu":
            raise InputError(
                f"Query vectors are whole numbers here, not {rows.dtype}.",
                "Meter the vectors that the mechanism scores, after they are quantised.",
            )
        if rows.size and max(int(rows.max()), -int(rows.min())) > self.terms.scale:
            raise InputError(f"A query vector is longer than its scale, {self.terms.scale}.")
        exact = rows.astype(np.float64)
        if ((exact * exact).sum(axis=1) > self.terms.scale**2).any():
            raise InputError(f"A query vector is longer than its scale, {self.terms.scale}.")
        return exact

    def _fits(self, row: NDArray[np.float64]) -> bool:
        count = self.queries + 1
        # 1. Sums stay whole numbers of 64 bits. 2. Few queries fit whatever was asked.
        if count * self.terms.scale**2 >= _FULL:
            return False
        if self.terms.worst_mu(count) <= self.terms.budget * _MARGIN:
            return True
        unit = row / self.terms.scale
        # 3. The kept inverse accepts what fits for certain: v^T (B I - A)^-1 v < 1.
        if self._inverse is None:
            self._inverse = self._fresh()
        if self._inverse is not None and self._inverse.accepts(unit):
            return True
        # 4. Close to the limit a factorisation decides: B I - A - v v^T is positive definite.
        total = self._scaled(self._sum()) + np.outer(unit, unit)
        return _factor(self.terms.largest_eigenvalue(count), total) is not None

    def _add(self, rows: NDArray[np.float64]) -> None:
        if (self.queries + len(rows)) * self.terms.scale**2 >= _FULL:
            raise InputError("The meter is full.", "Open a new window.")
        self.queries += len(rows)
        for start in range(0, len(rows), _AHEAD):
            self._pending.append(rows[start : start + _AHEAD])
        if self._inverse is not None:
            updated = len(rows) == 1 and self._inverse.add(rows[0] / self.terms.scale)
            self._inverse = self._inverse if updated else None
        if len(self._pending) >= 256:
            self._sum()

    def _sum(self) -> NDArray[np.int64]:
        """Return the exact sum of v v^T: doubles hold each part of it without rounding."""
        for start in range(0, len(self._pending), 256):
            for block in _blocks(self._pending[start : start + 256]):
                self._gram += (block.T @ block).astype(np.int64)
        self._pending.clear()
        return self._gram

    def _scaled(self, gram: NDArray[np.int64]) -> NDArray[np.float64]:
        return gram / float(self.terms.scale**2)

    def _fresh(self) -> _Inverse | None:
        # For the limit that the coming queries will have: the inverse never accepts too much.
        limit = self.terms.largest_eigenvalue(self.queries + _AHEAD)
        factor = _factor(limit, self._scaled(self._sum()))
        return None if factor is None else _Inverse(factor, limit)


class _Inverse:
    """The inverse of B I - A, kept up to date by Sherman and Morrison's formula."""

    def __init__(self, factor: NDArray[np.float64], limit: float) -> None:
        from scipy.linalg import blas, lapack

        self._matrix, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        self._trace = float(np.trace(self._matrix))
        self._limit, self._left = limit, _AHEAD
        self._times: Callable[..., Any] = blas.dsymv
        self._plus: Callable[..., Any] = blas.dsyr

    def accepts(self, unit: NDArray[np.float64]) -> bool:
        """Return whether one more vector fits for certain."""
        return self._sound and float(unit @ self._image(unit)) < _SURE

    def add(self, unit: NDArray[np.float64]) -> bool:
        """Take one more vector in; return whether the inverse can still be used after it."""
        # Sherman and Morrison: M + (M v)(M v)^T / (1 - v^T M v).
        image = self._image(unit)
        room = 1 - float(unit @ image)
        self._left -= 1
        if not (self._left and self._sound and room > 1e-3):
            return False
        self._matrix = self._plus(1 / room, image, a=self._matrix, lower=1, overwrite_a=1)
        self._trace += float(image @ image) / room
        return self._sound

    @property
    def _sound(self) -> bool:
        """Whether the condition, at most the trace times B, leaves enough digits."""
        return self._trace * self._limit < _DIGITS

    def _image(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._times(1.0, self._matrix, unit, lower=1))


def _factor(limit: float, total: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a Cholesky factor of ``limit`` I - ``total`` with a margin; None if there is none."""
    from scipy.linalg import lapack

    if limit <= 0:
        return None
    gap = np.negative(total, order="F")
    gap[np.diag_indices_from(gap)] += limit * _MARGIN
    factor, info = lapack.dpotrf(gap, lower=1, overwrite_a=1)
    return factor if info == 0 else None


def _blocks(parts: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Join single rows, so that one product adds many; keep what is large as it is."""
    small = [block for block in parts if len(block) == 1]
    large = [block for block in parts if len(block) > 1]
    return [*([np.concatenate(small)] if small else []), *large]
