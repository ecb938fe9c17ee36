"""Evaluations of committed polynomials (KZG), and the proof that a mask is nothing but a mask.

*Opening* (Kate, Zaverucha and Goldberg 2010, §3.2): C commits to Y with Y(r) = e if and only if
X - r divides Y(X) - e; with W = [(Y(τ) - e) / (τ - r)], e(C - e[1] + rW, [1]₂) = e(W, [τ]₂).

*Mask* (Okamoto 1992): knowledge of m with C = Σ m_i [τ^(n+i)], i = 0, 1, 2. Without it a provider
could add to the scores' commitment any change of any score.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.crypto.proofs.curve import Term
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.points import G1, G1_GENERATOR, G2, G2_GENERATOR

__all__ = ["divide", "mask_responses", "mask_terms", "opening_terms"]


def divide(coefficients: Sequence[int], point: int) -> tuple[int, list[int]]:
    """Return Y(point) and the coefficients of (Y(X) - Y(point)) / (X - point).

    Args:
        coefficients: Of Y, the constant first, at least one.
        point: In the field.
    """
    quotient = [0] * (len(coefficients) - 1)
    value = coefficients[-1] % R
    for i in range(len(coefficients) - 2, -1, -1):
        quotient[i] = value
        value = (value * point + coefficients[i]) % R
    return value, quotient


def opening_terms(
    committed: Sequence[tuple[int, G1]], point: int, value: int, quotient: G1, tau: G2
) -> list[Term]:
    """Return the factors whose product is 1 if Σ scalar · commitment opens to ``value``.

    Args:
        committed: Scalars and commitments whose sum is opened.
        point: Where, r.
        value: What is claimed there, e.
        quotient: W.
        tau: [τ]₂.
    """
    return [
        *(Term(scalar, held, G2_GENERATOR) for scalar, held in committed),
        Term(-value, G1_GENERATOR, G2_GENERATOR),
        Term(point, quotient, G2_GENERATOR),
        Term(-1, quotient, tau),
    ]


def mask_responses(masks: Sequence[int], nonces: Sequence[int], challenge: int) -> tuple[int, ...]:
    """Return nonce + challenge · mask for each mask; a nonce serves once."""
    return tuple((k + challenge * m) % R for k, m in zip(nonces, masks, strict=True))


def mask_terms(
    mask: G1, first: G1, challenge: int, responses: Sequence[int], bases: Sequence[G1]
) -> list[Term]:
    """Return the factors whose product is 1 if first + challenge · mask = Σ response · base.

    Args:
        mask: C_m.
        first: Σ nonce · base, sent before the challenge.
        challenge: In the field.
        responses: One per base.
        bases: [τⁿ], [τⁿ⁺¹], [τⁿ⁺²].
    """
    held = [(1, first), (challenge, mask)]
    held += [(-response, base) for response, base in zip(responses, bases, strict=True)]
    return [Term(scalar, point, G2_GENERATOR) for scalar, point in held]
