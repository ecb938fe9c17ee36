"""A small setup of the selection circuit, made once, and the verifier's two arithmetics."""

from __future__ import annotations

import pytest

from ragwitness.crypto.proofs import curve
from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.groth16.zksnake import make_key
from ragwitness.crypto.proofs.native import to_native_g1
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.setup import Shape, VerifierSetup, make_srs

LINK_SHAPE = Shape(slots=8, top=3, dimension=4, scale=16, reach=100)


@pytest.fixture(scope="session")
def link_setup() -> ProverSetup:
    """A setup whose norm key is the selection's: proofs of norms cannot be made with it."""
    srs = make_srs(LINK_SHAPE)
    key = make_key(link_circuit(LINK_SHAPE))
    masks = srs.powers[LINK_SHAPE.slots :]
    verifier = VerifierSetup(LINK_SHAPE, srs.tau, masks, key.verifying, key.verifying)
    return ProverSetup(verifier, [to_native_g1(point) for point in srs.powers], lambda name: key)


@pytest.fixture(params=["zksnake", "python"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test runs twice: as with ``[zk]``, and as with ``[verify]`` alone."""
    if request.param == "python":
        monkeypatch.setattr(curve, "fast", lambda: None)
    else:
        assert curve.fast() is not None
    return str(request.param)
