"""A provider that lies: COINS' prover from its parts, each of which a test may falsify."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ragwitness.crypto.proofs.coins import prove as module
from ragwitness.crypto.proofs.coins.prove import SecretCoins
from ragwitness.crypto.proofs.coins.statement import CoinClaim, CoinProof
from ragwitness.crypto.proofs.native import native_commit
from ragwitness.crypto.proofs.opening import divide
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup

BITS = 6


class Liar(module._Columns):
    """Columns of any numbers: everything is computed by its definition."""

    def whole(self) -> list[list[int]]:
        rows = zip(self.bits.T.tolist(), self.blinds, strict=True)
        return [*([*column, *blinds] for column, blinds in rows), self.mask]

    def commit(self, held: Sequence[Any]) -> tuple[G1, ...]:
        return tuple(native_commit(held, column) for column in self.whole())

    def at(self, point: int) -> tuple[int, ...]:
        return tuple(divide(column, point)[0] for column in self.whole())

    def weighted(self, weights: Sequence[int]) -> list[int]:
        rows = zip(*self.whole(), strict=True)
        return [sum(w * x for w, x in zip(weights, row, strict=True)) % R for row in rows]

    def coefficients(self, kappa: int, xi: int) -> list[int]:
        slots = len(self.bits)
        size = slots + 3
        *columns, _ = self.whole()
        total = [0] * (2 * size - 1)
        for j in range(size):
            for k in range(size):
                inner = pow(kappa, len(columns), R) * self.mask[j] * (k >= slots)
                for i, column in enumerate(columns):
                    inner += pow(kappa, i, R) * column[j] * (column[k] - (k < slots))
                total[size - 1 + j - k] += pow(xi, j, R) * inner
        return [value % R for value in total]


def forged(
    setup: ProverSetup,
    claim: CoinClaim,
    secret: SecretCoins,
    lie: Callable[[module._Columns], module._Columns],
) -> bytes:
    """Return a proof of one chunk whose columns a lie has changed; all else is as it should be."""
    statement = claim.digest(setup.verifier.digest_bytes)
    columns, masks = module._columns(claim, secret, statement, 0, setup.shape.slots)
    changed = lie(Liar(columns.bits.copy(), [list(b) for b in columns.blinds], columns.mask))
    part = module._prove(setup, claim, changed, masks, 0)
    return CoinProof(statement, (part,)).encode()


def carried(columns: module._Columns, claim: CoinClaim, secret: SecretCoins) -> module._Columns:
    """Return columns whose carry makes the sum hold, whatever the bits are."""
    low, below = columns.bits.astype(object), pow(1 << claim.bits, -1, R)
    for slot, (a, p) in enumerate(zip(secret.numbers, claim.public, strict=True)):
        held = sum(int(low[slot, i]) << i for i in range(claim.bits))
        low[slot, claim.bits] = (a + p - held) * below % R
    return Liar(low, columns.blinds, columns.mask)


def renamed(data: bytes, claim: CoinClaim, setup: ProverSetup) -> bytes:
    """Return a proof under another claim's name."""
    made = CoinProof.parse(data, claim.bits, len(claim.committed))
    return replace(made, statement=claim.digest(setup.verifier.digest_bytes)).encode()
