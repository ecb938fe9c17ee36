"""What a window's proofs cost: columns, norms and answers.

    python benchmarks/proofs.py [--slots 4096] [--dimension 384] [--records 3] [--norms]

CPU time of this process (one thread), median and range.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")  # before the curve's package is loaded

import numpy as np

from ragwitness.crypto.proofs.argument import Columns, SecretColumns, commit_columns
from ragwitness.crypto.proofs.arithmetic import Shape, chunk_slots
from ragwitness.crypto.proofs.norms import verify_norms
from ragwitness.crypto.proofs.prove_norms import prove_norms
from ragwitness.crypto.proofs.prove_selection import prove_answer
from ragwitness.crypto.proofs.prover import ceremony_domain
from ragwitness.crypto.proofs.selection import AnswerClaim, verify_answers

_T = TypeVar("_T")
_TOP, _SCALE, _SIGMA = 4, 128, 15_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=4096)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--records", type=int, default=3)
    parser.add_argument("--norms", action="store_true")
    given = parser.parse_args()
    shape = Shape(chunk_slots(given.slots), _TOP, given.dimension, _SCALE, 14 * _SIGMA)
    print(f"{shape.chunks(given.slots)} chunks of {shape.slots:,}, {shape.bits} bits a margin")
    _once("powers, once a process", lambda: ceremony_domain(shape.slots))
    rows = _vectors(np.random.default_rng(1), shape, given.slots)
    secret = _once("columns", lambda: commit_columns(rows, shape))
    columns = Columns(secret.public.chunks)
    _once("columns, read", lambda: columns.points)
    if given.norms:
        proof = _once("norms, prove", lambda: prove_norms(shape, secret, b"window"))
        print(f"norms' proof {len(proof):,} bytes")
        _once("norms, verify", lambda: verify_norms(shape, columns, b"window", proof))
    claims, proofs = _answers(shape, secret, columns, given.records)
    alone = [
        _timed(lambda pair=pair: verify_answers(shape, {"Proof": pair}))[1]
        for pair in zip(claims, proofs, strict=True)
    ]
    _show("answer, verify alone", alone)
    answers = {f"Proof {i}": pair for i, pair in enumerate(zip(claims, proofs, strict=True))}
    batch = _timed(lambda: verify_answers(shape, answers))[1]
    _show(f"  of {len(claims)} together, each", [batch / len(claims)])
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def _vectors(rng: np.random.Generator, shape: Shape, count: int) -> np.ndarray:
    found = rng.normal(size=(count, shape.dimension))
    found *= (shape.scale - shape.dimension**0.5 / 2) / np.linalg.norm(found, axis=1, keepdims=True)
    return np.rint(found).astype(np.int16)


def _answers(
    shape: Shape, secret: SecretColumns, columns: Columns, records: int
) -> tuple[list[AnswerClaim], list[bytes]]:
    claims, proofs, spent = [], [], []
    rng, slots = np.random.default_rng(2), len(secret.rows)
    for record in range(records):
        [query] = _vectors(rng, shape, 1)
        noise = np.rint(rng.normal(size=slots) * _SIGMA).astype(np.int64)
        noisy = secret.rows.astype(np.int64) @ query + noise
        ids = tuple(np.argsort(-noisy, kind="stable")[:_TOP].tolist())
        claim = AnswerClaim(columns, query, noise, ids, record.to_bytes(8, "big"))
        proof, seconds = _timed(lambda claim=claim: prove_answer(shape, claim, secret))
        claims.append(claim)
        proofs.append(proof)
        spent.append(seconds)
    _show("answer, prove", spent)
    print(f"answer's proof {len(proofs[0]):,} bytes")
    return claims, proofs


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
    spread = f"({low:.4f} to {high:.4f}, n = {len(values)})"
    print(f"{name:28} {statistics.median(values):8.4f} s {spread}", flush=True)


if __name__ == "__main__":
    main()
