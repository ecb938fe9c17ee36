"""COINS, the prover's side (docs/design/noise.md; rounds as in ``statement``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.coins.statement import (
    CoinChunk,
    CoinClaim,
    CoinConversation,
    CoinProof,
    check_claim,
)
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.native import from_native_g1, native_commit, native_msm, native_ring
from ragwitness.crypto.proofs.norms.polynomials import (
    MASK_COEFFICIENTS,
    combine,
    dot,
    powers,
    split_parts,
)
from ragwitness.crypto.proofs.norms.proof import cut
from ragwitness.crypto.proofs.norms.prove import evaluate, summed
from ragwitness.crypto.proofs.opening import divide
from ragwitness.crypto.proofs.points import G1, R, encode_g1
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.selection.prove import HiddenNoise
from ragwitness.crypto.proofs.setup import MASKS
from ragwitness.errors import InputError, VerificationError

_DRAW_BYTES = 64


@dataclass(frozen=True, slots=True)
class SecretCoins:
    """What opens an answer's commitment; never published.

    Attributes:
        numbers: One per slot.
        seed: 32 secret bytes, from which blinds and every further random number follow. A proof
            made again is the same proof: another one would open the commitment at two points more,
            and three blinds hide three.
    """

    numbers: tuple[int, ...] = field(repr=False)
    seed: bytes = field(repr=False)

    def blinds(self, chunk: int) -> list[int]:
        """Return the three coefficients behind a chunk's slots."""
        return _draw(self.seed, b"blinds", chunk, MASKS)

    def commit(self, powers: Sequence[Any], slots: int) -> tuple[bytes, ...]:
        """Return the commitment to each chunk, 64 bytes.

        Args:
            powers: The setup's, as zksnake's points.
            slots: Number of document slots in each chunk.
        """
        return tuple(
            encode_g1(native_commit(powers, [*self.numbers[start : start + slots], *blinds]))
            for start in range(0, len(self.numbers), slots)
            for blinds in [self.blinds(start // slots)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """One chunk's columns: bits and the carry, what stands behind them, and the mask column."""

    bits: NDArray[np.int16]
    """Shape (slots, bits + 1), 0 and 1."""
    blinds: list[list[int]]
    """Three per column."""
    mask: list[int]
    """D numbers; its last three hide G."""

    def commit(self, held: Sequence[Any]) -> tuple[G1, ...]:
        """Return all commitments: to bits by sums of points and three long multiples each."""
        slots = len(self.bits)
        low, high = held[:slots], list(held[slots:])
        found = []
        for column, blinds in zip(self.bits.T.tolist(), self.blinds, strict=True):
            *_, total = accumulate(compress(low, column), initial=native_msm(high, blinds))
            found.append(from_native_g1(total))
        return (*found, native_commit(held, self.mask))

    def at(self, point: int) -> tuple[int, ...]:
        """Return every column's value, the mask column's last."""
        slots = len(self.bits)
        held = powers(point, slots + MASKS)
        inner = combine(self.bits.T, held[:slots])
        values = [
            (value + dot(blinds, held[slots:])) % R
            for value, blinds in zip(inner, self.blinds, strict=True)
        ]
        return (*values, dot(self.mask, held))

    def weighted(self, weights: Sequence[int]) -> list[int]:
        """Return the coefficients of the weighted sum of all columns."""
        *each, last = weights
        low = combine(self.bits, each)
        high = [dot(each, row) for row in zip(*self.blinds, strict=True)]
        return [(x + last * m) % R for x, m in zip([*low, *high], self.mask, strict=True)]

    def ends(self, kappa: int) -> list[int]:
        """Return G's coefficients: Σ κ^i blind² and the mask column's end."""
        *each, last = powers(kappa, len(self.blinds) + 1)
        rows = zip(zip(*self.blinds, strict=True), self.mask[-MASKS:], strict=True)
        return [
            (sum(w * x * x for w, x in zip(each, row, strict=True)) + last * m) % R
            for row, m in rows
        ]

    def coefficients(self, kappa: int, xi: int) -> list[int]:
        """Return F's coefficients, those of X^(1-D) to X^(D-1)."""
        slots = len(self.bits)
        size = slots + MASKS
        total = [0] * (2 * size - 1)
        middle = size - 1
        *each, last = powers(kappa, len(self.blinds) + 1)
        scales = powers(xi, size)
        # Bits with bits, by FFT.
        for i, value in enumerate(self._squares(each, scales), middle + 1 - slots):
            total[i] += value
        # Blinds with bits, blinds with blinds.
        rows = list(zip(*self.blinds, strict=True))
        for k, row in enumerate(rows, slots):
            scaled = [w * x % R for w, x in zip(each, row, strict=True)]
            ones = sum(scaled)
            for j, value in enumerate(combine(self.bits, scaled)):
                total[middle + k - j] += scales[k] * (value - ones)
                total[middle + j - k] += scales[j] * value
            for at, other in enumerate(rows, slots):
                total[middle + k - at] += scales[k] * dot(scaled, other)
        # The mask column with the three powers behind the slots.
        for j, (scale, value) in enumerate(zip(scales, self.mask, strict=True)):
            product = last * scale * value % R
            for k in range(slots, size):
                total[middle + j - k] += product
        return [value % R for value in total]

    def _squares(self, weights: Sequence[int], scales: Sequence[int]) -> list[int]:
        """Σ κ^i B_i(ξX)(B_i(1/X) - 1(1/X)) without blinds, from X^(1-n) on."""
        slots, ring = len(self.bits), native_ring()
        domain = 1 << (2 * slots - 2).bit_length()
        spectrum = [0] * domain
        for column, weight in zip(self.bits.T.tolist(), weights, strict=True):
            up = [weight * scale % R if bit else 0 for bit, scale in zip(column, scales)]  # noqa: B905
            down = [0 if bit else R - 1 for bit in reversed(column)]
            one, two = (ring.fft(part + [0] * (domain - slots), domain) for part in (up, down))
            spectrum = [s + a * b for s, a, b in zip(spectrum, one, two, strict=True)]
        found: list[int] = ring.ifft([value % R for value in spectrum], domain)
        return found[: 2 * slots - 1]


@dataclass(frozen=True, slots=True, eq=False)
class ProvedCoins:
    """A proof, and what the selection's proof needs of its secrets.

    Attributes:
        proof: For the bundle.
        bits: Shape (capacity, bits), 0 and 1.
        blinds: Per chunk and bit the three coefficients behind the slots.
    """

    proof: CoinProof
    bits: NDArray[np.int16] = field(repr=False)
    blinds: tuple[list[list[int]], ...] = field(repr=False)

    def hidden(self, coefficients: Sequence[int]) -> HiddenNoise:
        """Return a linear map of the bits as noise that the selection's proof takes committed.

        Args:
            coefficients: What each bit adds.
        """
        return HiddenNoise(
            self.proof.mapped(coefficients),
            self.bits.astype(np.int64) @ np.array(coefficients, np.int64),
            tuple(
                tuple(dot(coefficients, row) for row in zip(*chunk, strict=True))
                for chunk in self.blinds
            ),
        )


def prove_coins(setup: ProverSetup, claim: CoinClaim, secret: SecretCoins) -> ProvedCoins:
    """Prove that columns hold the bits of committed plus public numbers.

    Args:
        setup: Setup of the window.
        claim: With the commitments of ``secret``.
        secret: Numbers below 2^bits.

    Raises:
        InputError: The claim does not fit the setup, or the numbers do not fit the claim.
        MissingExtraError: zksnake is not installed.
    """
    slots = setup.shape.slots
    try:
        check_claim(claim, slots)
    except VerificationError as error:
        raise InputError(error.message) from error
    if len(secret.numbers) != len(claim.public) or any(n >> claim.bits for n in secret.numbers):
        raise InputError(
            f"{len(claim.public):,} slots need as many secret numbers of {claim.bits} bits.",
            "Use the numbers that the window was opened with.",
        )
    statement = claim.digest(setup.verifier.digest_bytes)
    made = [
        _columns(claim, secret, statement, chunk, slots) for chunk in range(len(claim.committed))
    ]
    parts = [
        _prove(setup, claim, columns, masks, chunk) for chunk, (columns, masks) in enumerate(made)
    ]
    bits = np.concatenate([columns.bits[:, :-1] for columns, _ in made])
    blinds = tuple(columns.blinds[:-1] for columns, _ in made)
    return ProvedCoins(CoinProof(statement, tuple(parts)), bits, blinds)


def _columns(
    claim: CoinClaim, secret: SecretCoins, statement: bytes, chunk: int, slots: int
) -> tuple[_Columns, list[int]]:
    """Return a chunk's columns, and the coefficients of A and B."""
    part = slice(chunk * slots, (chunk + 1) * slots)
    sums = [a + p for a, p in zip(secret.numbers[part], claim.public[part], strict=True)]
    width = claim.bits // 8 + 1
    raw = np.frombuffer(b"".join(s.to_bytes(width, "little") for s in sums), np.uint8)
    bits = np.unpackbits(raw.reshape(slots, width), axis=1, bitorder="little")
    # Everything random follows from the secret and the statement.
    count = claim.bits * MASKS
    drawn = _draw(secret.seed, statement, chunk, count + slots + MASKS + 2 * MASK_COEFFICIENTS)
    blinds = [drawn[i : i + MASKS] for i in range(0, count, MASKS)]
    # The carry's blinds make the sum an identity of polynomials: a + p = Σ 2^i B_i + 2^bits carry.
    below = pow(1 << claim.bits, -1, R)
    scales = [1 << place for place in range(claim.bits)]
    rows = zip(secret.blinds(chunk), zip(*blinds, strict=True), strict=True)
    blinds.append([(a - dot(scales, row)) * below % R for a, row in rows])
    mask = drawn[count : count + slots + MASKS]
    columns = _Columns(bits[:, : claim.bits + 1].astype(np.int16), blinds, mask)
    return columns, drawn[-2 * MASK_COEFFICIENTS :]


def _prove(
    setup: ProverSetup, claim: CoinClaim, columns: _Columns, drawn: Sequence[int], chunk: int
) -> CoinChunk:
    """Return one chunk's proof."""
    held, slots = setup.powers, setup.shape.slots
    # Round 1, statement.
    talk = CoinConversation.begin(setup.verifier, claim, chunk)
    # Round 2, columns. Challenge: κ.
    points = columns.commit(held)
    kappa = talk.weight(points)
    # Round 3, ends: G to its three coefficients, the masks A and B. Challenge: ξ, ω.
    ends = columns.ends(kappa)
    a, b = drawn[:MASK_COEFFICIENTS], drawn[MASK_COEFFICIENTS:]
    masks = native_commit(held, a), native_commit(held, b)
    end_point, constant = native_commit(held, ends), (a[1] + b[1]) % R
    xi, omega = talk.point(end_point, masks, constant)
    # Round 4, sides: what of ωF + A/X + X·B(1/X) stands above and below its constant term.
    parts = split_parts(columns.coefficients(kappa, xi), omega, a, b)
    sides = native_commit(held, parts.p), native_commit(held, parts.q)
    z = talk.place(sides)
    # Round 5, evaluations.
    inverse, upper_at = pow(z, -1, R), xi * z % R
    values = evaluate(columns.at, parts, xi, z)
    end, end_quotient = divide(ends, xi)
    weights = talk.weights(values, end)
    # Round 6, openings.
    public = claim.public[chunk * slots : (chunk + 1) * slots]
    together = columns.weighted(weights.columns)
    first, second = weights.first, weights.second
    low = summed([(1, together), (first, b), (second, parts.q)])
    middle = summed([(1, a), (first, parts.p)])
    quotients = (
        *(divide(poly, at)[1] for poly, at in ((together, upper_at), (low, inverse), (middle, z))),
        end_quotient,
        divide([-number for number in public], z)[1],
    )
    openings = tuple(native_commit(held, quotient) for quotient in quotients)
    return CoinChunk(points, end_point, masks, constant, sides, values, end, openings)


def _draw(seed: bytes, label: bytes, chunk: int, count: int) -> list[int]:
    """Return secret scalars, a function of all three arguments before the last."""
    stream = ProofTranscript("ragwitness/coins-secret/v1")
    stream.absorb("seed", seed)
    stream.absorb("label", label)
    stream.absorb("chunk", chunk.to_bytes(8, "big"))
    data = stream.expand("scalars", count * _DRAW_BYTES)
    return [int.from_bytes(part, "big") % R for part in cut(data, _DRAW_BYTES)]
