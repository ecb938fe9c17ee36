"""Inputs of the paper's circuits: its commitments and its noise, in plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.circuits.paper import (
    NOISE_BITS,
    coordinate_bits,
    depth_of,
    noise_step,
    score_bits,
)
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.gadgets import pack_values
from ragwitness.crypto.proofs.poseidon import poseidon
from ragwitness.crypto.proofs.shape import Shape

__all__ = ["naive_inputs", "paper_inputs", "paper_noise"]

_EACH = 4

Inputs = Mapping[str, Sequence[int]]


def paper_noise(shape: Shape, seed: int, record: int) -> NDArray[np.int64]:
    """Return the noise of every slot that the circuits derive, shape (slots,)."""
    key = poseidon([seed, record])
    mask = (1 << NOISE_BITS) - 1
    sums = [
        (poseidon([key, slot // _EACH]) >> NOISE_BITS * (slot % _EACH) & mask).bit_count()
        for slot in range(shape.slots)
    ]
    return noise_step(shape) * (np.array(sums, np.int64) - NOISE_BITS // 2)


def paper_inputs(
    shape: Shape,
    rows: NDArray[np.int16],
    query: NDArray[np.int16],
    seed: int,
    record: int,
    scores: NDArray[np.int64] | None = None,
) -> Inputs:
    """Return the inputs of :func:`~.paper.paper_circuit`.

    Args:
        shape: Of the circuit.
        rows: The committed index, shape (slots, dimension).
        query: Shape (dimension,).
        seed: The provider's secret, in [0, R).
        record: What the noise belongs to, in [0, R).
        scores: What the provider says they are, shape (slots,); the true ones by default.
    """
    true = rows.astype(np.int64) @ query.astype(np.int64)
    said = true if scores is None else scores
    chosen, shared = _selected(shape, said, query, seed, record)
    offset = (said + shape.scale**2).tolist()
    levels = _tree(shape, rows)
    opened = (rows[chosen].astype(np.int64) + shape.scale).ravel().tolist()
    return shared | {
        "root": levels[-1],
        "scores": offset,
        "scores_hash": [poseidon(pack_values(offset, score_bits(shape)))],
        "rows": opened,
        "paths": [level[(i >> at) ^ 1] for i in chosen for at, level in enumerate(levels[:-1])],
    }


def naive_inputs(
    shape: Shape, rows: NDArray[np.int16], query: NDArray[np.int16], seed: int, record: int
) -> Inputs:
    """Return the inputs of :func:`~.paper.naive_circuit`; arguments as of :func:`paper_inputs`."""
    true = rows.astype(np.int64) @ query.astype(np.int64)
    _, shared = _selected(shape, true, query, seed, record)
    entries = (rows.astype(np.int64) + shape.scale).ravel().tolist()
    return shared | {"root": _tree(shape, rows)[-1], "rows": entries}


def _selected(
    shape: Shape, scores: NDArray[np.int64], query: NDArray[np.int16], seed: int, record: int
) -> tuple[list[int], dict[str, Sequence[int]]]:
    """The winners under these scores, and what both circuits are given."""
    noisy = scores + paper_noise(shape, seed, record)
    chosen = np.argsort(-noisy, kind="stable")[: shape.top]
    selectors = np.zeros(shape.slots, np.int64)
    selectors[chosen] = 1
    return chosen.tolist(), {
        "seed": [seed],
        "seed_hash": [poseidon([seed])],
        "record": [record],
        "ids": chosen.tolist(),
        "query": [value % R for value in query.tolist()],
        "threshold": [int(noisy[chosen[-1]]) % R],
        "chosen": selectors.tolist(),
    }


def _tree(shape: Shape, rows: NDArray[np.int16]) -> list[list[int]]:
    """Levels of the tree over the rows, leaves first; places without a row are 0."""
    entries = (rows.astype(np.int64) + shape.scale).tolist()
    level = [poseidon(pack_values(row, coordinate_bits(shape))) for row in entries]
    level += [0] * (2 ** depth_of(shape) - len(level))
    levels = [level]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [poseidon(pair) for pair in pairs]
        levels.append(level)
    return levels
