"""iden3's binary files: what snarkjs, rapidsnark and arkworks read (iden3 binfileutils).

Sections of little-endian numbers behind a magic word. ``.wtns`` carries a witness and ``.zkey`` a
proving key to another prover.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ragwitness.crypto.proofs.field import P, R
from ragwitness.crypto.proofs.groth16.proving_key import ProvingKey
from ragwitness.crypto.proofs.native import from_native_g1, from_native_g2
from ragwitness.crypto.proofs.points import G1, G2
from ragwitness.crypto.proofs.r1cs import Circuit, Wires

__all__ = ["wtns_file", "zkey_file"]

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
    sections = {
        1: struct.pack("<I", 1),
        2: header,
        3: b"".join(map(_g1, verifying.inputs)),
        4: struct.pack("<I", len(entries)) + b"".join(entries),
        5: key.left.encode(_native_1, 64),
        6: key.right.encode(_native_1, 64),
        7: key.right_2.encode(_native_2, 128),
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


def _native_2(point: Any) -> bytes:
    return _g2(from_native_g2(point))


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
