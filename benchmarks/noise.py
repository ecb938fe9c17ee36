"""What noise costs that is proved without being opened (COINS): committing, proving, verifying.

    python benchmarks/noise.py [--slots 1024] [--bits 87] [--records 30]

CPU time of this process (one thread), median and range, without the selection's own proof
(``benchmarks/proofs.py``).
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # before zksnake is loaded

from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.coins.prove import SecretCoins, prove_coins
from ragwitness.crypto.proofs.coins.statement import CoinClaim
from ragwitness.crypto.proofs.coins.verify import coin_equations
from ragwitness.crypto.proofs.groth16.zksnake import make_key
from ragwitness.crypto.proofs.native import to_native_g1
from ragwitness.crypto.proofs.opening import first_false
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.setup import Shape, VerifierSetup, make_srs

_T = TypeVar("_T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=1024)
    parser.add_argument("--bits", type=int, default=87)
    parser.add_argument("--records", type=int, default=30)
    given = parser.parse_args()
    setup = _setup(given.slots)
    public = [secrets.randbits(given.bits) for _ in range(given.slots)]
    spent: dict[str, list[float]] = {"commit": [], "prove": [], "verify alone": []}
    claims, proofs = [], []
    for record in range(given.records):
        numbers = tuple(secrets.randbits(given.bits) for _ in range(given.slots))
        secret = SecretCoins(numbers, secrets.token_bytes(32))
        committed = _timed(spent["commit"], lambda s=secret: s.commit(setup.powers, given.slots))
        claim = CoinClaim(given.bits, committed, public, record.to_bytes(8, "big"))
        made = _timed(spent["prove"], lambda c=claim, s=secret: prove_coins(setup, c, s))
        claims.append(claim)
        proofs.append(made.proof.encode())
    for claim, proof in list(zip(claims, proofs, strict=True))[:10]:
        _timed(spent["verify alone"], lambda c=claim, p=proof: _verify(setup.verifier, [c], [p]))
    together = spent.setdefault(f"verify {given.records} together", [])
    for _ in range(3):
        _timed(together, lambda: _verify(setup.verifier, claims, proofs))
    print(f"{given.slots:,} slots, {given.bits} bits, {len(proofs[0]):,} bytes a record")
    for name, values in spent.items():
        spread = f"({min(values):.4f} to {max(values):.4f}, n = {len(values)})"
        print(f"{name:22} {statistics.median(values):8.4f} s {spread}", flush=True)


def _setup(slots: int) -> ProverSetup:
    """Return powers of τ for these slots; keys of a tiny circuit, which nothing here uses."""
    shape, tiny = Shape(slots, 2, 2, 128, 1 << 23), Shape(8, 2, 2, 16, 100)
    srs, key = make_srs(shape), make_key(link_circuit(tiny))
    masks = srs.powers[slots:]
    verifier = VerifierSetup(shape, srs.tau, masks, key.verifying, key.verifying)
    return ProverSetup(verifier, [to_native_g1(point) for point in srs.powers], lambda _: key)


def _verify(setup: VerifierSetup, claims: list[CoinClaim], proofs: list[bytes]) -> None:
    _, equations = coin_equations(setup, claims, proofs)
    if first_false(equations) is not None:
        raise SystemExit("An honest proof was refused.")


def _timed(spent: list[float], call: Callable[[], _T]) -> _T:
    start = time.process_time()
    found = call()
    spent.append(time.process_time() - start)
    return found


if __name__ == "__main__":
    main()
