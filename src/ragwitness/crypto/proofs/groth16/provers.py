"""Back ends that make Groth16 proofs with the keys of one setup (G3): built in, or a program's."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey, processes, zksnake
from ragwitness.crypto.proofs.groth16.proving_key import ProvingKey
from ragwitness.crypto.proofs.iden3 import zkey_file
from ragwitness.crypto.proofs.r1cs import Circuit, Wires
from ragwitness.errors import InputError

__all__ = ["BUILT_IN", "CircuitKeys", "Prover", "built_in", "prover_named"]

BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class CircuitKeys:
    """The keys of one circuit of a setup.

    Attributes:
        name: ``"link"`` or ``"norm"``.
        verifying: The verifier's part.
        proving: Returns the prover's part; reading it takes seconds, so not before it is needed.
    """

    name: str
    verifying: VerifyingKey
    proving: Callable[[], ProvingKey]


class Prover(Protocol):
    """Proves that wires satisfy a circuit; a verifier does not see which prover it was."""

    def __call__(self, keys: CircuitKeys, circuit: Circuit, wires: Wires) -> Proof:
        """Return a proof that holds under ``keys.verifying``.

        Raises:
            InputError: The wires do not satisfy the circuit, or the prover is not installed.
        """
        ...


def prover_named(name: str, folder: Path) -> Prover:
    """Return a back end.

    Args:
        name: :data:`BUILT_IN`, or a program of :data:`~.processes.PROGRAMS`.
        folder: Of the setup; a program's form of the keys is kept there.

    Raises:
        InputError: There is no such back end, or it is not installed.
    """
    if name == BUILT_IN:
        return built_in
    if name not in processes.PROGRAMS:
        known = ", ".join((BUILT_IN, *processes.PROGRAMS))
        raise InputError(f"There is no prover {name!r}.", f"Use one of {known}.")
    if name not in processes.available():
        raise InputError(
            f"The prover {name!r} is not installed.",
            f"Install it: {processes.PROGRAMS[name]}; or leave --prover out.",
        )
    return _Program(name, folder)


def built_in(keys: CircuitKeys, circuit: Circuit, wires: Wires) -> Proof:
    """Prove in this process, with zksnake's arithmetic; see :class:`Prover`."""
    return zksnake.prove(keys.proving(), circuit, wires)


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    folder: Path

    def __call__(self, keys: CircuitKeys, circuit: Circuit, wires: Wires) -> Proof:
        path = self.folder / f"{keys.name}.zkey"
        if not path.exists():
            _write(path, zkey_file(keys.proving(), circuit))
        return processes.prove(self.name, path, keys.verifying, circuit.publics, wires)


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)  # whole or not at all
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {error.strerror}.",
            "Copy the setup to a folder of your own; other provers keep their keys there.",
        ) from error
