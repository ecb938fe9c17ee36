"""What a proof of coins shows: every guess of the bits fits it equally well."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from ragwitness.crypto.proofs.coins import prove as prover
from ragwitness.crypto.proofs.coins.prove import SecretCoins
from ragwitness.crypto.proofs.coins.statement import CoinClaim
from ragwitness.crypto.proofs.norms.polynomials import powers, split_parts
from ragwitness.crypto.proofs.points import R

SLOTS, BITS = 4, 3
TAU, KAPPA, XI, OMEGA, Z = (pow(7, 1000 + i, R) for i in range(5))
DOWN = pow(Z, -1, R)
POINTS = (TAU, XI * Z % R, DOWN)


def value(polynomial, point):
    return sum(c * x for c, x in zip(polynomial, powers(point, len(polynomial)), strict=True)) % R


def solved(rows, right):
    """Solve a square system modulo R."""
    rows = [[*row, x] for row, x in zip(rows, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = next(j for j in range(i, size) if rows[j][i] % R)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        scale = pow(rows[i][i], -1, R)
        rows[i] = [x * scale % R for x in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [(x - rows[j][i] * y) % R for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def shown(columns, masks):
    """Everything that a proof shows under fixed challenges, commitments as values at τ."""
    a, b = masks[:4], masks[4:]
    parts = split_parts(columns.coefficients(KAPPA, XI), OMEGA, a, b)
    ends = columns.ends(KAPPA)
    found = [*(columns.at(point) for point in POINTS)]
    sums = [sum(x << i for i, x in enumerate(at[:-1])) % R for at in found]  # a's, plus p's
    return (
        found,
        sums,
        [value(ends, TAU), value(ends, XI), (a[1] + b[1]) % R],
        [value(a, TAU), value(a, Z), value(b, TAU), value(b, DOWN)],
        [value(parts.p, TAU), value(parts.p, Z), value(parts.q, TAU), value(parts.q, DOWN)],
    )


def made(seed):
    rng = np.random.default_rng(seed)
    numbers, public = (tuple(rng.integers(0, 1 << BITS, SLOTS).tolist()) for _ in range(2))
    claim = CoinClaim(BITS, (bytes(64),), public, b"")
    return prover._columns(claim, SecretCoins(numbers, bytes([seed]) * 32), b"", 0, SLOTS)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_every_other_secret_fits_what_is_shown(seed):
    """With all discrete logarithms known, and one record's proof in hand."""
    columns, masks = made(1)
    guess, _ = made(seed)
    assert (guess.bits != columns.bits).any()
    seen = shown(columns, masks)
    high = [[pow(x, SLOTS + k, R) for k in range(3)] for x in POINTS]
    # Blinds of every column, the carry's too, that give its three values.
    blinds = []
    for i, bits in enumerate(guess.bits.T.tolist()):
        due = [(seen[0][j][i] - value(bits, x)) % R for j, x in enumerate(POINTS)]
        blinds.append(solved(high, due))
    # The mask column: its end gives the same G, its beginning the three values.
    weights, last = powers(KAPPA, BITS + 1), pow(KAPPA, BITS + 1, R)
    ends = columns.ends(KAPPA)
    tail = [
        (ends[k] - sum(w * row[k] ** 2 for w, row in zip(weights, blinds, strict=True)))
        * pow(last, -1, R)
        % R
        for k in range(3)
    ]
    rest = [0, 0, 0, columns.mask[3], *tail]
    due = [(seen[0][j][-1] - value(rest, x)) % R for j, x in enumerate(POINTS)]
    start = solved([[pow(x, k, R) for k in range(3)] for x in POINTS], due)
    other = prover._Columns(guess.bits, blinds, [*start, *rest[3:]])

    # A and B: eight coefficients, eight values; the quotient's other half then follows.
    def eight(masks):
        _, _, (_, _, constant), (a0, a1, b0, b1), (p0, p1, q0, _) = shown(other, masks)
        return [constant, a0, a1, b0, b1, p0, p1, q0]

    base = eight([0] * 8)
    rows = [[int(i == j) for j in range(8)] for i in range(8)]
    moved = [eight(row) for row in rows]
    matrix = [[(moved[j][i] - base[i]) % R for j in range(8)] for i in range(8)]
    wanted = [seen[2][2], *seen[3], *seen[4][:3]]
    found = solved(matrix, [(w - x) % R for w, x in zip(wanted, base, strict=True)])
    assert shown(other, found) == seen


def test_the_bits_that_are_proved_have_the_distribution_of_fair_coins():
    """Of secret numbers that are anything but random: the public ones suffice."""
    slots, bits = 60_000, 6
    rng = np.random.default_rng(11)
    public = tuple(rng.integers(0, 1 << bits, slots).tolist())
    claim = CoinClaim(bits, (bytes(64),), public, b"")
    columns, _ = prover._columns(claim, SecretCoins((5,) * slots, bytes(32)), b"", 0, slots)
    values = columns.bits[:, :bits] @ (1 << np.arange(bits))
    assert chisquare(np.bincount(values, minlength=64)).pvalue > 1e-4
