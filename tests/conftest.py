"""For all tests."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# No result may depend on what this machine has fetched: subprocesses inherit an empty cache.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / "ragwitness-tests-empty-cache")

# A busy machine is slow, which is no fault of an example.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with none of another test beside it: audits read the runs that lie beside theirs."""
    own = tmp_path / "own"
    own.mkdir()
    return own
