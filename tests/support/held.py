"""Proofs that held are not multiplied again: a check of a proof is a function of its bytes."""

import hashlib

import pytest

from ragwitness.crypto.proofs import norms, selection


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

    def of_norms(shape, columns, context, proof):
        return shape.digest, columns.encode(), context, proof

    def of_answers(shape, answers):
        heads = [claim.heads(shape) for claim, _ in answers.values()]
        return [b"answers", *heads, b"proofs", *(proof for _, proof in answers.values())]

    patch.setattr(norms, "verify_norms", remembering(norms.verify_norms, of_norms))
    patch.setattr(selection, "verify_answers", remembering(selection.verify_answers, of_answers))
