"""The collusion paper's two circuits (§5.8), to be measured beside LINK; nothing else uses them.

**The optimised one is unsound.** The provider commits to scores of its own choice, and only the
winners' are compared with the index. Whoever commits to low scores for all but the worst documents
proves that these are the best; a test does so.

Both are built as cheaply as their text allows, in our field and with our gadgets:

- Noise is a sum of 62 fair bits, times a factor: no sampler of a discrete Gaussian is as cheap.
  One strict decomposition of a Poseidon value gives the bits of four documents.
- The winners are a set: their order, and which of equal scores wins, is left open.
- Nothing bounds the norm of a row, on which the paper's sensitivity rests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.gadgets import (
    boolean,
    hash_inputs,
    pack,
    pack_values,
    poseidon,
    power_sums,
    ranged,
)
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.r1cs import Circuit, Linear, Wires, evaluate, total, weighted
from ragwitness.crypto.proofs.setup import Shape

NOISE_BITS = 62
"""Fair bits in one document's noise: four times as many fit into a scalar."""

_EACH = 4  # documents whose noise one Poseidon value gives
_FIELD_BITS = R.bit_length()


def noise_step(shape: Shape) -> int:
    """Return the factor by which a sum of bits is spread to the shape's reach."""
    return max(1, 2 * shape.reach // NOISE_BITS)


def coordinate_bits(shape: Shape) -> int:
    """Bits of a coordinate plus the scale."""
    return (2 * shape.scale).bit_length()


def score_bits(shape: Shape) -> int:
    """Bits of a score plus the scale's square."""
    return (2 * shape.scale**2).bit_length()


def depth_of(shape: Shape) -> int:
    """Levels of the tree over the rows."""
    return (shape.slots - 1).bit_length()


def paper_circuit(shape: Shape) -> Circuit:
    """Return the optimised circuit: (i) noise, (ii) top K, (iii) the winners' scores (§5.8).

    Inputs: :func:`paper_inputs`.
    """
    circuit = Circuit("ragwitness/paper-optimised/v1")
    seed_hash, record, scores_hash, root = (
        circuit.public(name)[0] for name in ("seed_hash", "record", "scores_hash", "root")
    )
    ids = circuit.public("ids", shape.top)
    query = circuit.public("query", shape.dimension)
    offset = circuit.private("scores", shape.slots)
    rows = circuit.private("rows", shape.top * shape.dimension)
    paths = circuit.private("paths", shape.top * depth_of(shape))
    for score in offset:
        ranged(circuit, score, score_bits(shape), "a score is in range")
    packed = hash_inputs(circuit, pack(offset, score_bits(shape)), "the scores' commitment")
    circuit.zero(packed - scores_hash, "the scores are those committed to")
    noise = _noise(circuit, shape, seed_hash, record)
    scores = [score - shape.scale**2 for score in offset]
    chosen = _selection(circuit, shape, scores, noise, ids)
    found = []
    for i, number in enumerate(ids):
        row = rows[i * shape.dimension : (i + 1) * shape.dimension]
        path = paths[i * depth_of(shape) : (i + 1) * depth_of(shape)]
        _opened(circuit, _leaf(circuit, shape, row), number, path, root)
        found.append(_inner(circuit, shape, row, query))
    _same_scores(circuit, shape, chosen, scores, ids, found)
    return circuit


def naive_circuit(shape: Shape) -> Circuit:
    """Return the naive circuit: every score is computed inside, from a row of the committed index.

    Inputs: :func:`naive_inputs`.
    """
    circuit = Circuit("ragwitness/paper-naive/v1")
    seed_hash, record, root = (circuit.public(name)[0] for name in ("seed_hash", "record", "root"))
    ids = circuit.public("ids", shape.top)
    query = circuit.public("query", shape.dimension)
    entries = circuit.private("rows", shape.slots * shape.dimension)
    width = shape.dimension
    rows = [entries[i * width : (i + 1) * width] for i in range(shape.slots)]
    level = [_leaf(circuit, shape, row) for row in rows]
    level += [Linear({})] * (2 ** depth_of(shape) - len(level))
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [hash_inputs(circuit, pair, "a node of the index") for pair in pairs]
    circuit.zero(level[0] - root, "the rows are those committed to")
    scores = [_inner(circuit, shape, row, query) for row in rows]
    _selection(circuit, shape, scores, _noise(circuit, shape, seed_hash, record), ids)
    return circuit


def _noise(circuit: Circuit, shape: Shape, seed_hash: Linear, record: Linear) -> list[Linear]:
    """(i), A2: noise of every document from the committed seed and the record."""
    [seed] = circuit.private("seed")
    circuit.zero(hash_inputs(circuit, [seed], "the seed's commitment") - seed_hash, "the seed")
    key = hash_inputs(circuit, [seed, record], "the record's key")
    bits: list[Linear] = []
    for block in range(-(-shape.slots // _EACH)):
        value = hash_inputs(circuit, [key, Linear({0: block} if block else {})], "noise")
        bits += _strict_bits(circuit, value, "noise")[: _EACH * NOISE_BITS]
    sums = (total(bits[i * NOISE_BITS : (i + 1) * NOISE_BITS]) for i in range(shape.slots))
    return [noise_step(shape) * (value - NOISE_BITS // 2) for value in sums]


def _strict_bits(circuit: Circuit, value: Linear, label: str) -> list[Linear]:
    """Return the bits of a scalar, lowest first: of the one below R, not of it plus R."""
    first = circuit.allocate(_FIELD_BITS)

    def step(wires: Wires) -> None:
        number = evaluate(value, wires)
        for place in range(_FIELD_BITS):
            wires[first + place] = number >> place & 1

    circuit.compute(step)
    bits = [Linear({first + place: 1}) for place in range(_FIELD_BITS)]
    same = Linear({0: 1})  # whether the bits so far are those of R - 1
    for place in reversed(range(_FIELD_BITS)):
        bit = bits[place]
        if (R - 1) >> place & 1:
            circuit.require(bit, 1 - bit, Linear({}), label, computed=True)
            same = circuit.product(same, bit, label)
        else:  # 0 where they are, else 0 or 1
            circuit.require(bit, 1 - bit - same, Linear({}), label, computed=True)
    joined = weighted((1 << place, bit) for place, bit in enumerate(bits))
    circuit.require(Linear({}), Linear({}), value - joined, label, computed=True)
    return bits


def _selection(
    circuit: Circuit,
    shape: Shape,
    scores: Sequence[Linear],
    noise: Sequence[Linear],
    ids: Sequence[Linear],
) -> list[Linear]:
    """(ii), A3: the ids are K documents of which none has a lower noisy score than another."""
    [threshold] = circuit.private("threshold")
    chosen = circuit.private("chosen", shape.slots)
    bits = (2 * (shape.scale**2 + noise_step(shape) * NOISE_BITS // 2)).bit_length()
    for bit, score, added in zip(chosen, scores, noise, strict=True):
        boolean(circuit, bit, "a selector is 0 or 1")
        margin = score + added - threshold
        won = circuit.product(bit, margin, "a winner's margin")
        ranged(circuit, 2 * won - margin, bits, "no loser is above the winners")
    powers = [_powers(circuit, number, shape.top) for number in ids]
    for power, chosen_sum in enumerate(power_sums(chosen, shape.top + 1)):
        named = total(each[power] for each in powers)
        circuit.zero(chosen_sum - named, "the winners are those that are named")
    return chosen


def _same_scores(
    circuit: Circuit,
    shape: Shape,
    chosen: Sequence[Linear],
    scores: Sequence[Linear],
    ids: Sequence[Linear],
    found: Sequence[Linear],
) -> None:
    """(iii): the winners' scores are their rows' inner products with the query (Vandermonde)."""
    kept = [
        circuit.product(bit, score, "a winner's score")
        for bit, score in zip(chosen, scores, strict=True)
    ]
    parts = list(found)
    for left in power_sums(kept, shape.top):
        circuit.zero(left - total(parts), "the winners' scores are the index's")
        parts = [
            circuit.product(part, number, "a winner's score")
            for part, number in zip(parts, ids, strict=True)
        ]


def _powers(circuit: Circuit, number: Linear, most: int) -> list[Linear]:
    powers = [Linear({0: 1}), number]
    while len(powers) <= most:
        powers.append(circuit.product(powers[-1], number, "a power of an id"))
    return powers


def _leaf(circuit: Circuit, shape: Shape, row: Sequence[Linear]) -> Linear:
    """Hash of a row, R6; its entries, plus the scale, are in range, so that it has one packing."""
    for entry in row:
        ranged(circuit, entry, coordinate_bits(shape), "a coordinate is in range")
    return hash_inputs(circuit, pack(row, coordinate_bits(shape)), "a row of the index")


def _inner(
    circuit: Circuit, shape: Shape, row: Sequence[Linear], query: Sequence[Linear]
) -> Linear:
    return total(
        circuit.product(asked, entry - shape.scale, "an inner product")
        for asked, entry in zip(query, row, strict=True)
    )


def _opened(
    circuit: Circuit, leaf: Linear, number: Linear, path: Sequence[Linear], root: Linear
) -> None:
    """A path from a leaf to the root, left or right by the bits of the leaf's number."""
    first = circuit.allocate(len(path))

    def step(wires: Wires) -> None:
        value = evaluate(number, wires)
        for place in range(len(path)):
            wires[first + place] = value >> place & 1

    circuit.compute(step)
    turns = [Linear({first + place: 1}) for place in range(len(path))]
    for turn, sibling in zip(turns, path, strict=True):
        boolean(circuit, turn, "a turn is 0 or 1")
        moved = circuit.product(turn, sibling - leaf, "a turn of the path")
        leaf = hash_inputs(circuit, [leaf + moved, sibling - moved], "a node of the path")
    joined = weighted((1 << place, turn) for place, turn in enumerate(turns))
    circuit.zero(joined - number, "the path is the id's")
    circuit.zero(leaf - root, "the row is in the committed index")


# Inputs of the paper's circuits: its commitments and its noise, in plain numbers.

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
    """Return the inputs of :func:`paper_circuit`.

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
    """Return the inputs of :func:`naive_circuit`; arguments as of :func:`paper_inputs`."""
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
