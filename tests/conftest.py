"""For all tests."""

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# No result may depend on what this machine has fetched: subprocesses inherit an empty cache.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / "ragwitness-tests-empty-cache")

# A busy machine is slow, which is no fault of an example.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


_QUICK = "not slow and not long"  # what make test asks for
_ALL_SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(?:slow|long)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file of slow tests alone where none is asked for: each process reads every file."""
    if config.option.markexpr != _QUICK:
        return None
    if collection_path.is_dir():
        return collection_path.name == "research" or None  # its conftest marks all of them
    if collection_path.suffix != ".py":
        return None
    return bool(_ALL_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with none of another test beside it: audits read the runs that lie beside theirs."""
    own = tmp_path / "own"
    own.mkdir()
    return own
