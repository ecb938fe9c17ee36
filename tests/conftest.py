"""For all tests."""

import os

import pytest

# One process for each command: tests run side by side. Those of several processes say so.
os.environ["RAGWITNESS_WORKERS"] = "1"


@pytest.fixture(autouse=True)
def _workers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb called in this process keeps its ``--workers`` for itself."""
    monkeypatch.setenv("RAGWITNESS_WORKERS", "1")
