"""Other Groth16 provers over the keys of our setup, for Table 1: groth16py and snarkjs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey, holds
from ragwitness.crypto.proofs.groth16.zksnake import ProvingKey, blind
from ragwitness.crypto.proofs.native import from_native_g1, from_native_g2
from ragwitness.crypto.proofs.points import G1, G2, P, R
from ragwitness.crypto.proofs.r1cs import Circuit, Wires
from ragwitness.errors import InputError, RagwitnessError, VerificationError

# iden3's binary files: what snarkjs, rapidsnark and arkworks read (iden3 binfileutils).
#
# Sections of little-endian numbers behind a magic word. ``.wtns`` carries a witness and ``.zkey`` a
# proving key to another prover.

_MONTGOMERY = 1 << 256  # points are stored as x · 2²⁵⁶ modulo P


def wtns_file(wires: Wires) -> bytes:
    """Return the values of all wires as ``.wtns``."""
    header = _modulus(R) + struct.pack("<I", len(wires))
    return _file(b"wtns", 2, {1: header, 2: b"".join(map(_number, wires))})


def zkey_file(key: ProvingKey, circuit: Circuit) -> bytes:
    """Return a proving key as ``.zkey`` of protocol 1 (Groth16), without contributions."""
    verifying = key.verifying
    header = _modulus(P) + _modulus(R)
    header += struct.pack("<3I", circuit.wires, circuit.publics, key.quotient.size)
    header += _g1(verifying.alpha) + _native_1(key.beta) + _g2(verifying.beta)
    header += _g2(verifying.gamma) + _native_1(key.delta) + _g2(verifying.delta)
    entries = list(_entries(circuit))
    # 1 protocol, 2 header, 3 inputs, 4 matrices, 5 to 9 points per wire, 10 no contributions.
    sections = {
        1: struct.pack("<I", 1),
        2: header,
        3: b"".join(map(_g1, verifying.inputs)),
        4: struct.pack("<I", len(entries)) + b"".join(entries),
        5: key.left.encode(_native_1, 64),
        6: key.right.encode(_native_1, 64),
        7: key.right_2.encode(lambda point: _g2(from_native_g2(point)), 128),
        8: key.private.encode(_native_1, 64),
        9: key.quotient.encode(_native_1, 64),
        10: bytes(64) + struct.pack("<I", 0),
    }
    return _file(b"zkey", 1, sections)


def _entries(circuit: Circuit) -> Iterator[bytes]:
    """Matrices A and B; C follows from the product. Coefficients are in Montgomery form twice."""
    for number, row in enumerate(circuit.rows()):
        for matrix, part in enumerate((row.a, row.b)):
            for wire, factor in part.terms.items():
                place = struct.pack("<3I", matrix, number, wire)
                yield place + _number(factor * _MONTGOMERY * _MONTGOMERY % R)


def _native_1(point: Any) -> bytes:
    return _g1(from_native_g1(point))


def _g1(point: G1) -> bytes:
    return b"".join(_number(value * _MONTGOMERY % P) for value in point)


def _g2(point: G2) -> bytes:
    return _g1(point[0]) + _g1(point[1])


def _modulus(value: int) -> bytes:
    return struct.pack("<I", 32) + _number(value)


def _number(value: int) -> bytes:
    return value.to_bytes(32, "little")


def _file(magic: bytes, version: int, sections: Mapping[int, bytes]) -> bytes:
    parts = [magic, struct.pack("<2I", version, len(sections))]
    for number, data in sections.items():
        parts += [struct.pack("<IQ", number, len(data)), data]
    return b"".join(parts)


# Other provers, each as a process of its own over iden3's files: groth16py and snarkjs.
#
# Both are GPL, so nothing of theirs is imported or shipped; whoever has them can use them. They
# prove with the key of the same setup
# (:func:`zkey_file`), so a verifier does not see which of them it was.

BUILT_IN = "built-in"
"""Name of the wheel's own prover in the tables."""

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
        program: Name from :data:`PROGRAMS`.
        zkey: File of the proving key.
        key: Key of the same setup.
        publics: Number of public inputs: the wires behind the first.
        wires: Wires from :meth:`~ragwitness.crypto.proofs.r1cs.Circuit.witness`.

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
    # Verified, then blinded anew: a program's random numbers are not relied on.
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
        done = subprocess.run(
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
