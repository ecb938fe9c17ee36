"""An evidence pack in the words of other tools: an in-toto Statement in a DSSE envelope, Sigstore.

The envelope is that of DSSE v1.0.2, the statement that of in-toto v1; ``docs/predicate.md`` has the
predicate's schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragwitness.attest.verdict import refuse
from ragwitness.core.errors import InputError, import_extra
from ragwitness.core.run_files import SEAL
from ragwitness.crypto.hashing import b64
from ragwitness.crypto.keys import PrivateKey
from ragwitness.evidence.pack import read_pack
from ragwitness.evidence.subject import result_digest

PREDICATE = "urn:ragwitness:evidence-pack:v1"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PAYLOAD = "application/vnd.in-toto+json"


def statement_of(pack: bytes, name: str) -> dict[str, Any]:
    """Return the statement about a pack: its digest, and what its signer says of it.

    Raises:
        VerificationError: It is no pack.
    """
    parsed = read_pack(pack)
    seal = parsed.seal
    predicate = {
        "task": seal.task,
        "system": seal.system,
        "address": str(seal.settings.get("target", "")),
        "sealedOn": seal.begun,
        "seal": {"sha256": sha256(parsed.files[SEAL]).hexdigest()},
        "result": {"sha256": result_digest(parsed.result)},
        "key": parsed.key.text,
        "answers": {"recorded": len(parsed.answers), "opened": len(parsed.answers) - parsed.silent},
        "texts": {"sealed": len(parsed.texts), "opened": len(parsed.texts) - parsed.hidden},
        "runsLogged": seal.logged,
    }
    subject = {"name": name, "digest": {"sha256": sha256(pack).hexdigest()}}
    return {
        "_type": _STATEMENT,
        "subject": [subject],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }


def envelope_of(statement: dict[str, Any], key: PrivateKey) -> bytes:
    """Return a statement in a DSSE envelope; the key's id is SHA-256 of its 32 public bytes."""
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    # DSSE, "pre-authentication encoding": type and body, each with its length before it.
    message = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD), _PAYLOAD.encode(), len(payload), payload)
    key_id = sha256(key.public.material).hexdigest()
    signature = {"keyid": key_id, "sig": b64(key.sign(message))}
    envelope = {"payloadType": _PAYLOAD, "payload": b64(payload), "signatures": [signature]}
    return (json.dumps(envelope) + "\n").encode()


@dataclass(frozen=True, slots=True)
class SigstoreKnown:
    """A Sigstore bundle over a pack, and the identity that must have signed.

    Attributes:
        bundle: The bundle, JSON.
        identity: Mail address or URI in the certificate.
        issuer: URL of the identity's provider.
        root: Sigstore's ``trusted_root.json``; None takes the one in the package ``sigstore``.
    """

    bundle: bytes
    identity: str
    issuer: str
    root: Path | None = None

    def check(self, data: bytes) -> str:
        """Check certificate, identity, log entry and signature, offline; return who signed.

        Raises:
            InputError: Identity or issuer is missing, or the root cannot be read.
            MissingExtraError: The extra ``sigstore`` is not installed.
            VerificationError: ``sigstore``; the bundle does not hold.
        """
        models = import_extra("sigstore.models", "A Sigstore bundle", "sigstore")
        from sigstore import errors, verify

        if not (self.identity and self.issuer):
            raise InputError("A Sigstore bundle needs a signer.", "Give --identity and --issuer.")
        root = (
            models.TrustedRoot.from_file(str(self.root))
            if self.root
            else models.ClientTrustConfig.production(offline=True).trusted_root
        )
        try:
            bundle = models.Bundle.from_json(self.bundle)
            policy = verify.policy.Identity(identity=self.identity, issuer=self.issuer)
            verify.Verifier(trusted_root=root).verify_artifact(data, bundle, policy)
        except (errors.Error, ValueError) as error:
            raise refuse("sigstore", f"The Sigstore bundle does not hold: {error}") from error
        return f"{self.identity} ({self.issuer}), entry {bundle.log_entry._inner.log_index}"
