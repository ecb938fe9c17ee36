"""For all tests."""

import os
from pathlib import Path

import pytest

# One process for each command: tests run side by side. Those of several processes say so.
os.environ["RAGWITNESS_WORKERS"] = "1"


@pytest.fixture(autouse=True)
def _workers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb called in this process keeps its ``--workers`` for itself."""
    monkeypatch.setenv("RAGWITNESS_WORKERS", "1")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with none of another test beside it: audits read the runs that lie beside theirs."""
    own = tmp_path / "own"
    own.mkdir()
    return own
