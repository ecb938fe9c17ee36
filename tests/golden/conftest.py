"""The stored runs were made with the reader that was shipped first: it answers them here too."""

from __future__ import annotations

from typing import Any

import pytest

from ragwitness.models.reader.model import NAMED

_MODELS: dict[tuple[str, str], Any] = {}


@pytest.fixture(autouse=True)
def _the_first_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAMED, "reader-1")
    # Other tests of this process have the packaged reader under the same name.
    monkeypatch.setattr("ragwitness.models.model_registry._loaded", _MODELS)
