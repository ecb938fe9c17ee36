"""What others' clients say of our statements, and what ours says of theirs."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.keys import PrivateKey
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.statement import PREDICATE, SigstoreKnown, envelope_of, statement_of
from ragwitness.evidence.verifier import verify_pack

GOLDEN = Path(__file__).parents[1] / "golden"
PACK = GOLDEN / "evidence" / "audit-v1.zip"
SIGNED = GOLDEN / "sigstore" / "bundle_v3.txt"
BUNDLE = SIGNED.with_suffix(".txt.sigstore").read_bytes()
ROOT = GOLDEN / "sigstore" / "trusted_root.json"
WHO = ("william@yossarian.net", "https://github.com/login/oauth")
KEY = PrivateKey.generate("auditor")


@pytest.fixture
def envelope() -> dict[str, Any]:
    """An in-toto Statement over a pack in a DSSE envelope."""
    made: dict[str, Any] = json.loads(envelope_of(statement_of(PACK.read_bytes(), PACK.name), KEY))
    return made


def test_securesystemslib_verifies_the_envelope(envelope: dict[str, Any]) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    from securesystemslib.exceptions import VerificationError as NotVerifiedError

    def key_of(key: PrivateKey) -> Any:
        value = {"public": key.public.material.hex()}
        name = sha256(key.public.material).hexdigest()
        return signer.SSlibKey(name, "ed25519", "ed25519", value)

    read = dsse.Envelope.from_dict(json.loads(json.dumps(envelope)))
    assert set(read.verify([key_of(KEY)], 1)) == {sha256(KEY.public.material).hexdigest()}
    assert read.payload_type == "application/vnd.in-toto+json"
    # Another key, another payload, another type: none is signed.
    stranger = PrivateKey("auditor", KEY.kind, bytes([3]) * 32)
    with pytest.raises(NotVerifiedError):
        read.verify([key_of(stranger)], 1)
    for name, value in (
        ("payload", base64.b64encode(b"{}").decode()),
        ("payloadType", "text/plain"),
    ):
        bent = dsse.Envelope.from_dict({**json.loads(json.dumps(envelope)), name: value})
        with pytest.raises(NotVerifiedError):
            bent.verify([key_of(KEY)], 1)


def test_in_toto_attestation_reads_the_statement(envelope: dict[str, Any]) -> None:
    pytest.importorskip("in_toto_attestation")
    from google.protobuf.json_format import ParseDict
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    payload = json.loads(base64.b64decode(envelope["payload"]))
    statement = Statement.copy_from_pb(ParseDict(payload, Message()))
    statement.validate()
    assert statement.pb.predicate_type == PREDICATE
    [subject] = statement.pb.subject
    assert subject.digest["sha256"] == sha256(PACK.read_bytes()).hexdigest()
    payload["subject"] = []
    with pytest.raises(ValueError, match="subject"):
        Statement.copy_from_pb(ParseDict(payload, Message())).validate()


def test_openssl_verifies_the_signature(envelope: dict[str, Any], tmp_path: Path) -> None:
    """Without any library of attestations: the bytes that DSSE says are signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    kind, body = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    message = b" ".join([b"DSSEv1", b"%d" % len(kind), kind, b"%d" % len(body), body])
    public = Ed25519PublicKey.from_public_bytes(KEY.public.material)
    (tmp_path / "key.pem").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    (tmp_path / "message").write_bytes(message)
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in message -sigfile sig"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True)
    assert "Verified Successfully" in done.stdout, done.stderr


# Sigstore: identity and log entry, offline.


def _known(**change: Any) -> SigstoreKnown:
    values = {"bundle": BUNDLE, "identity": WHO[0], "issuer": WHO[1], "root": ROOT}
    return SigstoreKnown(**values | change)


def test_a_sigstore_bundle_is_verified_with_identity_and_log_entry() -> None:
    pytest.importorskip("sigstore")
    said = _known().check(SIGNED.read_bytes())
    assert said == f"{WHO[0]} ({WHO[1]}), entry 25915956"


@pytest.mark.parametrize(
    "change",
    [
        {"identity": "eve@example.org"},
        {"issuer": "https://accounts.example.org"},
        {"bundle": b"{}"},
        {"bundle": b"no JSON"},
        {"bundle": BUNDLE.replace(b'"logIndex": "25915956"', b'"logIndex": "25915957"')},
        {"root": None},  # Sigstore's production: another log, other authorities
    ],
    ids=["another signer", "another issuer", "empty", "no JSON", "another entry", "another root"],
)
def test_a_sigstore_bundle_that_does_not_hold(change: dict[str, Any]) -> None:
    pytest.importorskip("sigstore")
    assert change.get("bundle") != BUNDLE
    with pytest.raises(VerificationError) as error:
        _known(**change).check(SIGNED.read_bytes())
    assert error.value.check == "sigstore"


def test_a_sigstore_bundle_of_another_file() -> None:
    pytest.importorskip("sigstore")
    with pytest.raises(VerificationError):
        _known().check(PACK.read_bytes())


def test_a_sigstore_bundle_without_a_signer_names_both_options() -> None:
    pytest.importorskip("sigstore")
    with pytest.raises(InputError, match="needs a signer"):
        _known(identity="").check(SIGNED.read_bytes())


def test_who_signed_through_sigstore_is_known_beforehand() -> None:
    found = verify_pack(PACK.read_bytes(), PackKnown(signed_by="a@example.org (https://i)"))
    known = next(check for check in found.checks if check.name == "seal.known")
    assert (known.status, "signed through Sigstore by a@example.org" in known.detail) == (
        "pass",
        True,
    )


def test_verify_refuses_a_bundle_of_another_file_before_it_reads_the_pack(tmp_path: Path) -> None:
    pytest.importorskip("sigstore")
    command = [
        sys.executable, "-P", "-m", "ragwitness", "verify", str(PACK),
        "--sigstore", str(SIGNED.with_suffix(".txt.sigstore")), "--roots", str(ROOT),
        "--identity", WHO[0], "--issuer", WHO[1],
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert "error: sigstore:" in done.stderr
