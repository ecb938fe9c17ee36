"""Proofs that held are not multiplied again: a check of a proof is a function of its bytes."""

import hashlib
import os

import pytest

from ragwitness.crypto.proofs.norms import verify as norms
from ragwitness.crypto.proofs.selection import statement
from ragwitness.crypto.proofs.selection import verify as selection


def remember_proofs(patch: pytest.MonkeyPatch) -> None:
    """Remember what held under the SHA-256 of all that goes in; what does not is checked always."""
    held = set()

    def remembering(check, parts):
        def checked(*given):
            name = hashlib.sha256(b"".join(hashlib.sha256(p).digest() for p in parts(*given)))
            if name.digest() not in held:
                check(*given)
                held.add(name.digest())

        return checked

    def of_norms(setup, columns, context, proof):
        return setup.digest_bytes, columns.encode(), context, proof

    def of_selections(setup, claims, proofs, beside=()):
        sides = [(statement.statement_digest(setup.digest_bytes, c), c) for c in claims]
        said = [digest + statement.noise_digest(claim) for digest, claim in sides]
        once = os.urandom(16) if beside else b""  # equations have no bytes: checked every time
        return [b"selections", once, *said, b"proofs", *proofs]

    patch.setattr(norms, "verify_norms", remembering(norms.verify_norms, of_norms))
    patch.setattr(
        selection, "verify_selections", remembering(selection.verify_selections, of_selections)
    )
