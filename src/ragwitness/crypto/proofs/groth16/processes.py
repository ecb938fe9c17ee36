"""Other provers, each as a process of its own over iden3's files: groth16py and snarkjs.

Both are GPL, so nothing of theirs is imported or shipped; whoever has them can use them. They
prove with the key of the same setup (:func:`~ragwitness.crypto.proofs.iden3.zkey_file`), so a
verifier does not see which of them it was.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey
from ragwitness.crypto.proofs.groth16.verify import holds
from ragwitness.crypto.proofs.groth16.zksnake import blind
from ragwitness.crypto.proofs.iden3 import wtns_file
from ragwitness.crypto.proofs.r1cs import Wires
from ragwitness.errors import InputError, RagwitnessError, VerificationError

__all__ = ["PROGRAMS", "available", "prove"]

SNARKJS_VARIABLE = "RAGWITNESS_SNARKJS"
"""Environment variable with the path of snarkjs, or of its ``cli.cjs``."""

PROGRAMS: Mapping[str, str] = {
    "groth16py": "pip install groth16py",
    "snarkjs": f"npm install snarkjs, and set {SNARKJS_VARIABLE} to its build/cli.cjs",
}
"""Name to how it is installed."""

_SECONDS = 3600  # then it is taken to hang
_GROTH16PY = """
import sys, groth16py
key, _ = groth16py.import_zkey(sys.argv[1])
open(sys.argv[3], "wb").write(groth16py.prove_wtns(key, sys.argv[2]))
"""


def available() -> tuple[str, ...]:
    """Return the names of the programs that are installed here."""
    return tuple(name for name in PROGRAMS if _command(name))


def prove(program: str, zkey: Path, key: VerifyingKey, publics: int, wires: Wires) -> Proof:
    """Return another program's proof that the wires satisfy a circuit, verified and blinded anew.

    Args:
        program: Of :data:`PROGRAMS`.
        zkey: File of the proving key.
        key: Of the same setup.
        publics: Number of public inputs: the wires behind the first.
        wires: Of :meth:`~ragwitness.crypto.proofs.r1cs.Circuit.witness`.

    Raises:
        InputError: The program is unknown or not installed, or the wires do not satisfy the circuit
            that the key is for.
        RagwitnessError: The program failed; the message holds its last line.
    """
    command = _command(program)
    if not command:
        raise InputError(
            f"{program!r} is not installed, or no prover.",
            f"Install it with: {PROGRAMS[program]}." if program in PROGRAMS else "",
        )
    with tempfile.TemporaryDirectory() as folder:
        witness, result = Path(folder, "wires.wtns"), Path(folder, "proof")
        witness.touch(mode=0o600)  # it holds secrets
        witness.write_bytes(wtns_file(wires))
        arguments = [str(zkey.resolve()), str(witness), str(result)]
        if program == "snarkjs":
            arguments.append(str(Path(folder, "public")))
        _run(program, [*command, *arguments])
        proof = _proof(program, result.read_bytes())
    if not holds(key, wires[1 : 1 + publics], proof):
        raise InputError(
            f"What {program} proved does not hold: the witness or the proving key is another's.",
            "Export the key again, and check the witness.",
        )
    return blind(key, proof)


def _command(program: str) -> list[str]:
    """How it is started, without files; empty where it is not installed."""
    if program == "groth16py" and importlib.util.find_spec("groth16py"):
        return [sys.executable, "-P", "-c", _GROTH16PY]  # -P: not from the current folder
    path = os.environ.get(SNARKJS_VARIABLE) or shutil.which("snarkjs")
    if program != "snarkjs" or not path or not Path(path).is_file():
        return []
    if Path(path).suffix not in (".js", ".cjs"):
        return [path, "groth16", "prove"]
    node = shutil.which("node")
    return [node, path, "groth16", "prove"] if node else []


def _run(program: str, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own list, no shell
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RagwitnessError(f"{program} did not run to its end: {error}.") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        raise RagwitnessError(
            f"{program} failed with code {done.returncode}: {lines[-1][:200]}",
            "Check that the files are of this setup, or use the built-in prover.",
        )


def _proof(program: str, data: bytes) -> Proof:
    try:
        if program == "groth16py":
            return Proof.parse(data)
        held = json.loads(data)
        (ax, ay, _), (bx, by, _), (cx, cy, _) = (held[name] for name in ("pi_a", "pi_b", "pi_c"))
        b = tuple(map(int, bx)), tuple(map(int, by))
        proof = Proof((int(ax), int(ay)), b, (int(cx), int(cy)))  # type: ignore[arg-type]
        return Proof.parse(proof.encode())
    except (ValueError, KeyError, TypeError, OverflowError, VerificationError) as error:
        raise RagwitnessError(f"{program} wrote no proof: {error}.") from error
