"""The verifier of Groth16 proofs, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.crypto.proofs.curve import Term, check_scalars, product_holds
from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey
from ragwitness.errors import InputError


def terms(key: VerifyingKey, publics: Sequence[int], proof: Proof) -> list[Term]:
    """Return pairings whose product is 1 if and only if the proof holds (Groth 2016, §3.2).

    e(A, B) = e(alpha, beta) · e(Σ xᵢ·Kᵢ, gamma) · e(C, delta), all on one side.

    Args:
        key: Of the circuit.
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
