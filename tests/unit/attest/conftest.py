"""One audit window with real proofs, made once for all tests of a session."""

import shutil

import pytest
from filelock import FileLock

from tests.support.attested import Audited, Story, make_audited
from tests.support.held import remember_proofs


@pytest.fixture(scope="session")
def audited(tmp_path_factory, worker_id):
    """Made by the first of several workers; each has a copy of its own, which it may change."""
    mine = tmp_path_factory.mktemp("audited")
    if worker_id == "master":
        return make_audited(mine, 3)
    shared = tmp_path_factory.getbasetemp().parent / "audited"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            make_audited(mine, 3)
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
    with pytest.MonkeyPatch.context() as patch:
        remember_proofs(patch)
        yield
