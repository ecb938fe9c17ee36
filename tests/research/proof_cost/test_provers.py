"""Other provers: iden3's files, read again by the test's own reader, and programs' proofs."""

import struct

import pytest

from ragwitness.crypto.proofs.gadgets import hash_inputs, poseidon, ranged
from ragwitness.crypto.proofs.groth16 import holds
from ragwitness.crypto.proofs.groth16.zksnake import make_key
from ragwitness.crypto.proofs.points import P, R
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.errors import InputError, RagwitnessError
from research.proof_cost import provers
from research.proof_cost.provers import wtns_file, zkey_file


def _circuit():
    circuit = Circuit("test")
    [result] = circuit.public("result")
    values = circuit.private("value", 2)
    ranged(circuit, values[0], 4, "in range")
    circuit.zero(hash_inputs(circuit, values, "hash") - result, "result")
    return circuit


CIRCUIT = _circuit()
WIRES = CIRCUIT.witness({"result": [poseidon([5, 6])], "value": [5, 6]})


def _sections(data, magic, version):
    assert data[:4] == magic
    found, place = {}, 12
    assert struct.unpack("<2I", data[4:12])[0] == version
    while place < len(data):
        number, size = struct.unpack_from("<IQ", data, place)
        found[number] = data[place + 12 : place + 12 + size]
        place += 12 + size
    assert len(found) == struct.unpack("<2I", data[4:12])[1]
    return found


def _numbers(data):
    return [int.from_bytes(data[i : i + 32], "little") for i in range(0, len(data), 32)]


def test_a_witness_is_read_back():
    witness = _sections(wtns_file(WIRES), b"wtns", 2)
    size, modulus, count = struct.unpack("<I32sI", witness[1])
    assert (size, int.from_bytes(modulus, "little"), count) == (32, R, CIRCUIT.wires)
    assert _numbers(witness[2]) == WIRES


def test_a_key_has_the_points_of_its_setup():
    key = make_key(CIRCUIT)
    sections = _sections(zkey_file(key, CIRCUIT), b"zkey", 1)
    assert struct.unpack("<I", sections[1]) == (1,)
    domain = key.quotient.size
    assert domain >= len(list(CIRCUIT.rows())) > domain // 2
    assert struct.unpack_from("<3I", sections[2], 72) == (CIRCUIT.wires, 1, domain)
    lengths = {n: len(sections[n]) for n in (3, 5, 6, 7, 8, 9)}
    wires = CIRCUIT.wires
    assert lengths == {
        3: 2 * 64,
        5: wires * 64,
        6: wires * 64,
        7: wires * 128,
        8: (wires - 2) * 64,
        9: domain * 64,
    }
    shrink = pow(2, -256, P)
    alpha = tuple(value * shrink % P for value in _numbers(sections[2][84:148]))
    assert alpha == key.verifying.alpha


def test_a_keys_matrices_are_the_circuits():
    sections = _sections(zkey_file(make_key(CIRCUIT), CIRCUIT), b"zkey", 1)
    [count] = struct.unpack_from("<I", sections[4])
    assert len(sections[4]) == 4 + 44 * count
    shrink, found = pow(2, -512, R), {}
    for place in range(4, len(sections[4]), 44):
        matrix, row, wire = struct.unpack_from("<3I", sections[4], place)
        value = int.from_bytes(sections[4][place + 12 : place + 44], "little")
        found[matrix, row, wire] = value * shrink % R
    expected = {
        (matrix, number, wire): factor
        for number, row in enumerate(CIRCUIT.rows())
        for matrix, part in enumerate((row.a, row.b))
        for wire, factor in part.terms.items()
    }
    assert found == expected


@pytest.fixture(scope="module")
def key():
    return make_key(CIRCUIT)


@pytest.mark.parametrize("program", provers.PROGRAMS)
def test_other_programs_prove_with_the_same_key(key, tmp_path, monkeypatch, program):
    if program not in provers.available():
        pytest.skip(f"{program} is not installed")
    (tmp_path / "groth16py.py").write_text("raise SystemExit('what lies about is not run')")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "key.zkey"
    path.write_bytes(zkey_file(key, CIRCUIT))
    proof = provers.prove(program, path, key.verifying, 1, WIRES)
    assert holds(key.verifying, WIRES[1:2], proof)
    with pytest.raises(InputError, match="does not hold"):
        provers.prove(program, path, make_key(CIRCUIT).verifying, 1, WIRES)


def test_programs_that_are_missing_or_fail(key, tmp_path, monkeypatch):
    monkeypatch.setenv(provers.SNARKJS_VARIABLE, str(tmp_path / "none"))
    assert "snarkjs" not in provers.available()
    for name in ("snarkjs", "other"):
        with pytest.raises(InputError, match="is not installed"):
            provers.prove(name, tmp_path, key.verifying, 1, WIRES)
    script = tmp_path / "snarkjs"
    script.write_text("#!/bin/sh\necho it broke >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setenv(provers.SNARKJS_VARIABLE, str(script))
    with pytest.raises(RagwitnessError, match="failed with code 3: it broke"):
        provers.prove("snarkjs", tmp_path, key.verifying, 1, WIRES)
    script.write_text('#!/bin/sh\necho "{}" > "$5"\n')
    with pytest.raises(RagwitnessError, match="wrote no proof"):
        provers.prove("snarkjs", tmp_path, key.verifying, 1, WIRES)
