"""Proofs in another verifier's form: they hold as they are read back, and altered ones do not."""

import json
from pathlib import Path

import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.export import snarkjs_files
from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey, holds
from ragwitness.errors import VerificationError
from tests.cli.conftest import command  # noqa: F401
from tests.support.attested import LOG

pytestmark = pytest.mark.slow


def _point(found):
    """A point of snarkjs's JSON, of either group."""
    *rest, last = found
    assert last in ("1", ["1", "0"])
    return tuple(tuple(map(int, one)) if isinstance(one, list) else int(one) for one in rest)


def _read(files, name):
    circuit = name.partition("/")[0]
    key = json.loads(files[f"{circuit}/verification_key.json"])
    points = [_point(key[f"vk_{one}"]) for one in ("alpha_1", "beta_2", "gamma_2", "delta_2")]
    verifying = VerifyingKey(*points, tuple(map(_point, key["IC"])))
    inputs = [int(text) for text in json.loads(files[f"{name}/public.json"])]
    assert key["nPublic"] == len(inputs)
    held = json.loads(files[f"{name}/proof.json"])
    return verifying, inputs, Proof(*(_point(held[one]) for one in ("pi_a", "pi_b", "pi_c")))


def test_every_proof_holds_as_it_is_written_and_no_altered_one(audited):
    files, bundle = snarkjs_files(audited.bundle), read_bundle(audited.bundle)
    names = {name.removesuffix("/proof.json") for name in files if name.endswith("proof.json")}
    assert names == {
        *(f"link/record-{place}-chunk-0" for place in bundle.records),
        *(f"norm/tenant-{place}-chunk-0" for place in range(bundle.tenants)),
    }
    for name in sorted(names):
        key, inputs, proof = _read(files, name)
        assert holds(key, inputs, proof)
        for place in range(len(inputs)):
            assert not holds(key, [*inputs[:place], inputs[place] ^ 1, *inputs[place + 1 :]], proof)
        assert not holds(key, inputs, Proof(proof.c, proof.b, proof.a))


def test_an_altered_bundle_is_not_exported(audited):
    torn = audited.bundle[:-1]
    wrong = bytearray(audited.bundle)
    wrong[len(wrong) // 2] ^= 1
    for data in (torn, bytes(wrong)):
        with pytest.raises(VerificationError):
            snarkjs_files(data)
    bundle = read_bundle(audited.bundle)
    norms = dict(bundle.files) | {"tenants/0/norms.bin": bundle.files["tenants/0/norms.bin"][:-1]}
    with pytest.raises(VerificationError) as found:
        snarkjs_files(write_bundle(bundle.window, norms, (LOG,)))
    assert found.value.check == "norm.size"


def test_the_verb_writes_a_folder_once(audited, tmp_path: Path, command):  # noqa: F811
    (tmp_path / "bundle.zip").write_bytes(audited.bundle)
    verb = ("attest", "export", tmp_path / "bundle.zip", "-o", tmp_path / "out")
    code, text = command(*verb)
    assert code == 0, text
    assert "snarkjs groth16 verify" in text
    written = {
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.json")
    }
    assert written == set(snarkjs_files(audited.bundle))
    code, text = command(*verb)
    assert (code, "not overwritten" in text) == (2, True)
