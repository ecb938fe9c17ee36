"""What a proof back end is: a statement in public, a witness in private, and a verdict (G3).

No back end lives here. One that implements :class:`ProofBackend` can be swapped for another; its
``verify`` alone has to run on a verifier's machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragwitness.crypto.canonical import U64_MAX, canonical
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.errors import InputError

__all__ = ["ProofBackend", "Statement"]


@dataclass(frozen=True, slots=True)
class Statement:
    """What is claimed, in full: two statements that differ anywhere have different digests.

    Attributes:
        circuit: Name and version of the relation, e.g. ``"ragwitness/link/v1"``.
        parameters: What fixes the circuit's shape, e.g. documents and winners.
        modulus: Of the field that the inputs live in.
        inputs: Public inputs in the circuit's order, each in [0, modulus).
        context: Bytes that the proof must be bound to and the circuit does not read, e.g. the hash
            of the log's record.
    """

    circuit: str
    parameters: Mapping[str, int]
    modulus: int
    inputs: tuple[int, ...]
    context: bytes

    def __post_init__(self) -> None:
        if self.modulus < 2 or any(not 0 <= value < self.modulus for value in self.inputs):
            raise InputError(
                "A public input lies outside the field.", "Reduce every input before it is stated."
            )
        if any(not 0 <= value <= U64_MAX for value in self.parameters.values()):
            raise InputError("A circuit's parameter is no unsigned 64-bit integer.")

    @property
    def digest(self) -> bytes:
        """SHA-256, 32 bytes, of everything above."""
        fields = {
            "circuit": self.circuit,
            "context": self.context.hex(),
            "inputs": [str(value) for value in self.inputs],
            "modulus": str(self.modulus),
            "parameters": {name: str(value) for name, value in self.parameters.items()},
        }
        return tagged_hash("ragwitness/statement/v1", canonical(fields))


class ProofBackend(Protocol):
    """Proves and verifies statements of the circuits that it names."""

    @property
    def name(self) -> str:
        """What stands in a bundle, with version, e.g. ``"groth16-bn254/1"``."""
        ...

    @property
    def circuits(self) -> Sequence[str]:
        """The circuits, by :attr:`Statement.circuit`, that it can prove and verify."""
        ...

    def prove(self, statement: Statement, witness: Mapping[str, Sequence[int]]) -> bytes:
        """Return a proof, in the one encoding that :meth:`verify` accepts.

        Raises:
            InputError: The witness does not satisfy the statement, or the circuit is unknown.
        """
        ...

    def verify(self, statement: Statement, proof: bytes) -> None:
        """Check a proof; returning means that it holds.

        Raises:
            VerificationError: The proof is malformed or oversized, or does not hold.
        """
        ...
