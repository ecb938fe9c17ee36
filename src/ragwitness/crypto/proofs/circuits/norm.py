"""NORM: squared norms and projections are small, and a masked sum holds all of them.

The sum ties them to the committed columns; see docs/design/norms.md. The prover names
``commitment`` before it learns ξ, ζ, κ and ω.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ragwitness.crypto.proofs.gadgets import (
    hash_inputs,
    horner,
    pack,
    pack_values,
    poseidon,
    ranged,
)
from ragwitness.crypto.proofs.norms.polynomials import PROJECTIONS, projection_bits
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.crypto.proofs.setup import Shape


@lru_cache(maxsize=4)
def norm_circuit(shape: Shape) -> Circuit:
    """Return the circuit of one chunk.

    Public inputs: ``commitment`` (:func:`norm_commitment`), ``xi``, ``zeta``, ``kappa``, ``omega``,
    and ``total`` = ω(Σ_j norms_j ξ^j + κ Σ_i projections_i ζ^i) + mask.

    Private inputs: ``norms`` (N_j of the slots, each at most S², then those of the three blinds'
    rows, which nothing bounds), ``projections`` (309, in [-T, T)), ``mask``, ``salt``.

    Args:
        shape: ``top`` and ``reach`` do not matter.
    """
    circuit = Circuit("ragwitness/norm/v1")
    commitment, xi, zeta, kappa, omega, result = (
        circuit.public(name)[0] for name in ("commitment", "xi", "zeta", "kappa", "omega", "total")
    )
    norms = circuit.private("norms", shape.coefficients)
    projections = circuit.private("projections", PROJECTIONS)
    [mask], [salt] = circuit.private("mask"), circuit.private("salt")

    # S² - N_j in [0, 2^bitlen(S²)) for the slots; the three rows of blinds are unbounded.
    gap_bits, projection_range, half = _ranges(shape)
    gaps = [shape.scale**2 - norm for norm in norms[: shape.slots]]
    for slot, gap in enumerate(gaps):
        ranged(circuit, gap, gap_bits, f"norm of slot {slot}")
    # s_i + T in [0, 2T) for all 309 projections.
    shifted = [projection + half for projection in projections]
    for number, value in enumerate(shifted):
        ranged(circuit, value, projection_range, f"size of projection {number}")

    # hN opens to these numbers; it was sent before ξ, ζ, κ and ω were drawn.
    parts = [*pack(gaps, gap_bits), *pack(shifted, projection_range)]
    hashed = hash_inputs(circuit, [*parts, *norms[shape.slots :], mask, salt], "hash of the norms")
    circuit.zero(hashed - commitment, "commitment to the norms")
    # T* = ω(Σ_j N_j ξ^j + κ Σ_i s_i ζ^i) + g₀.
    crossed = horner(circuit, projections, zeta, "sum of projections")
    squares = horner(circuit, norms, xi, "sum of norms")
    both = squares + circuit.product(kappa, crossed, "both sums")
    circuit.zero(circuit.product(omega, both, "masked sum") + mask - result, "masked sum")
    return circuit


def norm_commitment(
    shape: Shape, norms: Sequence[int], projections: Sequence[int], mask: int, salt: int
) -> int:
    """Return the public input ``commitment``.

    Args:
        shape: Gives the ranges.
        norms: D numbers in [0, R).
        projections: 309 plain integers, negative ones too.
        mask: Number in [0, R).
        salt: Random, in [0, R); it hides the rest.

    Raises:
        InputError: A slot's norm is above S², or a projection outside its range.
    """
    gap_bits, projection_range, half = _ranges(shape)
    gaps = [shape.scale**2 - norm for norm in norms[: shape.slots]]
    parts = pack_values(gaps, gap_bits)
    parts += pack_values([value + half for value in projections], projection_range)
    return poseidon([*parts, *norms[shape.slots :], mask, salt])


def _ranges(shape: Shape) -> tuple[int, int, int]:
    """Bits of S² - N_j, bits of s_i + T, and T."""
    bits = projection_bits(shape)
    return (shape.scale**2).bit_length(), bits + 1, 1 << bits
