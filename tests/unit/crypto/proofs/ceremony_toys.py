"""Circuits of some rows, with as many public inputs as the real ones, for whole ceremonies."""

from __future__ import annotations

from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.r1cs import Circuit, Linear
from ragwitness.crypto.proofs.setup import Shape

SHAPE = Shape(slots=2, top=1, dimension=1, scale=1, reach=0)


def toy(name: str, rows: int) -> Circuit:
    """The first public input is b³ + 7b + 5; ``rows`` further ones make the domain larger."""
    circuit = Circuit(name)
    first, *_ = circuit.public("public", 6)
    [b] = circuit.private("b")
    cube: Linear = circuit.product(circuit.product(b, b, "square"), b, "cube")
    for _ in range(rows):
        circuit.product(cube - b * 12345, b + 3, "more")
    circuit.zero(cube + b * 7 + 5 - first, "the polynomial of b")
    return circuit


CIRCUITS = {"link": toy("toy/link", 1), "norm": toy("toy/norm", 9)}
"""Domains of 16 and 32."""


def wires(circuit: Circuit, b: int) -> list[int]:
    return circuit.witness({"public": [(b**3 + 7 * b + 5) % R, 1, 2, 3, 4, 5], "b": [b]})
