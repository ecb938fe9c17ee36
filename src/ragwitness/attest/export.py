"""The circuits' proofs of a bundle for snarkjs, another verifier of Groth16."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragwitness.attest.bundle import read_bundle
from ragwitness.attest.commitments import norm_context
from ragwitness.attest.verifier.evidence import BundleEvidence, read_evidence

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.curve import G1, G2
    from ragwitness.crypto.proofs.groth16 import Proof, VerifyingKey

KEY = "verification_key.json"


def snarkjs_files(data: bytes) -> dict[str, str]:
    """Return what ``snarkjs groth16 verify`` needs, by path in a folder.

    ``link/`` holds a key and a folder for each chunk of each opened record, ``norm/`` a key and a
    folder for each chunk of each tenant. The public inputs are computed here, from what the bundle
    opens and from the challenges of its proofs. What snarkjs then accepts is the circuits' part of
    LINK and NORM: that their inputs are those of committed columns, :func:`.verify` alone checks.

    Args:
        data: The bundle.

    Raises:
        VerificationError: The bundle, or a file in it, is not in its one form.
        MissingExtraError: py_ecc is not installed.
    """
    # The forms and digests of all files first; an altered bundle is not exported.
    evidence = read_evidence(read_bundle(data))
    if isinstance(evidence, list):
        raise evidence[0]
    files = {
        f"link/{KEY}": _key_json(evidence.setup.link),
        f"norm/{KEY}": _key_json(evidence.setup.norm),
    }
    for name, inputs, proof in (*_links(evidence), *_norms(evidence)):
        # The public inputs in the circuit's order.
        files[f"{name}/public.json"] = _json([str(value) for value in inputs])
        points = {"pi_a": _g1(proof.a), "pi_b": _g2(proof.b), "pi_c": _g1(proof.c)}
        files[f"{name}/proof.json"] = _json({**points, **_KIND})
    return files


def _links(evidence: BundleEvidence) -> Iterator[tuple[str, Sequence[int], Proof]]:
    from ragwitness.crypto.proofs.selection.statement import SelectionProof, public_inputs

    shape = evidence.setup.shape
    for place, record, found in evidence.challenged:
        chunks = len(evidence.columns[evidence.tenants[record.tenant]].chunks)
        proof = SelectionProof.parse(evidence.bundle.files[f"records/{place}.proof"], chunks)
        point, _ = proof.challenges
        for chunk, part in enumerate(proof.chunks):
            inputs = public_inputs(shape, found.ids, proof.threshold, part, chunk, point)
            yield f"link/record-{place}-chunk-{chunk}", inputs, part.groth16


def _norms(evidence: BundleEvidence) -> Iterator[tuple[str, Sequence[int], Proof]]:
    from ragwitness.crypto.proofs.norms.proof import Conversation, circuit_inputs
    from ragwitness.crypto.proofs.norms.verify import parse_norms

    setup, window = evidence.setup, evidence.policy.window
    for name, place in evidence.tenants.items():
        columns = evidence.columns[place]
        parts = parse_norms(setup, columns, evidence.bundle.tenant(place, "norms.bin"))
        for chunk, part in enumerate(parts):
            context = norm_context(window, name)
            talk = Conversation(setup.shape, setup.digest, columns.digest, context, chunk)
            challenges = talk.challenges(part.commitment, part.masks)
            inputs = circuit_inputs(part.commitment, challenges, part.total)
            yield f"norm/tenant-{place}-chunk-{chunk}", [*inputs.values()], part.circuit


# The JSON that snarkjs reads: decimal numbers as texts, points with a third coordinate.

_KIND = {"protocol": "groth16", "curve": "bn128"}  # bn128: what iden3 calls BN254


def _key_json(key: VerifyingKey) -> str:
    """Return ``verification_key.json`` of a circuit."""
    return _json(
        {
            **_KIND,
            "nPublic": len(key.inputs) - 1,
            "vk_alpha_1": _g1(key.alpha),
            "vk_beta_2": _g2(key.beta),
            "vk_gamma_2": _g2(key.gamma),
            "vk_delta_2": _g2(key.delta),
            "IC": [_g1(point) for point in key.inputs],
        }
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"


def _g1(point: G1) -> list[str]:
    # Projective; nothing but infinity has a z of 0.
    return ["0", "1", "0"] if point == (0, 0) else [*map(str, point), "1"]


def _g2(point: G2) -> list[list[str]]:
    if point == ((0, 0), (0, 0)):
        return [["0", "0"], ["1", "0"], ["0", "0"]]
    return [*([str(part) for part in value] for value in point), ["1", "0"]]
