"""Which constraint of a circuit fails."""

from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.r1cs import Circuit, Wires, evaluate


def violated(circuit: Circuit, wires: Wires) -> str | None:
    """Return the label of the first constraint that fails, or None."""
    for row in circuit.constraints:
        if (evaluate(row.a, wires) * evaluate(row.b, wires) - evaluate(row.c, wires)) % R:
            return row.label
    return None
