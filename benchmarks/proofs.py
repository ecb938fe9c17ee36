"""What the proofs of a window cost: setup, columns, norms, selections, and a verifier's time.

    python benchmarks/proofs.py [--slots 1024] [--dimension 384] [--chunks 1] [--records 10] \\
        [--sigma 15000] [--norms]

CPU time of this process (one thread), median and range. Rows are random, of the norm that a
mechanism with scale 128 stores; noise reaches 14 sigma; answers name 4 slots. ``--norms`` adds the
norm proof.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # before zksnake is loaded

import numpy as np

from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.circuits.norm import norm_circuit
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.groth16.zksnake import prove
from ragwitness.crypto.proofs.norms.verify import verify_norms
from ragwitness.crypto.proofs.opening import Columns
from ragwitness.crypto.proofs.provider import (
    ProverSetup,
    SecretColumns,
    commit_columns,
    load_prover_setup,
    make_setup,
    prove_norms,
    prove_selection,
)
from ragwitness.crypto.proofs.selection.statement import SelectionClaim
from ragwitness.crypto.proofs.selection.verify import verify_selections
from ragwitness.crypto.proofs.setup import Shape, VerifierSetup

_SCALE, _TOP = 128, 4

_T = TypeVar("_T")


class _Timed(ProverSetup):
    """Takes the time of the circuit's two parts."""

    parts: dict[str, list[float]] = {"witness": [], "Groth16": []}  # noqa: RUF012

    def prove_link(self, inputs: object) -> Proof:
        circuit = link_circuit(self.shape)
        wires, witness = _timed(lambda: circuit.witness(inputs))
        proof, groth16 = _timed(lambda: prove(self.keys("link.key"), circuit, wires))
        self.parts["witness"].append(witness)
        self.parts["Groth16"].append(groth16)
        return proof


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=1024)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--records", type=int, default=10)
    parser.add_argument("--sigma", type=int, default=15_000, help="in grid steps")
    parser.add_argument("--norms", action="store_true")
    given = parser.parse_args()
    shape = Shape(given.slots, _TOP, given.dimension, _SCALE, 14 * given.sigma)
    with tempfile.TemporaryDirectory() as folder:
        setup = _setup(Path(folder) / "setup", shape)
    secret = _once("columns", lambda: commit_columns(_rows(shape, given.chunks), setup))
    data = secret.public.encode()
    columns = _once("columns, read", lambda: Columns.parse(data, shape))
    if given.norms:
        _norms(setup, secret, columns)
    claims, proofs = _selections(setup, secret, columns, given.records)
    _verify(setup.verifier, claims, proofs)
    _peak("peak memory")


def _setup(folder: Path, shape: Shape) -> ProverSetup:
    print(f"constraints: LINK {len(link_circuit(shape).constraints):,}", end=", ")
    print(f"norms {len(norm_circuit(shape).constraints):,}")
    _once("setup", lambda: make_setup(folder, shape))
    data = (folder / "setup.json").read_bytes()
    print(f"setup.json {len(data):,} bytes, {shape.bits} bits for a margin")
    _once("setup, verifier's read", lambda: VerifierSetup.parse(data))
    loaded = _once("setup, provider's read", lambda: load_prover_setup(folder))
    _once("key of LINK, read", lambda: loaded.keys("link.key"))
    return _Timed(loaded.verifier, loaded.powers, loaded.keys)


def _rows(shape: Shape, chunks: int) -> np.ndarray:
    return _vectors(np.random.default_rng(1), shape, shape.slots * chunks)


def _vectors(rng: np.random.Generator, shape: Shape, count: int) -> np.ndarray:
    found = rng.normal(size=(count, shape.dimension))
    found *= (shape.scale - shape.dimension**0.5 / 2) / np.linalg.norm(found, axis=1, keepdims=True)
    return np.rint(found).astype(np.int16)


def _norms(setup: ProverSetup, secret: SecretColumns, columns: Columns) -> None:
    _once("key of norms, read", lambda: setup.keys("norm.key"))
    proof = _once("norms, prove", lambda: prove_norms(setup, secret, b"window"))
    print(f"norms' proof {len(proof):,} bytes")
    _once("norms, verify", lambda: verify_norms(setup.verifier, columns, b"window", proof))
    _peak("peak memory so far")


def _selections(
    setup: ProverSetup, secret: SecretColumns, columns: Columns, records: int
) -> tuple[list[SelectionClaim], list[bytes]]:
    claims, proofs, spent = [], [], []
    rng = np.random.default_rng(2)
    for record in range(records):
        [query] = _vectors(rng, setup.shape, 1)
        noise = np.rint(rng.normal(size=len(secret.rows)) * setup.shape.reach / 14).astype(np.int64)
        noisy = secret.rows.astype(np.int64) @ query + noise
        ids = tuple(np.argsort(-noisy, kind="stable")[:_TOP].tolist())
        claims.append(SelectionClaim(columns, query, noise, ids, record.to_bytes(8, "big")))
        rest = claims[-1].query, claims[-1].noise, ids, claims[-1].context
        proof, seconds = _timed(lambda rest=rest: prove_selection(setup, secret, *rest))
        proofs.append(proof)
        spent.append(seconds)
    _show("selection, prove", spent)
    for name, parts in _Timed.parts.items():
        _show(f"  per chunk, {name}", parts)
    print(f"selection's proof {len(proofs[0]):,} bytes")
    return claims, proofs


def _verify(setup: VerifierSetup, claims: list[SelectionClaim], proofs: list[bytes]) -> None:
    alone = [
        _timed(lambda pair=pair: verify_selections(setup, [pair[0]], [pair[1]]))[1]
        for pair in zip(claims, proofs, strict=True)
    ]
    _show("selection, verify alone", alone)
    batch = _timed(lambda: verify_selections(setup, claims, proofs))[1]
    _show(f"  of {len(claims)} together, each", [batch / len(claims)])


def _timed(call: Callable[[], _T]) -> tuple[_T, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def _once(name: str, call: Callable[[], _T]) -> _T:
    found, seconds = _timed(call)
    _show(name, [seconds])
    return found


def _show(name: str, values: list[float]) -> None:
    low, high = min(values), max(values)
    spread = f"({low:.3f} to {high:.3f}, n = {len(values)})"
    print(f"{name:28} {statistics.median(values):8.3f} s {spread}", flush=True)


def _peak(name: str) -> None:
    print(f"{name} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
