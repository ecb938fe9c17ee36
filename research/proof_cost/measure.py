"""Measure one case in this process: ``python -m research.proof_cost.measure CASE``.

CASE is a :class:`~.costs.Case` as JSON; its :class:`~.costs.Cost` is printed as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from research.proof_cost.costs import Case, Cost

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.r1cs import Circuit
    from ragwitness.crypto.proofs.setup import Shape

_SEED = 0
_SIGMAS = 13  # of noise within the reach, as the sampler's tables have it

T = TypeVar("T")
Inputs = Mapping[str, Sequence[int]]


def main() -> None:
    """Measure the case of the command line."""
    from ragwitness.errors import RagwitnessError

    try:
        cost = measured(Case(**json.loads(sys.argv[1])))
    except RagwitnessError as error:
        sys.exit(error.message)
    print(json.dumps(asdict(cost)))


def measured(case: Case) -> Cost:
    """Return what a case costs, once.

    Raises:
        RagwitnessError: The back end is missing or failed.
    """
    from research.proof_cost.provers import BUILT_IN

    shape = _shape(case)
    if case.circuit == "link" and case.backend == BUILT_IN:
        return _link(case, shape)
    circuit, inputs = _circuit(case, shape)
    if case.backend == "none":
        return Cost(constraints=len(circuit.constraints))
    return _groth16(case.backend, circuit, inputs)


def _shape(case: Case) -> Shape:
    from ragwitness.crypto.proofs.setup import Shape

    return Shape(case.slots, case.top, case.dimension, case.scale, case.reach)


def _circuit(case: Case, shape: Shape) -> tuple[Circuit, Callable[[], Inputs]]:
    """The circuit of a case, and what computes its inputs."""
    if case.circuit == "link":
        from ragwitness.crypto.proofs.circuits.link import link_circuit

        return link_circuit(shape), lambda: _link_inputs(shape)
    from research.proof_cost.paper_circuits import (
        naive_circuit,
        naive_inputs,
        paper_circuit,
        paper_inputs,
    )

    build, fill = (
        (paper_circuit, paper_inputs) if case.circuit == "paper" else (naive_circuit, naive_inputs)
    )
    rows, query, _ = _material(case.documents, shape)
    return build(shape), lambda: fill(shape, rows, query, 1, 2)


def _groth16(backend: str, circuit: Circuit, fill: Callable[[], Inputs]) -> Cost:
    """Setup by our own code, witness, and proof by the back end; its check is the product's."""
    from ragwitness.crypto.proofs.groth16 import holds, zksnake
    from ragwitness.errors import VerificationError
    from research.proof_cost import provers

    key, setup = _timed(lambda: zksnake.make_key(circuit))
    wires, witness = _timed(lambda: circuit.witness(fill()))
    here = backend == provers.BUILT_IN
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cost.zkey")
        if not here:
            path.write_bytes(provers.zkey_file(key, circuit))
        before = os.times()
        proof, own = _timed(
            lambda: (
                zksnake.prove(key, circuit, wires)
                if here
                else provers.prove(backend, path, key.verifying, circuit.publics, wires)
            )
        )
        after = os.times()
    spent = after.children_user + after.children_system
    program = spent - before.children_user - before.children_system
    memory = _memory()
    publics = wires[1 : 1 + circuit.publics]
    true, verify = _timed(lambda: holds(key.verifying, publics, proof))
    if not true:
        raise VerificationError("groth16", f"The proof by {backend} does not verify.")
    return Cost(
        constraints=len(circuit.constraints),
        setup=setup if here else None,
        prove=witness + (own if here else program),  # of a program, without handing it the files
        verify=verify,
        proof=len(proof.encode()),
        memory=memory if here else None,
    )


def _link(case: Case, shape: Shape) -> Cost:
    """The whole of LINK as the product runs it, commitments and openings included."""
    from ragwitness.crypto.proofs.circuits.link import link_circuit
    from ragwitness.crypto.proofs.provider import (
        commit_columns,
        load_prover_setup,
        make_setup,
        prove_selection,
    )
    from ragwitness.crypto.proofs.selection.statement import SelectionClaim
    from ragwitness.crypto.proofs.selection.verify import verify_selections
    from ragwitness.privacy.mechanism.release import select

    rows, query, noise = _material(case.documents, shape)
    ids = select(rows.astype(np.int64) @ query + noise, shape.top).ids
    with tempfile.TemporaryDirectory() as made:
        _, setup = _timed(lambda: make_setup(Path(made), shape))
        keys = load_prover_setup(Path(made))
        keys.keys("link.key")  # read once in a process that proves many answers
    secret, window = _timed(lambda: commit_columns(rows, keys))
    context = b"cost"
    proof, prove = _timed(lambda: prove_selection(keys, secret, query, noise, ids, context))
    memory = _memory()
    claim = SelectionClaim(secret.public, query, noise, ids, context)
    _, verify = _timed(lambda: verify_selections(keys.verifier, [claim], [proof]))
    return Cost(
        constraints=len(link_circuit(shape).constraints) * (case.documents // case.slots),
        setup=setup,
        window=window,
        prove=prove,
        verify=verify,
        proof=len(proof),
        memory=memory,
    )


def _material(
    documents: int, shape: Shape
) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int64]]:
    """Random rows and a query, of norms near the scale, and noise within the reach."""
    rng = np.random.default_rng(_SEED)
    drawn = rng.standard_normal((documents + 1, shape.dimension))
    longest = np.linalg.norm(drawn, axis=1, keepdims=True)
    vectors = np.trunc(drawn / longest * shape.scale).astype(np.int16)
    spread = rng.standard_normal(documents) * shape.reach / _SIGMAS
    noise = np.clip(np.rint(spread), -shape.reach, shape.reach).astype(np.int64)
    return vectors[:-1], vectors[-1], noise


def _link_inputs(shape: Shape) -> Inputs:
    """Inputs of one chunk's circuit alone, without the commitments that LINK binds them to."""
    from ragwitness.crypto.proofs.circuits.link import (
        link_commitment,
        link_margins,
        threshold_commitment,
    )
    from ragwitness.crypto.proofs.points import R
    from ragwitness.crypto.proofs.selection.statement import active, order_shifts
    from ragwitness.privacy.mechanism.release import select

    rows, query, noise = _material(shape.slots, shape)
    noisy = rows.astype(np.int64) @ query + noise
    ids = select(noisy, shape.top).ids
    doubled = (2 * noisy + (np.arange(shape.slots) <= ids[-1])).tolist()
    best, masks, salt, point = [doubled[slot] % R for slot in ids], [1, 2, 3], 4, 5
    value = 0
    for coefficient in reversed([*doubled, *masks]):
        value = (value * point + coefficient) % R
    here, slots = active(ids, 0, shape.slots)
    gaps = link_margins(doubled, doubled[ids[-1]], set(ids))
    return {
        "margins": [link_commitment(shape, gaps, masks)],
        "threshold": [threshold_commitment(best, salt)],
        "value": [value],
        "point": [point],
        "active": here,
        "ids": slots,
        "order": order_shifts(ids),
        "scores": [score % R for score in doubled],
        "best": best,
        "salt": [salt],
        "masks": masks,
    }


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """A result and the CPU seconds of this process for it."""
    before = time.process_time()
    result = work()
    return result, time.process_time() - before


def _memory() -> int:
    """Largest resident size of this process, in bytes."""
    try:
        # What getrusage says of a process includes its parent's size when it was started.
        told = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(told.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else 1024 * most


if __name__ == "__main__":
    main()
