"""One audit window with real proofs, made once for all tests of a session."""

import pytest

from tests.support.attested import POLICY, Story, make_audited, make_setup_for


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    return make_audited(folder, make_setup_for(POLICY, folder / "setup"), 3)


@pytest.fixture
def story(audited):
    return Story.of(audited)
