"""One audit window with real proofs, made once for all tests of a session."""

import hashlib
import os
import shutil

import pytest
from filelock import FileLock

from ragwitness.crypto.proofs.norms import verify as norms
from ragwitness.crypto.proofs.selection import statement
from ragwitness.crypto.proofs.selection import verify as selection
from tests.support.attested import POLICY, Audited, Story, make_audited, make_setup_for


@pytest.fixture(scope="session")
def audited(tmp_path_factory, worker_id):
    """Made by the first of several workers; each has a copy of its own, which it may change."""
    mine = tmp_path_factory.mktemp("audited")
    if worker_id == "master":
        return make_audited(mine, make_setup_for(POLICY, mine / "setup"), 3)
    shared = tmp_path_factory.getbasetemp().parent / "audited"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            make_audited(mine, make_setup_for(POLICY, mine / "setup"), 3)
            mine.rename(shared)
    return Audited.load(shutil.copytree(shared, mine, dirs_exist_ok=True))


@pytest.fixture
def story(audited):
    return Story.of(audited)


@pytest.fixture(scope="session", autouse=True)
def proofs_that_held_are_not_multiplied_again():
    """Most tests bend one thing and leave the proofs of the others as they are.

    Checking a proof is a function of its bytes: what held once is remembered under the SHA-256 of
    everything that goes into it, and what does not hold is checked every time.
    """
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

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(norms, "verify_norms", remembering(norms.verify_norms, of_norms))
        patch.setattr(
            selection, "verify_selections", remembering(selection.verify_selections, of_selections)
        )
        yield
