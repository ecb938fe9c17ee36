"""A setup's files: made, read, refused; and a proof from the files alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.crypto.canonical import canonical
from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.circuits.norm import norm_circuit
from ragwitness.crypto.proofs.points import encode_g1
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.provider import (
    commit_columns,
    load_prover_setup,
    make_setup,
    prove_selection,
)
from ragwitness.crypto.proofs.selection.verify import verify_selections
from ragwitness.crypto.proofs.setup import CeremonySeal, Shape, VerifierSetup, make_srs
from ragwitness.errors import InputError, VerificationError
from tests.unit.crypto.proofs.selection.proving_link import claim_of


@pytest.fixture(scope="module")
def setup(link_setup: ProverSetup) -> VerifierSetup:
    """A setup with a norm key of the right size, whatever it verifies."""
    key = link_setup.verifier.link
    return replace(link_setup.verifier, norm=replace(key, inputs=key.inputs[:7]))


def test_a_setup_is_read_back(setup: VerifierSetup) -> None:
    assert VerifierSetup.parse(setup.encode()) == setup
    assert len(setup.encode()) < 1 << 16
    assert setup.digest == VerifierSetup.parse(setup.encode()).digest
    assert replace(setup, masks=setup.masks[::-1]).digest != setup.digest
    many = replace(setup, ceremony=CeremonySeal("ab" * 32, (("ann", "bob"), ("cid",))))
    assert VerifierSetup.parse(many.encode()) == many


def test_the_largest_answer_still_fits_in_the_file(setup: VerifierSetup) -> None:
    shape = Shape(slots=4096, top=32, dimension=1024, scale=4096, reach=1 << 40)
    inputs = setup.link.inputs[:1] * (1 + link_circuit_publics(shape))
    large = replace(setup, shape=shape, link=replace(setup.link, inputs=inputs))
    assert VerifierSetup.parse(large.encode()) == large


def link_circuit_publics(shape: Shape) -> int:
    return 4 + 3 * shape.top - 1


def test_the_keys_have_the_circuits_inputs(link_setup: ProverSetup) -> None:
    shape = link_setup.shape
    assert link_circuit(shape).publics == link_circuit_publics(shape)
    assert norm_circuit(shape).publics == 6


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"version": "ragwitness/setup/v3"}, "setup.version"),
        ({"version": "ragwitness/setup/v2"}, "setup.ceremony"),
        ({"ceremony": {"contributors": [["a"], ["b"]], "transcript": "ab" * 32}}, "setup.fields"),
        *(
            ({"version": "ragwitness/setup/v2", "ceremony": ceremony}, check)
            for ceremony, check in (
                (1, "setup.ceremony"),
                ({"contributors": [["a"], ["b"]]}, "setup.ceremony"),
                ({"contributors": [["a"]], "transcript": "ab" * 32}, "setup.ceremony"),
                ({"contributors": [["a"], []], "transcript": "ab" * 32}, "setup.ceremony"),
                ({"contributors": [["a"], [1]], "transcript": "ab" * 32}, "setup.ceremony"),
                ({"contributors": [["a"], ["b"]], "transcript": 1}, "setup.ceremony"),
                ({"contributors": [["a"], ["b"]], "transcript": "ab"}, "setup.hex"),
            )
        ),
        ({"more": 1}, "setup.fields"),
        ({"masks": []}, "setup.fields"),
        ({"masks": "x"}, "setup.fields"),
        ({"masks": ["0" * 128] * 3}, "setup.fields"),
        ({"masks": [1, 2, 3]}, "setup.fields"),
        ({"masks": ["1" * 128] * 3}, "setup.curve"),
        ({"masks": ["f" * 128] * 3}, "setup.field"),
        ({"masks": ["F" * 128] * 3}, "setup.hex"),
        ({"tau": "0" * 256}, "setup.fields"),
        ({"tau": "1" * 256}, "setup.curve"),
        ({"tau": "0"}, "setup.hex"),
        ({"link": 7}, "setup.fields"),
        ({"link": "00"}, "setup.key"),
        ({"link": "0"}, "setup.hex"),
        ({"norm": "00" * 64 * 14}, "setup.key"),
        ({"shape": 1}, "setup.shape"),
        ({"shape": {"slots": 8}}, "setup.shape"),
        ({"shape": {"slots": 8, "top": 9, "dimension": 4, "scale": 1, "reach": 0}}, "setup.shape"),
        (
            {"shape": {"slots": 8, "top": "3", "dimension": 4, "scale": 1, "reach": 0}},
            "setup.shape",
        ),
        ({"shape": {"slots": 8, "top": 2, "dimension": 4, "scale": 16, "reach": 100}}, "setup.key"),
    ],
)
def test_every_other_setup_is_refused_by_name(
    setup: VerifierSetup, change: dict[str, object], check: str
) -> None:
    fields = json.loads(setup.encode()) | change
    refused(check, canonical(fields))


def refused(check: str, data: bytes) -> None:
    with pytest.raises(VerificationError) as caught:
        VerifierSetup.parse(data)
    assert caught.value.check == check


def test_other_texts_of_a_setup_are_refused(setup: VerifierSetup) -> None:
    data = setup.encode()
    refused("setup.canonical", data.replace(b":", b": ", 1))
    refused("setup.size", data + b" " * (1 << 16))
    refused("setup.syntax", data[:-1])
    refused("setup.version", b"[]")
    refused("setup.fields", canonical({"version": "ragwitness/setup/v1"}))


@pytest.mark.slow
def test_a_folder_is_made_once_and_proves(tmp_path: Path) -> None:
    shape = Shape(slots=4, top=1, dimension=2, scale=8, reach=50)
    folder = tmp_path / "setup"
    verifier = make_setup(folder, shape)
    assert {path.name for path in folder.iterdir()} == {
        "setup.json",
        "srs.bin",
        "link.key",
        "norm.key",
    }
    with pytest.raises(InputError, match="holds a setup already"):
        make_setup(folder, shape)
    loaded = load_prover_setup(folder)
    assert loaded.verifier == verifier
    secret = commit_columns(np.array([[1, 2], [3, 4], [-5, 6], [0, 0]], np.int16), loaded)
    claim = claim_of(secret, np.array([3, -4], np.int16), np.array([1, 2, 50, 4]))
    claim = replace(claim, ids=claim.ids[:1])
    proof = prove_selection(loaded, secret, claim.query, claim.noise, claim.ids, claim.context)
    setup = VerifierSetup.parse((folder / "setup.json").read_bytes())
    verify_selections(setup, [claim], [proof])
    _damage(folder, shape)


def _damage(folder: Path, shape: Shape) -> None:
    """Files of another setup, or none, are refused."""
    kept = (folder / "srs.bin").read_bytes()
    (folder / "srs.bin").write_bytes(make_srs(shape).encode())
    with pytest.raises(VerificationError, match="two setups") as caught:
        load_prover_setup(folder)
    assert caught.value.check == "srs.setup"
    wrong = bytearray(kept)
    wrong[-5 * 64 : -4 * 64] = encode_g1((1, 2))
    (folder / "srs.bin").write_bytes(wrong)
    with pytest.raises(VerificationError) as caught:
        load_prover_setup(folder)
    assert caught.value.check == "srs.powers"
    (folder / "srs.bin").write_bytes(kept)
    (folder / "link.key").unlink()
    with pytest.raises(InputError, match=r"Cannot read .*link\.key"):
        load_prover_setup(folder).keys("link.key")
    (folder / "setup.json").unlink()
    with pytest.raises(InputError, match="Cannot read"):
        load_prover_setup(folder)
