"""Groth16 (Groth 2016) over BN254: keys and proofs in the one form that is accepted.

Proving is done by :mod:`.zksnake`; verifying is done here, whoever proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.crypto.proofs.curve import Term, parse_g2, product_holds
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G2,
    G2_BYTES,
    check_scalars,
    encode_g1,
    encode_g2,
    parse_g1,
)
from ragwitness.errors import InputError, VerificationError

PROOF_BYTES = 2 * G1_BYTES + G2_BYTES

_KEY_POINTS = G1_BYTES + 3 * G2_BYTES


@dataclass(frozen=True, slots=True)
class Proof:
    """One proof, 256 bytes.

    Attributes:
        a: Point in G1.
        b: Point in G2.
        c: Point in G1.
    """

    a: G1
    b: G2
    c: G1

    def encode(self) -> bytes:
        """Return a ‖ b ‖ c."""
        return encode_g1(self.a) + encode_g2(self.b) + encode_g1(self.c)

    @classmethod
    def parse(cls, data: bytes) -> Proof:
        """Read what :meth:`encode` wrote.

        Raises:
            VerificationError: ``groth16.size``, ``point.field``, ``.curve`` or ``.subgroup``.
        """
        _sized(data, PROOF_BYTES)
        middle = G1_BYTES + G2_BYTES
        return cls(
            parse_g1(data[:G1_BYTES]), parse_g2(data[G1_BYTES:middle]), parse_g1(data[middle:])
        )


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """What a verifier needs of one circuit's setup.

    Attributes:
        alpha: [alpha]₁.
        beta: [beta]₂.
        gamma: [gamma]₂.
        delta: [delta]₂.
        inputs: One point of G1 for the constant one, then one for each public input.
    """

    alpha: G1
    beta: G2
    gamma: G2
    delta: G2
    inputs: tuple[G1, ...]

    def encode(self) -> bytes:
        """Return the points in order of the attributes."""
        fixed = encode_g1(self.alpha) + b"".join(
            encode_g2(point) for point in (self.beta, self.gamma, self.delta)
        )
        return fixed + b"".join(map(encode_g1, self.inputs))

    @classmethod
    def parse(cls, data: bytes, publics: int) -> VerifyingKey:
        """Read what :meth:`encode` wrote.

        Args:
            data: The bytes.
            publics: Number of the circuit's public inputs.

        Raises:
            VerificationError: ``groth16.size``, ``point.field``, ``.curve`` or ``.subgroup``; or
                ``groth16.key`` where one of the four fixed points is infinity.
        """
        _sized(data, _KEY_POINTS + G1_BYTES * (1 + publics))
        alpha = parse_g1(data[:G1_BYTES])
        starts = range(G1_BYTES, _KEY_POINTS, G2_BYTES)
        beta, gamma, delta = (parse_g2(data[i : i + G2_BYTES]) for i in starts)
        starts = range(_KEY_POINTS, len(data), G1_BYTES)
        inputs = tuple(parse_g1(data[i : i + G1_BYTES]) for i in starts)
        if alpha == (0, 0) or ((0, 0), (0, 0)) in (beta, gamma, delta):
            raise VerificationError("groth16.key", "A point of the verifying key is infinity.")
        return cls(alpha, beta, gamma, delta, inputs)


def terms(key: VerifyingKey, publics: Sequence[int], proof: Proof) -> list[Term]:
    """Return pairings whose product is 1 if and only if the proof holds (Groth 2016, §3.2).

    e(A, B) = e(alpha, beta) · e(Σ xᵢ·Kᵢ, gamma) · e(C, delta), all on one side.

    Args:
        key: Key of the circuit.
        publics: The public inputs in the circuit's order.
        proof: Parsed.

    Raises:
        InputError: The number of public inputs is not the key's, or one is outside the field.
    """
    if len(publics) != len(key.inputs) - 1:
        raise InputError(f"The key is for {len(key.inputs) - 1} public inputs, not {len(publics)}.")
    inputs = zip((1, *check_scalars("public inputs", publics)), key.inputs, strict=True)
    return [
        Term(1, proof.a, proof.b),
        Term(-1, key.alpha, key.beta),
        *(Term(-value, point, key.gamma) for value, point in inputs),
        Term(-1, proof.c, key.delta),
    ]


def holds(key: VerifyingKey, publics: Sequence[int], proof: Proof) -> bool:
    """Return whether a proof shows that the public inputs satisfy the key's circuit.

    Many proofs are cheaper together (:mod:`ragwitness.crypto.proofs.opening`).

    Raises:
        InputError: As for :func:`terms`.
        MissingExtraError: py_ecc is not installed.
    """
    return product_holds(terms(key, publics, proof))


def _sized(data: bytes, size: int) -> None:
    if len(data) != size:
        raise VerificationError("groth16.size", f"{size} bytes are due, not {len(data)}.")
